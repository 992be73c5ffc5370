"""[model] for classes: encoders; fields and defaults are their classes' keywords."""

from typing import Annotated, Literal

from pydantic import Field

from regard.config.table import Part, Positive, Table

DIM = "Width of a word vector."
DROPOUT = "Share of values set to zero in training."
ALIGN = "Width inside the score of the attention; as the states where not set."


class BiRnn(Table):
    """Recurrent, both ways, with attention over what was read (Lin et al. 2017)."""

    kind: Literal["birnn"] = "birnn"
    cell: Literal["lstm", "gru", "elman"] = Field(default="lstm", description="lstm, gru or elman.")
    dim: Positive = Field(default=128, description=DIM)
    hidden_dim: Positive = Field(default=128, description="Width of a state, in each direction.")
    layers: Positive = Field(default=1, description="Layers, one on the other.")
    bidirectional: bool = Field(default=True, description="Read from both ends.")
    pooling: Literal["last", "mean", "max", "attention"] = Field(
        default="attention", description="One vector of all states: last, mean, max or attention."
    )
    align_dim: Positive | None = Field(default=None, description=ALIGN)
    hops: Positive = Field(default=1, description="Attentions side by side, each with its vector.")
    dropout: Part = Field(default=0.0, description=DROPOUT)
    state_dropout: Part = Field(
        default=0.0, description="The same in recurrent products, one mask for a sequence."
    )


class Han(Table):
    """Attention over words, then over sentences (Yang et al. 2016)."""

    kind: Literal["han"] = "han"
    dim: Positive = Field(default=200, description=DIM)
    hidden_dim: Positive = Field(default=50, description="Width of a state, in each direction.")
    align_dim: Positive | None = Field(default=None, description=ALIGN)
    pooling: Literal["attention", "mean"] = Field(
        default="attention", description="attention, or for comparison mean."
    )
    dropout: Part = Field(default=0.0, description=DROPOUT)


Encoder = Annotated[BiRnn | Han, Field(discriminator="kind")]
