"""TODO regard.config.models.piano_rolls."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive, Rate
from regard.config.models.common import ACTIVATION_HELP, DROPOUT_HELP, ActivationName

ROLL_MODELS = ("roll_rnn", "roll_gpt")  # models that read keys; the others read text


class RollRnnConfig(Config):
    """Recurrent, from the keys of a step to those of the next (Boulanger-Lewandowski 2012)."""

    kind: Literal["roll_rnn"] = "roll_rnn"
    cell: Literal["lstm", "gru", "elman"] = Field(default="lstm", description="lstm, gru or elman.")
    dim: Positive = Field(default=200, description="Width of a state.")
    layers: Positive = Field(default=1, description="Layers, one on the other.")
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    input_dropout: Rate = Field(
        default=0.0, description="The same, of a layer's input, one mask for a piece."
    )
    state_dropout: Rate = Field(
        default=0.0, description="The same, in recurrent products, one mask for a piece."
    )


class RollGptConfig(Config):
    """A transformer that looks back at the steps before, with GPT-2's blocks."""

    kind: Literal["roll_gpt"] = "roll_gpt"
    dim: Positive = Field(default=128, description="Width of a state.")
    heads: Positive = Field(
        default=4, description="Attentions side by side; dim is divided among them."
    )
    layers: Positive = Field(default=2, description="Layers, one on the other.")
    hidden_dim: Positive | None = Field(
        default=None,
        description="Width inside the feed-forward layers; four times dim where not set.",
    )
    activation: ActivationName = Field(default="gelu", description=ACTIVATION_HELP)
    dropout: Rate = Field(default=0.1, description=DROPOUT_HELP)

    @model_validator(mode="after")
    def _check_heads(self) -> "RollGptConfig":
        if self.dim % self.heads:
            raise ValueError(f"dim = {self.dim} cannot be divided among heads = {self.heads}")
        return self
