"""Heads of encoders: poolings of states into one vector, and classifiers.

b: batch   t: positions   d: width of a state   c: classes

A pooling takes states and marks of the real positions; padding can be anywhere. A row without a
real position pools to zeros, with finite gradients.
"""

from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.multihead import AttentionPooling
from regard.attention.scores import Salience
from regard.attention.validation import check_dropout, check_positive, check_width
from regard.errors import InputError
from regard.kernels.linear import Linear
from regard.layers.dropout import dropout

Pooling = Literal["first", "last", "mean", "max", "attention"]


def build_pooling(
    name: Pooling,
    width: int,
    *,
    backward_dim: int = 0,
    hidden_dim: int | None = None,
    queries: int = 1,
) -> nn.Module:
    """Build the pooling of this name for states of this width.

    `backward_dim` is for "last" only. `hidden_dim` (width inside the score, default: `width`) and
    `queries` are for "attention": u . tanh(W h + b), Yang et al. 2016. `observe` records its
    weights.
    """
    if name not in get_args(Pooling):
        raise InputError(f"pooling must be one of {', '.join(get_args(Pooling))}, not {name!r}")
    if name != "attention" and queries != 1:
        raise InputError(f"queries must be 1 for pooling {name!r}; only 'attention' has several")
    match name:
        case "first":
            return FirstPooling()
        case "last":
            return LastPooling(backward_dim)
        case "mean":
            return MeanPooling()
        case "max":
            return MaxPooling()
        case "attention":
            hidden_dim = hidden_dim or width
            return AttentionPooling(Attention(Salience(width, hidden_dim)), hidden_dim, queries)


class FirstPooling(nn.Module):
    """The state of the first real position, [CLS] in BERT."""

    def forward(
        self, states: Float[Tensor, "b t d"], valid: Bool[Tensor, "b t"]
    ) -> Float[Tensor, "b d"]:
        return state_at(states, valid, valid.int().argmax(1))  # argmax: the first of equal ones


class LastPooling(nn.Module):
    """The state of the last real position.

    The last `backward_dim` columns are taken at the first position instead. So a bidirectional
    layer gives the final state of each direction.
    """

    def __init__(self, backward_dim: int = 0):
        super().__init__()
        self.backward_dim = backward_dim

    def forward(
        self, states: Float[Tensor, "b t d"], valid: Bool[Tensor, "b t"]
    ) -> Float[Tensor, "b d"]:
        last = valid.shape[1] - 1 - valid.flip(1).int().argmax(1)
        forward_dim = states.shape[-1] - self.backward_dim
        forward = state_at(states[..., :forward_dim], valid, last)
        if not self.backward_dim:
            return forward
        first = state_at(states[..., forward_dim:], valid, valid.int().argmax(1))
        return torch.cat([forward, first], -1)


class MeanPooling(nn.Module):
    """The mean of the real states."""

    def forward(
        self, states: Float[Tensor, "b t d"], valid: Bool[Tensor, "b t"]
    ) -> Float[Tensor, "b d"]:
        total = states.masked_fill(~valid[..., None], 0.0).sum(1)
        return total / valid.sum(1, keepdim=True).clamp(min=1)


class MaxPooling(nn.Module):
    """The maximum of each column over the real states."""

    def forward(
        self, states: Float[Tensor, "b t d"], valid: Bool[Tensor, "b t"]
    ) -> Float[Tensor, "b d"]:
        highest = states.masked_fill(~valid[..., None], -torch.inf).amax(1)
        return highest.masked_fill(~valid.any(1, keepdim=True), 0.0)


def state_at(states: Tensor, valid: Tensor, position: Tensor) -> Tensor:
    """Return the state of each row at its position; zeros for a row without a real position."""
    rows = torch.arange(len(states), device=states.device)
    return states[rows, position].masked_fill(~valid.any(1, keepdim=True), 0.0)


class ClassifierHead(nn.Module):
    """logits = W x + b, or W tanh(V x + a) + b with a hidden layer; dropout before each product.

    The input is a pooled vector, or the states of a sequence to classify each position.
    """

    def __init__(
        self, width: int, classes: int, *, hidden_dim: int | None = None, dropout: float = 0.0
    ):
        super().__init__()
        check_positive("width", width)
        check_positive("classes", classes)
        check_dropout(dropout)
        self.width, self.classes, self.dropout = width, classes, dropout
        self.hidden = None if hidden_dim is None else Linear(width, hidden_dim)
        self.output = Linear(hidden_dim or width, classes)

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b c"]:
        check_width("x", x, self.width)
        x = dropout(x, self.dropout, self.training)
        if self.hidden is not None:
            x = dropout(self.hidden(x).tanh(), self.dropout, self.training)
        return self.output(x)


class DistogramHead(nn.Module):
    """logits_ij = W (z_ij + z_ji): symmetric classes of the distance between two positions.

    Jumper et al. 2021, supplement 1.9.8.
    """

    def __init__(self, width: int, classes: int, *, dropout: float = 0.0):
        super().__init__()
        self.output = ClassifierHead(width, classes, dropout=dropout)

    def forward(self, pairs: Float[Tensor, "b t t d"]) -> Float[Tensor, "b t t c"]:
        return self.output(pairs + pairs.transpose(1, 2))
