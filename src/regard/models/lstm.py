"""An LSTM that remembers a sequence in its state alone: what stands beside machines with a memory.

    h_t = LSTM(x_t, h_{t-1}), layer upon layer
    y_t = W h_t + b

Hochreiter & Schmidhuber 1997, with forget gates (Gers et al. 2000). It is the baseline of Graves et
al. 2014, who stack three layers of 256 for `copy`.

# differs: there, every layer sees the input too, and gates see the cell (peepholes).
b: rows   t: steps
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.validation import check_dropout, check_sequence, check_width
from regard.layers.cells import LSTM, RecurrentState
from regard.layers.recurrent import Recurrent


class Lstm(nn.Module):
    """`dropout` acts between layers, and there must be two for it."""

    cross_attentions = ()  # there is no source to look at

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        dim: int = 256,
        layers: int = 1,
        dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        self.source_size = source_size
        self.layers = Recurrent(LSTM, source_size, dim, layers, dropout=dropout)
        self.out = nn.Linear(dim, target_size)

    def episode(
        self, inputs: Float[Tensor, "b t i"], feedback: Float[Tensor, "b t f"] | None = None
    ) -> Float[Tensor, "b t o"]:
        """Logits at each step. `feedback`, if there is any, stands beside the inputs."""
        inputs_and_feedback = inputs if feedback is None else torch.cat([inputs, feedback], -1)
        check_sequence("inputs", inputs_and_feedback)
        check_width("inputs and feedback", inputs_and_feedback, self.source_size)
        return self.read(None, inputs_and_feedback)[0]

    def begin(self, rows: int) -> RecurrentState | None:  # noqa: ARG002 - nothing, for any number of rows
        """Of an episode at its start."""
        return None

    def read(
        self, state: RecurrentState | None, inputs: Float[Tensor, "b t i"]
    ) -> tuple[Float[Tensor, "b t o"], RecurrentState]:
        """Logits at steps that follow those of `state`, and the state after them."""
        states, after = self.layers(inputs, state=state)
        return self.out(states), after
