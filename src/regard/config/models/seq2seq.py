"""[model] of encoder-decoder models."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive, Rate
from regard.config.models.model_fields import (
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
from regard.errors import InputError


class EncDecConfig(Config):
    """RNN encoder-decoder: one vector for the complete source (Cho et al. 2014)."""

    kind: Literal["encdec"] = "encdec"
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    output_dim: Positive | None = Field(default=None, description=OUTPUT_DIM_HELP)
    init: InitScheme = Field(default="paper", description=INIT_HELP)
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    state_dropout: Rate = Field(default=0.0, description=STATE_DROPOUT_HELP)


class Seq2SeqConfig(Config):
    """Sequence to sequence: the decoder starts from the last state of the encoder (Sutskever et al.
    2014).
    """

    kind: Literal["seq2seq"] = "seq2seq"
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    layers: Positive = Field(default=2, description=LAYERS_HELP)
    reverse: bool = Field(default=True, description="Read the source in reverse.")
    init: InitScheme = Field(default="paper", description=INIT_HELP)
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    state_dropout: Rate = Field(default=0.0, description=STATE_DROPOUT_HELP)


class RnnSearchConfig(Config):
    """RNNsearch: additive attention (Bahdanau et al. 2015)."""

    kind: Literal["rnnsearch"] = "rnnsearch"
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    align_dim: Positive | None = Field(
        default=None, description="Width inside the additive score. Default: hidden_dim."
    )
    output_dim: Positive | None = Field(default=None, description=OUTPUT_DIM_HELP)
    score: ScoreName = Field(default="additive", description=SCORE_HELP)
    normalize: NormalizerName = Field(default="softmax", description=NORMALIZE_HELP)
    max_positions: Positive = Field(default=256, description=MAX_POSITIONS_HELP)
    reset: Literal["before", "after"] = Field(
        default="before",
        description="Position of the reset gate: before the matrix product (as published) or "
        "after.",
    )
    readout: Literal["previous", "current"] = Field(
        default="previous",
        description="State that the output is computed from: previous (as published) or current.",
    )
    init: InitScheme = Field(default="paper", description=INIT_HELP)
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    state_dropout: Rate = Field(default=0.0, description=STATE_DROPOUT_HELP)


class LuongConfig(Config):
    """Global or local attention after the recurrent step (Luong et al. 2015)."""

    kind: Literal["luong"] = "luong"
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    layers: Positive = Field(default=2, description=LAYERS_HELP)
    score: ScoreName = Field(default="general", description=SCORE_HELP)
    normalize: NormalizerName = Field(default="softmax", description=NORMALIZE_HELP)
    window: Literal["local_m", "local_p"] | None = Field(
        default=None,
        description="Local attention: local_m (monotonic) or local_p (predictive). Default: "
        "global.",
    )
    radius: Positive = Field(
        default=10, description="Radius of the window of local attention, in positions."
    )
    input_feeding: bool = Field(
        default=True, description="Feed the attentional state into the next step."
    )
    reverse: bool = Field(default=True, description="Read the source in reverse.")
    max_positions: Positive = Field(default=256, description=MAX_POSITIONS_HELP)
    init: InitScheme = Field(default="paper", description=INIT_HELP)
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    state_dropout: Rate = Field(default=0.0, description=STATE_DROPOUT_HELP)


class TransformerConfig(Config):
    """The Transformer (Vaswani et al. 2017)."""

    kind: Literal["transformer"] = "transformer"
    dim: Positive = Field(
        default=256, description="Width of the states and of the token embeddings."
    )
    heads: Positive = Field(
        default=8, description="Number of attention heads; dim must be a multiple of it."
    )
    layers: Positive = Field(default=3, description="Number of layers of the encoder.")
    decoder_layers: Positive | None = Field(
        default=None,
        description="Number of layers of the decoder. Default: as many as the encoder has.",
    )
    hidden_dim: Positive | None = Field(
        default=None,
        description="Width inside the feed-forward layers. Default: four times dim.",
    )
    norm: Literal["post", "pre"] = Field(
        default="post",
        description="Layer normalization: post (after each sublayer, as published) or pre.",
    )
    tie_embeddings: Literal["none", "decoder", "all"] = Field(
        default="none",
        description="Embeddings that share weights: none, decoder (target and output) or all (also "
        "source).",
    )
    scale_embeddings: bool = Field(
        default=True, description="Multiply the embeddings by sqrt(dim), as published."
    )
    positions: Literal["sinusoidal", "halves", "learned"] = Field(
        default="sinusoidal",
        description="Position encoding: sinusoidal, halves (all sines before the cosines) or "
        "learned.",
    )
    max_positions: Positive = Field(
        default=512, description="Maximum length of a text with learned positions, in tokens."
    )
    score: ScoreName = Field(default="scaled_dot", description=SCORE_HELP)
    normalize: NormalizerName = Field(default="softmax", description=NORMALIZE_HELP)
    activation: ActivationName = Field(default="relu", description=ACTIVATION_HELP)
    output_bias: bool = Field(
        default=False,
        description="Add a bias to an output layer that shares weights with embeddings.",
    )
    dropout: Rate = Field(default=0.1, description=DROPOUT_HELP)
    attention_dropout: Rate = Field(
        default=0.0, description="Dropout of the attention weights, 0 to 1."
    )
    hidden_dropout: Rate = Field(
        default=0.0, description="Dropout inside the feed-forward layers, 0 to 1."
    )

    @model_validator(mode="after")
    def _check_heads(self) -> "TransformerConfig":
        if self.dim % self.heads:
            raise InputError(f"dim = {self.dim} cannot be divided among heads = {self.heads}")
        return self


class RnmtConfig(Config):
    """RNMT+: a deep recurrent model with multi-head attention (Chen et al. 2018)."""

    kind: Literal["rnmt"] = "rnmt"
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    layers: Positive = Field(default=2, description="Number of layers of the encoder.")
    decoder_layers: Positive | None = Field(
        default=None,
        description="Number of layers of the decoder. Default: as many as the encoder has.",
    )
    heads: Positive = Field(default=4, description="Number of attention heads.")
    layer_norm: bool = Field(default=True, description="Use layer normalization inside the cells.")
    query_state: Literal["previous", "current"] = Field(
        default="previous",
        description="State of the first layer that is the query: of the previous step or the "
        "current step.",
    )
    score: ScoreName = Field(default="additive", description=SCORE_HELP)
    normalize: NormalizerName = Field(default="softmax", description=NORMALIZE_HELP)
    max_positions: Positive = Field(default=256, description=MAX_POSITIONS_HELP)
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    attention_dropout: Rate = Field(
        default=0.0, description="Dropout of the attention weights, 0 to 1."
    )


class LstmnFusionConfig(Config):
    """LSTMNs as encoder and decoder, with attention fusion (Cheng et al. 2016)."""

    kind: Literal["lstmn_fusion"] = "lstmn_fusion"
    dim: Positive = Field(default=256, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    align_dim: Positive | None = Field(
        default=None, description="Width inside the additive scores. Default: hidden_dim."
    )
    layers: Positive = Field(default=1, description=LAYERS_HELP)
    fusion: Literal["deep", "shallow"] = Field(
        default="deep",
        description="Fusion of source and cell: deep (inside the cell) or shallow (after it).",
    )
    normalize: NormalizerName = Field(default="softmax", description=NORMALIZE_HELP)
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)


class PointerConfig(Config):
    """Pointer-generator network (See et al. 2017)."""

    kind: Literal["pointer"] = "pointer"
    dim: Positive = Field(default=128, description=DIM_HELP)
    hidden_dim: Positive = Field(default=256, description="Width of the hidden states.")
    align_dim: Positive | None = Field(
        default=None, description="Width inside the additive score. Default: hidden_dim."
    )
    copying: bool = Field(default=True, description="Allow copies of source words.")
    coverage: bool = Field(
        default=True,
        description="Use coverage: attention takes the sum of earlier weights as input, and a loss "
        "limits repetition.",
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
