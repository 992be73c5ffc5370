"""TODO regard.config.models.seq2seq."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive, Rate
from regard.config.models.common import (
    ACTIVATION_HELP,
    DIM_HELP,
    DROPOUT_HELP,
    HIDDEN_DIM_HELP,
    INIT_HELP,
    LAYERS_HELP,
    MAX_POSITIONS_HELP,
    NORMALIZE_HELP,
    OUTPUT_DIM_HELP,
    SCORE_HELP,
    STATE_DROPOUT_HELP,
    ActivationName,
    InitScheme,
    NormalizerName,
    ScoreName,
)


class EncDecConfig(Config):
    """One vector for the whole source (Cho et al. 2014)."""

    kind: Literal["encdec"] = "encdec"
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    output_dim: Positive | None = Field(default=None, description=OUTPUT_DIM_HELP)
    init: InitScheme = Field(default="paper", description=INIT_HELP)
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    state_dropout: Rate = Field(default=0.0, description=STATE_DROPOUT_HELP)


class Seq2SeqConfig(Config):
    """The encoder's last state, copied (Sutskever et al. 2014)."""

    kind: Literal["seq2seq"] = "seq2seq"
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    layers: Positive = Field(default=2, description=LAYERS_HELP)
    reverse: bool = Field(default=True, description="Read the source from its end.")
    init: InitScheme = Field(default="paper", description=INIT_HELP)
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    state_dropout: Rate = Field(default=0.0, description=STATE_DROPOUT_HELP)


class RnnSearchConfig(Config):
    """The first attention (Bahdanau et al. 2015)."""

    kind: Literal["rnnsearch"] = "rnnsearch"
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    align_dim: Positive | None = Field(
        default=None, description="Width inside the additive score; as hidden_dim where not set."
    )
    output_dim: Positive | None = Field(default=None, description=OUTPUT_DIM_HELP)
    score: ScoreName = Field(default="additive", description=SCORE_HELP)
    normalize: NormalizerName = Field(default="softmax", description=NORMALIZE_HELP)
    max_positions: Positive = Field(default=256, description=MAX_POSITIONS_HELP)
    reset: Literal["before", "after"] = Field(
        default="before", description="Reset gate before the product, as in the paper, or after."
    )
    readout: Literal["previous", "current"] = Field(
        default="previous",
        description="Output made from the state before, as in the paper, or from the new one.",
    )
    init: InitScheme = Field(default="paper", description=INIT_HELP)
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    state_dropout: Rate = Field(default=0.0, description=STATE_DROPOUT_HELP)


class LuongConfig(Config):
    """Attention after the recurrent step (Luong et al. 2015)."""

    kind: Literal["luong"] = "luong"
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    layers: Positive = Field(default=2, description=LAYERS_HELP)
    score: ScoreName = Field(default="general", description=SCORE_HELP)
    normalize: NormalizerName = Field(default="softmax", description=NORMALIZE_HELP)
    window: Literal["local_m", "local_p"] | None = Field(
        default=None, description="Look at a few positions only: local_m or local_p."
    )
    radius: Positive = Field(
        default=10, description="Positions to each side of the window's middle."
    )
    input_feeding: bool = Field(default=True, description="Feed what was read into the next step.")
    reverse: bool = Field(default=True, description="Read the source from its end.")
    max_positions: Positive = Field(default=256, description=MAX_POSITIONS_HELP)
    init: InitScheme = Field(default="paper", description=INIT_HELP)
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    state_dropout: Rate = Field(default=0.0, description=STATE_DROPOUT_HELP)


class TransformerConfig(Config):
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
    tie_embeddings: Literal["none", "decoder", "all"] = Field(
        default="none",
        description="One table for output and target words (decoder), and source words (all).",
    )
    scale_embeddings: bool = Field(
        default=True, description="Word vectors times sqrt(dim), as in the paper."
    )
    positions: Literal["sinusoidal", "halves", "learned"] = Field(
        default="sinusoidal",
        description="sinusoidal, halves (all sines before the cosines) or learned.",
    )
    max_positions: Positive = Field(default=512, description="Longest text, for learned positions.")
    score: ScoreName = Field(default="scaled_dot", description=SCORE_HELP)
    normalize: NormalizerName = Field(default="softmax", description=NORMALIZE_HELP)
    activation: ActivationName = Field(default="relu", description=ACTIVATION_HELP)
    output_bias: bool = Field(
        default=False, description="A bias of the output where its table is shared."
    )
    dropout: Rate = Field(default=0.1, description=DROPOUT_HELP)
    attention_dropout: Rate = Field(default=0.0, description="The same, of attention weights.")
    hidden_dropout: Rate = Field(
        default=0.0, description="The same, inside the feed-forward layers."
    )

    @model_validator(mode="after")
    def _check_heads(self) -> "TransformerConfig":
        if self.dim % self.heads:
            raise ValueError(f"dim = {self.dim} cannot be divided among heads = {self.heads}")
        return self


class RnmtConfig(Config):
    """A deep recurrent model with several heads (Chen et al. 2018)."""

    kind: Literal["rnmt"] = "rnmt"
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    layers: Positive = Field(default=2, description="Layers of the encoder.")
    decoder_layers: Positive | None = Field(
        default=None, description="Layers of the decoder; as the encoder's where not set."
    )
    heads: Positive = Field(default=4, description="Attentions side by side.")
    layer_norm: bool = Field(default=True, description="Normalise inside the cells.")
    query_state: Literal["previous", "current"] = Field(
        default="previous",
        description="Read by the first layer's state of the step before, or of this step.",
    )
    score: ScoreName = Field(default="additive", description=SCORE_HELP)
    normalize: NormalizerName = Field(default="softmax", description=NORMALIZE_HELP)
    max_positions: Positive = Field(default=256, description=MAX_POSITIONS_HELP)
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    attention_dropout: Rate = Field(default=0.0, description="The same, of attention weights.")


class LstmnFusionConfig(Config):
    """LSTMs that look at all they have read, and at the source (Cheng et al. 2016)."""

    kind: Literal["lstmn_fusion"] = "lstmn_fusion"
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    align_dim: Positive | None = Field(
        default=None, description="Width inside the scores; as hidden_dim where not set."
    )
    layers: Positive = Field(default=1, description=LAYERS_HELP)
    fusion: Literal["deep", "shallow"] = Field(
        default="deep", description="The source inside the cell (deep), or on top of it (shallow)."
    )
    normalize: NormalizerName = Field(default="softmax", description=NORMALIZE_HELP)
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)


class PointerConfig(Config):
    """Generates words, or points at those to copy (See et al. 2017)."""

    kind: Literal["pointer"] = "pointer"
    dim: Positive = Field(default=128, description=DIM_HELP)
    hidden_dim: Positive = Field(default=256, description="Width of a state.")
    align_dim: Positive | None = Field(
        default=None, description="Width inside the score; as hidden_dim where not set."
    )
    copying: bool = Field(default=True, description="Words of the source can be copied.")
    coverage: bool = Field(
        default=True, description="Attention knows, and is taught, what was looked at before."
    )
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)


TextPairModelConfig = (
    EncDecConfig
    | Seq2SeqConfig
    | RnnSearchConfig
    | LuongConfig
    | TransformerConfig
    | RnmtConfig
    | LstmnFusionConfig
)
