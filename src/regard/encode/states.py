"""What an encoder gives: a vector for each position, and perhaps one for the whole."""

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor


class States(NamedTuple):
    """`valid` says which positions are real, `pooled` is the whole as one vector, if any."""

    states: Float[Tensor, "b t d"]
    valid: Bool[Tensor, "b t"]
    pooled: Float[Tensor, "b e"] | None
