"""Captions: Vinyals et al. 2015, "Show and Tell" (1411.4555), and Xu et al. 2015, "Show, Attend
and Tell" (1502.03044).

    show_tell      x_{-1} = CNN(I), x_t = E y_t          the image is the first input
                   h_t = LSTM(x_t, h_{t-1}),  p(y_{t+1}) = softmax(W h_t + b)

    show_attend    c_0, h_0 = tanh(W mean_i a_i + b)     a_i: the CNN's vector of position i
                   alpha_t  = softmax_i f(a_i, h_{t-1})          f: additive; hard: one sampled i
                   z_t      = beta_t sum_i alpha_ti a_i          beta_t = sigmoid(w h_{t-1} + b)
                   h_t, c_t = LSTM([E y_{t-1}; z_t], h_{t-1}, c_{t-1})
                   p(y_t)   = softmax(L_o (E y_{t-1} + L_h h_t + L_z z_t))

    doubly stochastic:   loss + lambda sum_i (1 - sum_t alpha_ti)^2

b: images   k: positions   t: words   n: rows of a search   v: target_size   h: hidden_dim
"""

from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.build import build_attention
from regard.attention.memory import Memory
from regard.attention.reinforce import ReinforceLoss
from regard.attention.validation import check_dropout
from regard.errors import InputError
from regard.kernels.linear import Linear
from regard.layers.cells import LSTM
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.images import ImageEncoder, ImageSize, check_images, height_and_width
from regard.layers.recurrent import Recurrent


class ShowTellState(NamedTuple):
    """The state of the LSTM, at first after reading the image; rows are the second axis."""

    h: Float[Tensor, "1 n h"]
    c: Float[Tensor, "1 n h"]


class ShowTell(nn.Module):
    """Show and Tell.

    Widths: `dim` of word vectors, `hidden_dim` of the LSTM, `image_dim` of the CNN's channels.
    In the paper 512 and 512, and a GoogLeNet. `dropout` acts on word vectors, the image's vector
    and h_t.
    """

    cross_attentions = ()

    def __init__(
        self,
        target_size: int,
        size: ImageSize,
        channels: int = 3,
        *,
        dim: int = 128,
        hidden_dim: int | None = None,
        image_dim: int = 64,
        image_layers: int = 3,
        pooling_layers: int = 2,
        dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        hidden_dim = hidden_dim or dim
        self.size, self.dropout = height_and_width(size), dropout
        # differs: the paper's CNN was trained on ImageNet; this one is small and trained jointly
        self.picture = build_image_encoder(channels, image_dim, image_layers, pooling_layers)
        rows, columns = grid_size(self.picture, self.size)
        # differs: all positions are concatenated; a mean would lose the locations
        self.of_picture = Linear(rows * columns * image_dim, dim)
        self.target_words = Embedding(target_size, dim)
        self.decoder = Recurrent(LSTM, dim, hidden_dim)
        self.output = Linear(hidden_dim, target_size)

    def grid(self, height: int, width: int) -> tuple[int, int]:
        return self.picture.grid(height, width)

    def remember(
        self,
        source: Float[Tensor, "b c height width"],
        valid: None = None,  # noqa: ARG002 - an image has no padding
    ) -> ShowTellState:
        check_size(source, self.size, self.picture)
        image_vector = self.drop(self.of_picture(self.picture(source).flatten(1)))
        _, (h, c) = self.decoder(image_vector[:, None])
        return ShowTellState(h, c)

    def teacher_forced(
        self, memory: ShowTellState, target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t h"]:
        return self.drop(self.decoder(self.drop(self.target_words(target)), None, memory)[0])

    def logits(self, states: Float[Tensor, "*b h"]) -> Float[Tensor, "*b v"]:
        return self.output(states)

    def start(self, memory: ShowTellState) -> ShowTellState:
        return memory

    def step(
        self, state: ShowTellState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], ShowTellState]:
        words = self.drop(self.target_words(tokens))
        top, (h, c) = self.decoder.step(words, state)
        return self.logits(self.drop(top)).log_softmax(-1), ShowTellState(h, c)

    def select(self, state: ShowTellState, rows: Int[Tensor, " m"]) -> ShowTellState:
        return ShowTellState(state.h.index_select(1, rows), state.c.index_select(1, rows))

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


class ShowAttendMemory(NamedTuple):
    """The positions of an image, and the initial states of the decoder."""

    memory: Memory
    h: Float[Tensor, "b h"]
    c: Float[Tensor, "b h"]


class ShowAttendState(NamedTuple):
    """The state of a search: h and c of each row, its memory, and the index of its image."""

    h: Float[Tensor, "n h"]
    c: Float[Tensor, "n h"]
    memory: Memory
    origin: Int[Tensor, " n"]


class ShowAttendOutput(NamedTuple):
    """Inputs of the output layer and attention weights at each word, with their gradients."""

    states: Float[Tensor, "b t d"]
    weights: Float[Tensor, "b t k"]


class ShowAttend(nn.Module):
    """Show, Attend and Tell.

    Widths: `dim` of word vectors, `hidden_dim` of the LSTM, `align_dim` inside the score,
    `image_dim` of a_i. `normalize` "softmax" is the paper's soft attention, "reinforce" its hard
    attention. For the latter, `reward_weight` and `entropy_weight` are lambda_r and lambda_e, and
    `expectation_rate` is the share of sequences that read the expectation. `dropout` acts on word
    vectors, positions and the input of the output layer.
    """

    cross_attentions = ("attention",)

    def __init__(
        self,
        target_size: int,
        size: ImageSize,
        channels: int = 3,
        *,
        dim: int = 128,
        hidden_dim: int | None = None,
        align_dim: int | None = None,
        image_dim: int = 64,
        image_layers: int = 3,
        pooling_layers: int = 2,
        score: str = "additive",
        normalize: str = "softmax",
        reward_weight: float = 1.0,
        entropy_weight: float = 0.01,
        expectation_rate: float = 0.5,
        dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        hidden_dim = hidden_dim or dim
        self.size, self.dropout, self.expectation_rate = (
            height_and_width(size),
            dropout,
            expectation_rate,
        )
        self.picture = build_image_encoder(channels, image_dim, image_layers, pooling_layers)
        rows, columns = grid_size(self.picture, self.size)
        # differs: learned vectors of row and column are added to a_i. A VGG of 16 layers infers
        # the position from the borders of the image, which this small CNN does not reach.
        self.rows, self.columns = Embedding(rows, image_dim), Embedding(columns, image_dim)
        self.of_mean = Linear(image_dim, 2 * hidden_dim)
        self.target_words = Embedding(target_size, dim)
        self.attention = build_attention(
            score,
            hidden_dim,
            image_dim,
            normalize=normalize,
            hidden_dim=align_dim or hidden_dim,
            slots=rows * columns,
        )
        self.gate = Linear(hidden_dim, 1)
        self.cell = LSTM(dim + image_dim, hidden_dim)
        self.of_state = Linear(hidden_dim, dim)
        self.of_context = Linear(image_dim, dim, bias=False)
        self.output = Linear(dim, target_size)
        # a part of the model, so that checkpoints include its baseline
        self.reinforce = (
            ReinforceLoss(reward_weight, entropy_weight) if normalize == "reinforce" else None
        )

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Return the rows and columns of positions."""
        return self.picture.grid(height, width)

    def remember(
        self,
        source: Float[Tensor, "b c height width"],
        valid: None = None,  # noqa: ARG002 - an image has no padding
    ) -> ShowAttendMemory:
        check_size(source, self.size, self.picture)
        offsets = self.rows.weight[:, None] + self.columns.weight
        places = self.picture(source) + offsets.flatten(0, 1)
        h, c = self.of_mean(places.mean(1)).tanh().chunk(2, -1)
        return ShowAttendMemory(self.attention.remember(self.drop(places)), h, c)

    def decode_with_attention(
        self, memory: ShowAttendMemory, target: Int[Tensor, "b t"]
    ) -> ShowAttendOutput:
        words, h, c = self.drop(self.target_words(target)), memory.h, memory.c
        steps: list[tuple[Tensor, Tensor, Tensor]] = []
        for word in words.unbind(1):
            h, c, z, weights = self.advance(word, h, c, memory.memory)
            steps.append((h, z, weights))
        states, contexts, weights = (torch.stack(part, 1) for part in zip(*steps, strict=True))
        return ShowAttendOutput(self.deep_output(words, states, contexts), weights)

    def teacher_forced(
        self, memory: ShowAttendMemory, target: Int[Tensor, "b t"]
    ) -> Float[Tensor, "b t d"]:
        return self.decode_with_attention(memory, target).states

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        return self.output(states)

    def start(self, memory: ShowAttendMemory) -> ShowAttendState:
        origin = torch.arange(len(memory.h), device=memory.h.device)
        return ShowAttendState(memory.h, memory.c, memory.memory, origin)

    def step(
        self, state: ShowAttendState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], ShowAttendState]:
        words = self.drop(self.target_words(tokens))
        h, c, z, _ = self.advance(words, state.h, state.c, state.memory)
        log_probs = self.logits(self.deep_output(words, h, z)).log_softmax(-1)
        return log_probs, state._replace(h=h, c=c)

    def select(self, state: ShowAttendState, rows: Int[Tensor, " m"]) -> ShowAttendState:
        h, c, origin = (part.index_select(0, rows) for part in (state.h, state.c, state.origin))
        if torch.equal(origin, state.origin):  # each row still has the same image
            return ShowAttendState(h, c, state.memory, origin)
        return ShowAttendState(h, c, state.memory.select(rows), origin)

    def advance(
        self, word: Tensor, h: Tensor, c: Tensor, memory: Memory
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """E y_{t-1}, h_{t-1}, c_{t-1} -> h_t, c_t, z_t, alpha_t; the query is h_{t-1}, not h_t."""
        weights = self.attention.weigh(h[:, None], memory)
        z = self.gate(h).sigmoid() * self.attention.read(weights, memory)[:, 0]
        h, c = self.cell(torch.cat([word, z], -1), (h, c))
        return h, c, z, weights[:, 0]

    def deep_output(self, words: Tensor, states: Tensor, contexts: Tensor) -> Tensor:
        return self.drop(words + self.of_state(states) + self.of_context(contexts))

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


def doubly_stochastic_penalty(
    weights: Float[Tensor, "b t k"], valid: Bool[Tensor, "b t"]
) -> Float[Tensor, " b"]:
    """sum_i (1 - sum_t alpha_ti)^2 over real words; 0 if the weights of each position sum to 1."""
    return (1 - (weights * valid[..., None]).sum(1)).square().sum(-1)


def build_image_encoder(channels: int, dim: int, layers: int, pooling_layers: int) -> ImageEncoder:
    """Build the CNN, with norms within one image.

    Norms over a batch would leak information: the captions of a batch have one length.
    """
    norm = partial(nn.GroupNorm, 1)
    return ImageEncoder(
        channels, dim, layers=layers, hidden_dim=dim, pooling_layers=pooling_layers, norm=norm
    )


def grid_size(image: ImageEncoder, size: tuple[int, int]) -> tuple[int, int]:
    rows, columns = image.grid(*size)
    if not rows or not columns:
        min_side = 2**image.pooling_layers
        problem = f"size = {list(size)} is too small for pooling_layers = {image.pooling_layers}"
        raise InputError(f"{problem}; each side must have at least {min_side} pixels")
    return rows, columns


def check_size(images: Tensor, size: tuple[int, int], image: ImageEncoder) -> None:
    check_images(images, image.channels, image.out.weight)
    if tuple(images.shape[2:]) != size:
        have = " x ".join(map(str, images.shape[2:]))
        raise InputError(f"images have {have} pixels, but the model is for {size[0]} x {size[1]}")
