"""[model] for translation: one table for each; fields and defaults are the class's keywords."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.table import Part, Positive, Table

Score = Literal["dot", "scaled_dot", "general", "additive", "location", "cosine", "salience"]
Normaliser = Literal["softmax", "sparsemax", "entmax15", "reinforce", "straight_through"]
Start = Literal["paper", "scaled"]
Activation = Literal["relu", "gelu", "tanh_gelu", "swish", "tanh"]

DIM = "Width of a word vector."
HIDDEN = "Width of a state; as dim where not set."
OUTPUT = "Width before the output layer; as hidden_dim where not set."
SCORE = "How query and memory are compared; `regard list` shows the scores."
NORMALISE = "How energies become weights; `regard list` shows the normalisers."
LONGEST = "Longest source, for the location score."
START = "Weights to begin with: as in the paper, or scaled by width."
DROPOUT = "Share of values set to zero in training."
STATE_DROPOUT = "The same in recurrent products, one mask for a sequence."
ACTIVATION = "In the feed-forward layers: relu, gelu, tanh_gelu, swish or tanh."
LAYERS = "Layers of the encoder, and of the decoder."


class EncDec(Table):
    """One vector for the whole source (Cho et al. 2014)."""

    kind: Literal["encdec"] = "encdec"
    dim: Positive = Field(default=256, description=DIM)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN)
    output_dim: Positive | None = Field(default=None, description=OUTPUT)
    init: Start = Field(default="paper", description=START)
    dropout: Part = Field(default=0.0, description=DROPOUT)
    state_dropout: Part = Field(default=0.0, description=STATE_DROPOUT)


class Seq2Seq(Table):
    """The encoder's last state, copied (Sutskever et al. 2014)."""

    kind: Literal["seq2seq"] = "seq2seq"
    dim: Positive = Field(default=256, description=DIM)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN)
    layers: Positive = Field(default=2, description=LAYERS)
    reverse: bool = Field(default=True, description="Read the source from its end.")
    init: Start = Field(default="paper", description=START)
    dropout: Part = Field(default=0.0, description=DROPOUT)
    state_dropout: Part = Field(default=0.0, description=STATE_DROPOUT)


class RnnSearch(Table):
    """The first attention (Bahdanau et al. 2015)."""

    kind: Literal["rnnsearch"] = "rnnsearch"
    dim: Positive = Field(default=256, description=DIM)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN)
    align_dim: Positive | None = Field(
        default=None, description="Width inside the additive score; as hidden_dim where not set."
    )
    output_dim: Positive | None = Field(default=None, description=OUTPUT)
    score: Score = Field(default="additive", description=SCORE)
    normalise: Normaliser = Field(default="softmax", description=NORMALISE)
    longest: Positive = Field(default=256, description=LONGEST)
    reset: Literal["before", "after"] = Field(
        default="before", description="Reset gate before the product, as in the paper, or after."
    )
    readout: Literal["previous", "current"] = Field(
        default="previous",
        description="Output made from the state before, as in the paper, or from the new one.",
    )
    init: Start = Field(default="paper", description=START)
    dropout: Part = Field(default=0.0, description=DROPOUT)
    state_dropout: Part = Field(default=0.0, description=STATE_DROPOUT)


class Luong(Table):
    """Attention after the recurrent step (Luong et al. 2015)."""

    kind: Literal["luong"] = "luong"
    dim: Positive = Field(default=256, description=DIM)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN)
    layers: Positive = Field(default=2, description=LAYERS)
    score: Score = Field(default="general", description=SCORE)
    normalise: Normaliser = Field(default="softmax", description=NORMALISE)
    window: Literal["local_m", "local_p"] | None = Field(
        default=None, description="Look at a few positions only: local_m or local_p."
    )
    radius: Positive = Field(
        default=10, description="Positions to each side of the window's middle."
    )
    feed: bool = Field(default=True, description="Feed what was read into the next step.")
    reverse: bool = Field(default=True, description="Read the source from its end.")
    longest: Positive = Field(default=256, description=LONGEST)
    init: Start = Field(default="paper", description=START)
    dropout: Part = Field(default=0.0, description=DROPOUT)
    state_dropout: Part = Field(default=0.0, description=STATE_DROPOUT)


class Transformer(Table):
    """Attention only (Vaswani et al. 2017)."""

    kind: Literal["transformer"] = "transformer"
    dim: Positive = Field(default=256, description="Width of a state, and of a word vector.")
    heads: Positive = Field(
        default=8, description="Attentions side by side; dim is divided among them."
    )
    layers: Positive = Field(default=3, description="Layers of the encoder.")
    decoder_layers: Positive | None = Field(
        default=None, description="Layers of the decoder; as the encoder's where not set."
    )
    hidden_dim: Positive | None = Field(
        default=None,
        description="Width inside the feed-forward layers; four times dim where not set.",
    )
    norm: Literal["post", "pre"] = Field(
        default="post", description="Normalise after each layer, as in the paper, or before."
    )
    shared: Literal["none", "decoder", "all"] = Field(
        default="none",
        description="One table for output and target words (decoder), and source words (all).",
    )
    scaled: bool = Field(default=True, description="Word vectors times sqrt(dim), as in the paper.")
    positions: Literal["sinusoidal", "halves", "learned"] = Field(
        default="sinusoidal",
        description="sinusoidal, halves (all sines before the cosines) or learned.",
    )
    longest: Positive = Field(default=512, description="Longest text, for learned positions.")
    score: Score = Field(default="scaled_dot", description=SCORE)
    normalise: Normaliser = Field(default="softmax", description=NORMALISE)
    activation: Activation = Field(default="relu", description=ACTIVATION)
    output_bias: bool = Field(
        default=False, description="A bias of the output where its table is shared."
    )
    dropout: Part = Field(default=0.1, description=DROPOUT)
    attention_dropout: Part = Field(default=0.0, description="The same, of attention weights.")
    hidden_dropout: Part = Field(
        default=0.0, description="The same, inside the feed-forward layers."
    )

    @model_validator(mode="after")
    def _is_divided(self) -> "Transformer":
        if self.dim % self.heads:
            raise ValueError(f"dim = {self.dim} cannot be divided among heads = {self.heads}")
        return self


class Rnmt(Table):
    """A deep recurrent model with several heads (Chen et al. 2018)."""

    kind: Literal["rnmt"] = "rnmt"
    dim: Positive = Field(default=256, description=DIM)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN)
    layers: Positive = Field(default=2, description="Layers of the encoder.")
    decoder_layers: Positive | None = Field(
        default=None, description="Layers of the decoder; as the encoder's where not set."
    )
    heads: Positive = Field(default=4, description="Attentions side by side.")
    norm: bool = Field(default=True, description="Normalise inside the cells.")
    context: Literal["previous", "current"] = Field(
        default="previous",
        description="Read by the first layer's state of the step before, or of this step.",
    )
    score: Score = Field(default="additive", description=SCORE)
    normalise: Normaliser = Field(default="softmax", description=NORMALISE)
    longest: Positive = Field(default=256, description=LONGEST)
    dropout: Part = Field(default=0.0, description=DROPOUT)
    attention_dropout: Part = Field(default=0.0, description="The same, of attention weights.")


class LstmnFusion(Table):
    """LSTMs that look at all they have read, and at the source (Cheng et al. 2016)."""

    kind: Literal["lstmn_fusion"] = "lstmn_fusion"
    dim: Positive = Field(default=256, description=DIM)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN)
    align_dim: Positive | None = Field(
        default=None, description="Width inside the scores; as hidden_dim where not set."
    )
    layers: Positive = Field(default=1, description=LAYERS)
    fusion: Literal["deep", "shallow"] = Field(
        default="deep", description="The source inside the cell (deep), or on top of it (shallow)."
    )
    normalise: Normaliser = Field(default="softmax", description=NORMALISE)
    dropout: Part = Field(default=0.0, description=DROPOUT)


class Pointer(Table):
    """Generates words, or points at those to copy (See et al. 2017)."""

    kind: Literal["pointer"] = "pointer"
    dim: Positive = Field(default=128, description=DIM)
    hidden_dim: Positive = Field(default=256, description="Width of a state.")
    align_dim: Positive | None = Field(
        default=None, description="Width inside the score; as hidden_dim where not set."
    )
    copying: bool = Field(default=True, description="Words of the source can be copied.")
    coverage: bool = Field(
        default=True, description="Attention knows, and is taught, what was looked at before."
    )
    dropout: Part = Field(default=0.0, description=DROPOUT)


Pairing = EncDec | Seq2Seq | RnnSearch | Luong | Transformer | Rnmt | LstmnFusion
Translator = Annotated[Pairing, Field(discriminator="kind")]
Summariser = Annotated[Pairing | Pointer, Field(discriminator="kind")]
