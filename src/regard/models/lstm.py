"""An LSTM whose only memory is its state: the baseline for models with an external memory.

    h_t = LSTM(x_t, h_{t-1}), in stacked layers
    y_t = W h_t + b

Hochreiter & Schmidhuber 1997, with forget gates (Gers et al. 2000). It is the baseline of Graves et
al. 2014, who use three layers of 256 for the copy task.

# differs: there, every layer also reads the input, and gates read the cell (peepholes).
b: rows   t: steps
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.validation import check_dropout, check_sequence, check_width
from regard.kernels.linear import Linear
from regard.layers.cells import LSTM, RecurrentState
from regard.layers.recurrent import Recurrent


class Lstm(nn.Module):
    """LSTM layers and an output layer; `dropout` acts between layers and needs at least two."""

    cross_attentions = ()  # this model has no source

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
        self.out = Linear(dim, target_size)

    def episode(
        self, inputs: Float[Tensor, "b t i"], feedback: Float[Tensor, "b t f"] | None = None
    ) -> Float[Tensor, "b t o"]:
        """Return the logits of each step; `feedback` is concatenated to the inputs."""
        inputs_and_feedback = inputs if feedback is None else torch.cat([inputs, feedback], -1)
        check_sequence("inputs", inputs_and_feedback)
        check_width("inputs and feedback", inputs_and_feedback, self.source_size)
        return self.read(None, inputs_and_feedback)[0]

    def begin(self, rows: int) -> RecurrentState | None:  # noqa: ARG002 - None for any number
        """Return the state before the first step of an episode."""
        return None

    def read(
        self, state: RecurrentState | None, inputs: Float[Tensor, "b t i"]
    ) -> tuple[Float[Tensor, "b t o"], RecurrentState]:
        """Continue from `state`; return the logits of each step and the state after the last."""
        states, after = self.layers(inputs, state=state)
        return self.out(states), after
