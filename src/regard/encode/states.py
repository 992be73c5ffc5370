"""What an encoder has made of its input: a vector for each position, and perhaps one for all."""

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor


class States(NamedTuple):
    """States at padding are of no meaning, and change nothing that is real.

    `ends` are those in which the end of a stretch is to be seen, where a model has others for it.
    """

    states: Float[Tensor, "b t d"]
    valid: Bool[Tensor, "b t"]
    pooled: Float[Tensor, "b p"] | None = None
    ends: Float[Tensor, "b t d"] | None = None
