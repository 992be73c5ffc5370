"""Results of encoders: a vector for each position, and optionally one for the whole input."""

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor


class EncoderStates(NamedTuple):
    """States of an input, and its pooled vector; states at padding are arbitrary."""

    states: Float[Tensor, "b t d"]
    valid: Bool[Tensor, "b t"]
    pooled: Float[Tensor, "b p"] | None = None


class SpanStates(NamedTuple):
    """States of an encoder for spans: `states` predict the start of a span, `ends` its end."""

    states: Float[Tensor, "b t d"]
    valid: Bool[Tensor, "b t"]
    ends: Float[Tensor, "b t d"]
    pooled: None = None


class PairStates(NamedTuple):
    """States of an encoder with a vector for each pair of positions."""

    states: Float[Tensor, "b t d"]
    valid: Bool[Tensor, "b t"]
    pairs: Float[Tensor, "b t t p"]
    pooled: None = None
