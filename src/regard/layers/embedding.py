"""Embedding tables: ids to vectors, and states to logits."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.validation import check_positive, check_width
from regard.errors import InputError
from regard.kernels.linear import linear
from regard.layers.cells import check_dtype


class Embedding(nn.Module):
    """x = E[id], or sqrt(d) E[id] when `scaled`; logits(x) = x E^T + b  (Vaswani et al. 2017, 3.4).

    One table serves for both. It starts from N(0, 1/d), so that scaled vectors and the logits of
    unit states have variance 1. `init_std` sets another standard deviation (GPT-2, BERT: 0.02). The
    vector of the id `padding` is zero and stays zero: it gets no gradient.
    """

    def __init__(
        self,
        size: int,
        dim: int,
        *,
        scaled: bool = False,
        padding: int | None = None,
        bias: bool = False,
        init_std: float | None = None,
    ):
        super().__init__()
        check_positive("size", size)
        check_positive("dim", dim)
        if padding is not None and not 0 <= padding < size:
            raise InputError(f"padding must be an id between 0 and {size - 1}, not {padding}")
        self.padding = padding
        self.scale = math.sqrt(dim) if scaled else 1.0
        self.std = 1 / math.sqrt(dim) if init_std is None else init_std
        self.weight = nn.Parameter(torch.empty(size, dim))
        self.bias = nn.Parameter(torch.zeros(size)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.std)
        if self.padding is not None:
            with torch.no_grad():
                self.weight[self.padding] = 0
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, ids: Int[Tensor, "*b"]) -> Float[Tensor, "*b d"]:
        if ids.dtype not in (torch.int64, torch.int32):
            raise InputError(f"ids must be int64 or int32, not {ids.dtype}")
        if torch.compiler.is_compiling():
            vectors = F.embedding(ids, self.weight, self.padding)
        else:
            # The lookup itself detects a bad id. A check in advance would cost two reductions.
            try:
                vectors = F.embedding(ids, self.weight, self.padding)
            except IndexError:
                raise InputError(self.id_range_message(ids)) from None
        return vectors * self.scale if self.scale != 1.0 else vectors

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        """x E^T + b: the tied output projection."""
        check_width("states", states, self.weight.shape[1])
        check_dtype("states", states, self.weight)
        return linear(states, self.output_weight(), self.bias)

    def output_weight(self) -> Float[Tensor, "v d"]:
        """Return the weight of the output projection: the table, with a constant padding row."""
        if self.padding is None or not torch.is_grad_enabled():
            return self.weight
        # A copy, because the softmax would push the padding row away from zero.
        return self.weight.index_fill(0, self.row_index(self.padding), 0)

    def row_index(self, index: int) -> Tensor:
        return torch.tensor([index], device=self.weight.device)

    def id_range_message(self, ids: Tensor) -> str:
        size = self.weight.shape[0]
        bad_id = ids[(ids < 0) | (ids >= size)][0].item()
        return f"ids hold {bad_id}, but the table has {size} entries; ids go from 0 to {size - 1}"
