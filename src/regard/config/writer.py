"""[model] for language: models that write; fields and defaults are their classes' keywords."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.model import ACTIVATION, DIM, DROPOUT, HIDDEN, NORMALISE, Activation, Normaliser
from regard.config.table import Part, Positive, Table


class Gpt2(Table):
    """A transformer that only writes (Radford et al. 2019)."""

    kind: Literal["gpt2"] = "gpt2"
    dim: Positive = Field(default=768, description="Width of a state, and of a word vector.")
    heads: Positive = Field(
        default=12, description="Attentions side by side; dim is divided among them."
    )
    layers: Positive = Field(default=12, description="Layers, one on the other.")
    context: Positive = Field(default=1024, description="Tokens that it can read.")
    hidden_dim: Positive | None = Field(
        default=None,
        description="Width inside the feed-forward layers; four times dim where not set.",
    )
    activation: Activation = Field(default="tanh_gelu", description=ACTIVATION)
    norm_eps: float = Field(default=1e-5, gt=0, description="Added to a variance.")
    dropout: Part = Field(default=0.1, description=DROPOUT)
    embedding_dropout: Part | None = Field(
        default=None, description="The same, of word vectors; as dropout where not set."
    )
    attention_dropout: Part | None = Field(
        default=None, description="The same, of attention weights; as dropout where not set."
    )

    @model_validator(mode="after")
    def _is_divided(self) -> "Gpt2":
        if self.dim % self.heads:
            raise ValueError(f"dim = {self.dim} cannot be divided among heads = {self.heads}")
        return self


class Rnnlm(Table):
    """Recurrent: Elman 1990, LSTM or GRU."""

    kind: Literal["rnnlm"] = "rnnlm"
    cell: Literal["lstm", "gru", "elman", "sigmoid"] = Field(
        default="lstm", description="lstm, gru, elman, or elman with a sigmoid."
    )
    dim: Positive = Field(default=256, description=DIM)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN)
    layers: Positive = Field(default=1, description="Layers, one on the other.")
    tied: bool = Field(default=False, description="One table for word vectors and output.")
    dropout: Part = Field(default=0.0, description=DROPOUT)
    input_dropout: Part = Field(
        default=0.0, description="The same, of a layer's input, one mask for a window."
    )
    state_dropout: Part = Field(
        default=0.0, description="The same, in recurrent products, one mask for a window."
    )


class Lstmn(Table):
    """An LSTM that looks at all it has read (Cheng et al. 2016)."""

    kind: Literal["lstmn"] = "lstmn"
    dim: Positive = Field(default=256, description=DIM)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN)
    align_dim: Positive | None = Field(
        default=None, description="Width inside the score; as hidden_dim where not set."
    )
    layers: Positive = Field(default=1, description="Layers, one on the other.")
    normalise: Normaliser = Field(default="softmax", description=NORMALISE)
    tied: bool = Field(default=False, description="One table for word vectors and output.")
    longest: Positive | None = Field(
        default=None, description="Tokens that are remembered from one window to the next."
    )
    dropout: Part = Field(default=0.0, description=DROPOUT)


Writer = Annotated[Gpt2 | Rnnlm | Lstmn, Field(discriminator="kind")]
