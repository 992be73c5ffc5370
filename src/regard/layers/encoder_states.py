"""What an encoder has made of its input: a vector for each position, and perhaps one for all."""

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor


class EncoderStates(NamedTuple):
    """States at padding are of no meaning, and change nothing that is real."""

    states: Float[Tensor, "b t d"]
    valid: Bool[Tensor, "b t"]
    pooled: Float[Tensor, "b p"] | None = None


class SpanStates(NamedTuple):
    """Of an encoder made for stretches: `states` tell where one begins, `ends` where it ends."""

    states: Float[Tensor, "b t d"]
    valid: Bool[Tensor, "b t"]
    ends: Float[Tensor, "b t d"]
    pooled: None = None


class PairStates(NamedTuple):
    """Of an encoder that thinks of pairs, too: a vector for each two positions."""

    states: Float[Tensor, "b t d"]
    valid: Bool[Tensor, "b t"]
    pairs: Float[Tensor, "b t t p"]
    pooled: None = None
