"""Maxout units, the layer between the state of a decoder and its softmax."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.validation import check_positive
from regard.errors import InputError
from regard.kernels.linear import Linear


def maxout(x: Float[Tensor, "*b wide"], pieces: int = 2) -> Float[Tensor, "*b d"]:
    """y_j = max over the pieces k of x_{k d + j}  (Goodfellow et al. 2013, sec. 2).

    In the papers, the pieces of a unit are neighbors. Here they are d apart: the same layer with
    its rows in another order. This is faster, because the maximum runs over whole vectors.
    """
    if x.shape[-1] % pieces:
        raise InputError(f"x is {x.shape[-1]} wide, which is not a multiple of {pieces} pieces")
    return x.unflatten(-1, (pieces, -1)).amax(-2)


class DeepOutput(nn.Module):
    """t = maxout(sum_i W_i x_i + b) over several inputs x_i of different widths.

    Pascanu et al. 2014. Cho et al. 2014, A.2 and Bahdanau et al. 2015, A.2.2 compute it from the
    decoder's state, the last word and the context, before the softmax. Inputs broadcast: pass an
    input that is equal at every step as [b 1 d].
    """

    def __init__(self, input_dims: Sequence[int], dim: int, pieces: int = 2):
        super().__init__()
        check_positive("dim", dim)
        check_positive("pieces", pieces)
        self.pieces = pieces
        self.parts = nn.ModuleList(
            Linear(width, pieces * dim, bias=not index) for index, width in enumerate(input_dims)
        )

    def forward(self, *inputs: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        first, *rest = (part(x) for part, x in zip(self.parts, inputs, strict=True))
        for term in rest:
            first = first + term
        return maxout(first, self.pieces)
