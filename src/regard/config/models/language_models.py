"""TODO regard.config.models.language_models."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive, Rate
from regard.config.models.common import (
    ACTIVATION_HELP,
    DIM_HELP,
    DROPOUT_HELP,
    HIDDEN_DIM_HELP,
    NORMALIZE_HELP,
    ActivationName,
    NormalizerName,
)


class Gpt2Config(Config):
    """A transformer that only writes (Radford et al. 2019)."""

    kind: Literal["gpt2"] = "gpt2"
    dim: Positive = Field(default=768, description="Width of a state, and of a word vector.")
    heads: Positive = Field(
        default=12, description="Attentions side by side; dim is divided among them."
    )
    layers: Positive = Field(default=12, description="Layers, one on the other.")
    max_positions: Positive = Field(default=1024, description="Tokens that it can read.")
    hidden_dim: Positive | None = Field(
        default=None,
        description="Width inside the feed-forward layers; four times dim where not set.",
    )
    activation: ActivationName = Field(default="tanh_gelu", description=ACTIVATION_HELP)
    norm_eps: float = Field(default=1e-5, gt=0, description="Added to a variance.")
    dropout: Rate = Field(default=0.1, description=DROPOUT_HELP)
    embedding_dropout: Rate | None = Field(
        default=None, description="The same, of word vectors; as dropout where not set."
    )
    attention_dropout: Rate | None = Field(
        default=None, description="The same, of attention weights; as dropout where not set."
    )

    @model_validator(mode="after")
    def _check_heads(self) -> "Gpt2Config":
        if self.dim % self.heads:
            raise ValueError(f"dim = {self.dim} cannot be divided among heads = {self.heads}")
        return self


class RnnlmConfig(Config):
    """Recurrent: Elman 1990, LSTM or GRU."""

    kind: Literal["rnnlm"] = "rnnlm"
    cell: Literal["lstm", "gru", "elman", "sigmoid"] = Field(
        default="lstm", description="lstm, gru, elman, or elman with a sigmoid."
    )
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    layers: Positive = Field(default=1, description="Layers, one on the other.")
    tie_embeddings: bool = Field(
        default=False, description="One table for word vectors and output."
    )
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    input_dropout: Rate = Field(
        default=0.0, description="The same, of a layer's input, one mask for a window."
    )
    state_dropout: Rate = Field(
        default=0.0, description="The same, in recurrent products, one mask for a window."
    )


class LstmnConfig(Config):
    """An LSTM that looks at all it has read (Cheng et al. 2016)."""

    kind: Literal["lstmn"] = "lstmn"
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    align_dim: Positive | None = Field(
        default=None, description="Width inside the score; as hidden_dim where not set."
    )
    layers: Positive = Field(default=1, description="Layers, one on the other.")
    normalize: NormalizerName = Field(default="softmax", description=NORMALIZE_HELP)
    tie_embeddings: bool = Field(
        default=False, description="One table for word vectors and output."
    )
    max_slots: Positive | None = Field(
        default=None, description="Tokens that are remembered from one window to the next."
    )
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)


LanguageModelConfig = Annotated[Gpt2Config | RnnlmConfig | LstmnConfig, Field(discriminator="kind")]
