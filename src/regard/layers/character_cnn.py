"""Word vectors from characters: convolutions of several widths and a maximum over positions.

n: words   c: characters of a word   e: character_dim   d: dim
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.validation import check_positive, check_valid
from regard.errors import InputError
from regard.kernels.linear import Linear
from regard.layers.embedding import Embedding
from regard.layers.precision import interpolate


class Highway(nn.Module):
    """y = g x + (1 - g) relu(W x + b),  g = sigma(W_g x + b_g)  (Srivastava et al. 2015, eq. 3).

    g is the share of x that passes unchanged. b_g starts at `carry_bias`; with 2, g is about 0.88.
    """

    def __init__(self, dim: int, carry_bias: float = 2.0):
        super().__init__()
        self.change, self.carry = Linear(dim, dim), Linear(dim, dim)
        for linear, bias in ((self.change, 0.0), (self.carry, carry_bias)):
            nn.init.normal_(linear.weight, std=1 / math.sqrt(dim))
            nn.init.constant_(linear.bias, bias)

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return interpolate(self.change(x).relu(), x, self.carry(x).sigmoid())


class CharacterCNN(nn.Module):
    """x_j = relu(max over positions of (w_j . window + b_j)), highway layers, a projection.

    Kim et al. 2016, 2.2-2.3; Jozefowicz et al. 2016. `filters` are pairs (width, count). The
    padding of a word is a character like any other.
    """

    def __init__(
        self,
        characters: int,
        dim: int,
        *,
        filters: Sequence[tuple[int, int]],
        character_dim: int = 16,
        highway_layers: int = 2,
    ):
        super().__init__()
        if not filters:
            raise InputError("filters is empty; give pairs of (width, count)")
        for width, count in filters:
            check_positive("filters: width", width)
            check_positive("filters: count", count)
        self.max_filter_width = max(width for width, _ in filters)
        n_features = sum(count for _, count in filters)
        self.characters = Embedding(characters, character_dim)
        windows = [nn.Conv1d(character_dim, count, width) for width, count in filters]
        self.windows = nn.ModuleList(windows)
        self.highways = nn.ModuleList(Highway(n_features) for _ in range(highway_layers))
        self.project = Linear(n_features, dim)
        nn.init.uniform_(self.characters.weight, -1, 1)
        for layer in (*windows, self.project):  # so that outputs have about the size of inputs
            std = 1 / math.sqrt(layer.weight[0].numel())
            for weight in layer.parameters():
                nn.init.normal_(weight, std=std if weight.ndim > 1 else 0.0)

    def forward(self, words: Int[Tensor, "n c"]) -> Float[Tensor, "n d"]:
        if words.shape[1] < self.max_filter_width:
            raise InputError(
                f"words have {words.shape[1]} characters, but the widest filter has "
                f"{self.max_filter_width}; pad them"
            )
        letters = self.characters(words).mT
        x = torch.cat([window(letters).amax(-1) for window in self.windows], -1).relu()
        for highway in self.highways:
            x = highway(x)
        return self.project(x)

    def embed_words(
        self, words: Int[Tensor, "b t c"], valid: Bool[Tensor, "b t"]
    ) -> Float[Tensor, "b t d"]:
        """Return the vectors of all words, zeros at padding; equal words are computed once."""
        check_valid(valid, words.shape[:2])
        unique_words, inverse = words[valid].unique(dim=0, return_inverse=True)
        vectors = self(unique_words)[inverse]
        return vectors.new_zeros(*valid.shape, vectors.shape[-1]).index_put((valid,), vectors)
