"""Low-rank adaptation: Hu et al. 2021, "LoRA" (2106.09685).

    W' = W + 2 B A                       A [r d], B [e r]; W is frozen                    eq. 3

A starts random and B at 0, so that the model does not change at first. The paper's alpha / r is 2.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from regard.attention.multihead import MultiHead
from regard.attention.validation import check_positive
from regard.errors import InputError

LORA_SCALE = 2.0


class Lora(nn.Module):
    """W + 2 B A for a frozen matrix W."""

    def __init__(self, weight: Float[Tensor, "e d"], rank: int):
        super().__init__()
        check_positive("rank", rank)
        self.a = nn.Parameter(weight.new_empty(rank, weight.shape[1]))
        self.b = nn.Parameter(weight.new_zeros(weight.shape[0], rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, weight: Float[Tensor, "e d"]) -> Float[Tensor, "e d"]:
        return torch.addmm(weight, self.b, self.a, alpha=LORA_SCALE)


def add_lora(model: nn.Module, rank: int) -> int:
    """Freeze a model, and adapt the queries and values of its multi-head attentions (sec. 4.2).

    Return the number of adapted matrices.
    """
    model.requires_grad_(False)
    layers = [
        layer
        for module in model.modules()
        if isinstance(module, MultiHead)
        for layer in (module.to_query, module.to_value)
    ]
    if not layers:
        raise InputError(f"model {type(model).__name__} has no multi-head attention to adapt")
    for layer in layers:
        parametrize.register_parametrization(layer, "weight", Lora(layer.weight, rank))
    return len(layers)
