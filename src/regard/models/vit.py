"""ViT: Dosovitskiy et al. 2021, "An image is worth 16x16 words" (2010.11929).

    z_0  = [x_class; E x_1; …; E x_N] + P            x_i: the pixels of patch i         eq. 1
    z'_l = z_{l-1} + self-attention(LN(z_{l-1}))                                        eq. 2
    z_l  = z'_l + W2 gelu(W1 LN(z'_l) + b1) + b2                                        eq. 3
    y    = LN(z_L) at the class token                                                   eq. 4

Patches are in reading order. For an image of another size than the model's, P is interpolated over
the grid of patches; the row of the class token does not change (3.2).

# differs: P is interpolated by cubics, as in later work; the authors' code does it linearly.
# differs: with stem = "convolution", E is a stack of 3x3 convolutions that halve the image, as in
# Xiao et al. 2021 (2106.14881), 3. They have batch norms, which depend on the other images of a
# batch; here a layer norm covers one image. This stem helps with small data, because it relates
# neighboring pixels. The paper's hybrid (3.1) has a ResNet there.
b: images   c: channels   h, w: pixels   t: 1 + patches   d: dim
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.memory import grid_to_slots
from regard.attention.validation import check_dropout, check_positive
from regard.errors import InputError
from regard.layers.activations import build_activation
from regard.layers.dropout import dropout
from regard.layers.encoder_states import EncoderStates
from regard.layers.images import (
    ImageSize,
    build_convolutional_stem,
    check_images,
    height_and_width,
    resize_position_table,
)
from regard.layers.positions import LearnedPositions
from regard.layers.prepared_stack import encode_stack
from regard.layers.transformer_block import TransformerBlock, TransformerStack

STD = 0.02
SIZES = {  # table 1; weights include an output layer for 1000 classes, images of 224 x 224
    "base": {"dim": 768, "heads": 12, "layers": 12},  # 86,567,656 weights with patch 16
    "large": {"dim": 1024, "heads": 16, "layers": 24},  # 304,326,632
    "huge": {"dim": 1280, "heads": 16, "layers": 32},  # 632,045,800 with patch 14
}


class Vit(nn.Module):
    """The encoder of the equations above; the defaults are the paper's base model.

    `SIZES` has all sizes. `size` is height and width in pixels, or one number for a square.
    `hidden_dim` is the width of the feed-forward layer (default: 4 dim). `dropout` acts on z_0 and
    on the output of each sublayer, `attention_dropout` on weights (default: `dropout`).
    """

    def __init__(
        self,
        size: ImageSize,
        channels: int = 3,
        *,
        patch_size: int = 16,
        dim: int = 768,
        heads: int = 12,
        layers: int = 12,
        stem: Literal["patch", "convolution"] = "patch",
        hidden_dim: int | None = None,
        activation: str = "gelu",
        norm_eps: float = 1e-6,
        dropout: float = 0.0,
        attention_dropout: float | None = None,
    ):
        super().__init__()
        for name, value in (("channels", channels), ("patch_size", patch_size), ("heads", heads)):
            check_positive(name, value)
        check_dropout(dropout)
        self.channels, self.patch_size, self.dropout = channels, patch_size, dropout
        self.width = self.pooled_width = dim
        self.size = height_and_width(size)
        rows, columns = self.grid(*self.size)
        self.stem = build_stem(stem, channels, patch_size, dim)
        self.first = nn.Parameter(torch.zeros(dim))  # the class token
        self.position = LearnedPositions(1 + rows * columns, dim, init_std=STD)
        self.encoder = TransformerStack(
            TransformerBlock(
                *(dim, heads, hidden_dim or 4 * dim),
                norm="pre",
                norm_eps=norm_eps,
                activation=build_activation(activation),
                dropout=dropout,
                attention_dropout=attention_dropout,
            )
            for _ in range(layers)
        )
        for module in self.encoder.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)  # from the authors' code
                nn.init.zeros_(module.bias)

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Return the rows and columns of patches in an image of this size."""
        if not height or not width or height % self.patch_size or width % self.patch_size:
            raise InputError(
                f"images of {height} x {width} pixels cannot be cut into patches of "
                f"{self.patch_size} x {self.patch_size}; each side must be a multiple of it"
            )
        return height // self.patch_size, width // self.patch_size

    def encode(self, images: Float[Tensor, "b c h w"]) -> EncoderStates:
        """Return states of the class token and the patches; pooled is that of the class token."""
        check_images(images, self.channels, self.first)
        grid = self.grid(*images.shape[2:])
        patches = grid_to_slots(self.stem(images))
        words = torch.cat([self.first.expand(len(patches), 1, -1), patches], 1)
        words = dropout(words + self.position_vectors(grid), self.dropout, self.training)
        states = encode_stack(self.encoder, words, None)
        valid = states.new_ones(states.shape[:2], dtype=torch.bool)
        return EncoderStates(states, valid, states[:, 0])

    def position_vectors(self, grid: tuple[int, int]) -> Float[Tensor, "t d"]:
        """Return P for this number of rows and columns of patches."""
        trained_grid = self.grid(*self.size)
        return resize_position_table(self.position.weight, trained_grid, grid)


def build_stem(
    kind: Literal["patch", "convolution"], channels: int, patch_size: int, dim: int
) -> nn.Module:
    """Build the layer from an image to a vector for each patch."""
    if kind == "patch":
        convolution = nn.Conv2d(channels, dim, patch_size, patch_size)
        # from the authors' code
        nn.init.trunc_normal_(convolution.weight, std=(channels * patch_size**2) ** -0.5)
        if convolution.bias is not None:
            nn.init.zeros_(convolution.bias)
        return convolution
    if kind == "convolution":
        return build_convolutional_stem(channels, dim, patch_size)
    raise InputError(f"stem must be 'patch' or 'convolution', not {kind!r}")
