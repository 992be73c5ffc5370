"""[model] of piano rolls."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive, Rate
from regard.config.models.model_fields import ACTIVATION_HELP, DROPOUT_HELP, ActivationName
from regard.errors import InputError

ROLL_MODELS = ("roll_rnn", "roll_gpt")  # models that read keys; the others read text


class RollRnnConfig(Config):
    """An RNN that predicts the keys of the next step (Boulanger-Lewandowski et al. 2012)."""

    kind: Literal["roll_rnn"] = "roll_rnn"
    cell: Literal["lstm", "gru", "elman"] = Field(
        default="lstm", description="Recurrent cell: lstm, gru or elman."
    )
    dim: Positive = Field(default=200, description="Width of the hidden states.")
    layers: Positive = Field(default=1, description="Number of layers.")
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    input_dropout: Rate = Field(
        default=0.0,
        description="Dropout of the input of each layer, 0 to 1, with one mask for each piece.",
    )
    state_dropout: Rate = Field(
        default=0.0,
        description="Dropout of the recurrent connections, 0 to 1, with one mask for each piece.",
    )


class RollGptConfig(Config):
    """A causal transformer over the steps of a piece, with the blocks of GPT-2."""

    kind: Literal["roll_gpt"] = "roll_gpt"
    dim: Positive = Field(default=128, description="Width of the hidden states.")
    heads: Positive = Field(
        default=4, description="Number of attention heads; dim must be a multiple of it."
    )
    layers: Positive = Field(default=2, description="Number of layers.")
    hidden_dim: Positive | None = Field(
        default=None,
        description="Width inside the feed-forward layers. Default: four times dim.",
    )
    activation: ActivationName = Field(default="gelu", description=ACTIVATION_HELP)
    dropout: Rate = Field(default=0.1, description=DROPOUT_HELP)

    @model_validator(mode="after")
    def _check_heads(self) -> "RollGptConfig":
        if self.dim % self.heads:
            raise InputError(f"dim = {self.dim} cannot be divided among heads = {self.heads}")
        return self
