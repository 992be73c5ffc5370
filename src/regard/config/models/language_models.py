"""[model] of language models."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive, Rate
from regard.config.models.model_fields import (
    ACTIVATION_HELP,
    DIM_HELP,
    DROPOUT_HELP,
    HIDDEN_DIM_HELP,
    NORMALIZE_HELP,
    ActivationName,
    NormalizerName,
)
from regard.errors import InputError


class Gpt2Config(Config):
    """GPT-2: a transformer decoder (Radford et al. 2019)."""

    kind: Literal["gpt2"] = "gpt2"
    dim: Positive = Field(
        default=768, description="Width of the states and of the token embeddings."
    )
    heads: Positive = Field(
        default=12, description="Number of attention heads; dim must be a multiple of it."
    )
    layers: Positive = Field(default=12, description="Number of layers.")
    max_positions: Positive = Field(
        default=1024, description="Maximum length of an input, in tokens."
    )
    hidden_dim: Positive | None = Field(
        default=None,
        description="Width inside the feed-forward layers. Default: four times dim.",
    )
    activation: ActivationName = Field(default="tanh_gelu", description=ACTIVATION_HELP)
    norm_eps: float = Field(
        default=1e-5, gt=0, description="Epsilon of layer normalization, more than 0."
    )
    dropout: Rate = Field(default=0.1, description=DROPOUT_HELP)
    embedding_dropout: Rate | None = Field(
        default=None, description="Dropout of the token embeddings, 0 to 1. Default: dropout."
    )
    attention_dropout: Rate | None = Field(
        default=None, description="Dropout of the attention weights, 0 to 1. Default: dropout."
    )

    @model_validator(mode="after")
    def _check_heads(self) -> "Gpt2Config":
        if self.dim % self.heads:
            raise InputError(f"dim = {self.dim} cannot be divided among heads = {self.heads}")
        return self


class RnnlmConfig(Config):
    """A recurrent language model: Elman (1990), LSTM or GRU."""

    kind: Literal["rnnlm"] = "rnnlm"
    cell: Literal["lstm", "gru", "elman", "sigmoid"] = Field(
        default="lstm",
        description="Recurrent cell: lstm, gru, elman, or sigmoid (elman with a sigmoid).",
    )
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    layers: Positive = Field(default=1, description="Number of layers.")
    tie_embeddings: bool = Field(
        default=False, description="Share the weights of the embeddings and the output layer."
    )
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    input_dropout: Rate = Field(
        default=0.0,
        description="Dropout of the input of each layer, 0 to 1, with one mask for each window.",
    )
    state_dropout: Rate = Field(
        default=0.0,
        description="Dropout of the recurrent connections, 0 to 1, with one mask for each window.",
    )


class LstmnConfig(Config):
    """LSTMN: an LSTM that attends to all of its earlier states (Cheng et al. 2016)."""

    kind: Literal["lstmn"] = "lstmn"
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    align_dim: Positive | None = Field(
        default=None, description="Width inside the additive score. Default: hidden_dim."
    )
    layers: Positive = Field(default=1, description="Number of layers.")
    normalize: NormalizerName = Field(default="softmax", description=NORMALIZE_HELP)
    tie_embeddings: bool = Field(
        default=False, description="Share the weights of the embeddings and the output layer."
    )
    max_slots: Positive | None = Field(
        default=None,
        description="Maximum number of states to keep from one window to the next. Default: all.",
    )
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)


LanguageModelConfig = Annotated[Gpt2Config | RnnlmConfig | LstmnConfig, Field(discriminator="kind")]
