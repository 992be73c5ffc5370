"""A learned weighted mean of the vectors of several layers.

b: batch   l: layers   t: positions   d: width
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.validation import check_positive
from regard.errors import InputError


class ScalarMix(nn.Module):
    """y = gamma sum_j softmax(s)_j h_j  (Peters et al. 2018, eq. 1); s and gamma are learned.

    It starts as the mean. With `layer_norm`, each h_j is normalized first, position by position.
    """

    def __init__(self, layers: int, layer_norm: bool = False):
        super().__init__()
        check_positive("layers", layers)
        self.layer_norm = layer_norm
        self.s = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, layers: Float[Tensor, "b l t d"]) -> Float[Tensor, "b t d"]:
        if layers.shape[1] != len(self.s):
            raise InputError(f"layers must have {len(self.s)} layers, not {layers.shape[1]}")
        if self.layer_norm:
            layers = F.layer_norm(layers, layers.shape[-1:])
        return torch.einsum("l,bltd->btd", self.gamma * self.s.softmax(0), layers)
