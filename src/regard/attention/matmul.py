"""Matrix products with slots that several heads may share."""

from jaxtyping import Float
from torch import Tensor


def matmul_shared_heads(
    left: Float[Tensor, "*b q k"], right: Float[Tensor, "*#b k d"]
) -> Float[Tensor, "*b q d"]:
    """left @ right, without repeating a `right` that all heads (axis -3) share."""
    if (
        left.ndim != right.ndim
        or left.ndim < 4
        or right.shape[-3] == left.shape[-3]
        or right.shape[-3] != 1
    ):
        return left @ right
    return (left.flatten(-3, -2) @ right.squeeze(-3)).unflatten(-2, left.shape[-3:-1])
