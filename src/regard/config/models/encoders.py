"""[model] of encoders; the fields are the keywords of the model classes."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, NonEmptyTuple, Positive, Rate
from regard.config.models.model_fields import (
    ACTIVATION_HELP,
    ALIGN_DIM_HELP,
    DIM_HELP,
    DROPOUT_HELP,
    HEADS_HELP,
    NORMALIZE_HELP,
    SCORE_HELP,
    ActivationName,
    CharacterFilter,
    NormalizerName,
    ScoreName,
)
from regard.errors import InputError


class BiRnnConfig(Config):
    """A bidirectional RNN with attention pooling (Lin et al. 2017)."""

    kind: Literal["birnn"] = "birnn"
    cell: Literal["lstm", "gru", "elman"] = Field(
        default="lstm", description="Recurrent cell: lstm, gru or elman."
    )
    dim: Positive = Field(default=128, description=DIM_HELP)
    hidden_dim: Positive = Field(
        default=128, description="Width of the hidden states in each direction."
    )
    layers: Positive = Field(default=1, description="Number of layers.")
    bidirectional: bool = Field(default=True, description="Read the text in both directions.")
    pooling: Literal["last", "mean", "max", "attention"] = Field(
        default="attention",
        description="Pooling of the states into one vector: last, mean, max or attention.",
    )
    align_dim: Positive | None = Field(default=None, description=ALIGN_DIM_HELP)
    hops: Positive = Field(
        default=1,
        description="Number of attentions in the pooling; their vectors are concatenated.",
    )
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    state_dropout: Rate = Field(
        default=0.0,
        description="Dropout of the recurrent connections, 0 to 1, with one mask for each "
        "sequence.",
    )


class HanConfig(Config):
    """HAN: attention over words, then over sentences (Yang et al. 2016)."""

    kind: Literal["han"] = "han"
    dim: Positive = Field(default=200, description=DIM_HELP)
    hidden_dim: Positive = Field(
        default=50, description="Width of the hidden states in each direction."
    )
    align_dim: Positive | None = Field(default=None, description=ALIGN_DIM_HELP)
    pooling: Literal["attention", "mean"] = Field(
        default="attention",
        description="Pooling of words and sentences: attention, or mean for comparison.",
    )
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)


class BertConfig(Config):
    """BERT: a bidirectional transformer encoder (Devlin et al. 2019)."""

    kind: Literal["bert"] = "bert"
    dim: Positive = Field(
        default=768, description="Width of the states and of the token embeddings."
    )
    heads: Positive = Field(default=12, description=HEADS_HELP)
    layers: Positive = Field(default=12, description="Number of layers.")
    max_positions: Positive = Field(
        default=512, description="Maximum length of an input, in tokens."
    )
    segments: Count = Field(
        default=2, description="Number of segment embeddings; 2 for pairs of texts."
    )
    pooler: bool = Field(
        default=True, description="Add a layer that pools the state of the first token."
    )
    pretrain: Literal["none", "masked", "both"] = Field(
        default="none",
        description="Pretraining heads: none, masked (masked tokens), or both (also next "
        "sentence).",
    )
    hidden_dim: Positive | None = Field(
        default=None,
        description="Width inside the feed-forward layers. Default: four times dim.",
    )
    activation: ActivationName = Field(default="gelu", description=ACTIVATION_HELP)
    norm_eps: float = Field(
        default=1e-12, gt=0, description="Epsilon of layer normalization, more than 0."
    )
    dropout: Rate = Field(default=0.1, description=DROPOUT_HELP)
    attention_dropout: Rate | None = Field(
        default=None, description="Dropout of the attention weights, 0 to 1. Default: dropout."
    )
    init_std: float = Field(
        default=0.02, gt=0, description="Standard deviation of the initial weights, more than 0."
    )

    @model_validator(mode="after")
    def _check_heads(self) -> "BertConfig":
        if self.dim % self.heads:
            raise InputError(f"dim = {self.dim} cannot be divided among heads = {self.heads}")
        return self


class ElmoConfig(Config):
    """ELMo: a mixture of the layers of a bidirectional language model over characters (Peters et
    al. 2018).
    """

    kind: Literal["elmo"] = "elmo"
    characters: Positive = Field(
        default=262, description="Number of different characters (bytes and marks)."
    )
    character_dim: Positive = Field(default=16, description="Width of the character embeddings.")
    filters: NonEmptyTuple[CharacterFilter] = Field(
        default=((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)),
        description="Character convolutions, as [width, number of filters].",
    )
    highway_layers: Count = Field(
        default=2, description="Number of highway layers after the convolutions."
    )
    dim: Positive = Field(default=512, description="Width of the hidden states in each direction.")
    hidden_dim: Positive = Field(
        default=4096, description="Number of LSTM cells in a layer, at least dim."
    )
    layers: Positive = Field(default=2, description="Number of layers in each direction.")
    state_clip: float = Field(
        default=3.0,
        gt=0,
        description="Limit of the absolute value of cells and states, more than 0.",
    )
    layer_norm: bool = Field(default=False, description="Normalize each layer before the mixture.")
    dropout: Rate = Field(default=0.1, description=DROPOUT_HELP)

    @model_validator(mode="after")
    def _check_widths(self) -> "ElmoConfig":
        if self.hidden_dim < self.dim:
            raise InputError(f"hidden_dim = {self.hidden_dim} must be at least dim = {self.dim}")
        return self


class BilstmCrfConfig(Config):
    """A bidirectional LSTM over words and characters, for a CRF (Huang et al. 2015; Ma & Hovy
    2016).
    """

    kind: Literal["bilstm_crf"] = "bilstm_crf"
    dim: Positive = Field(default=100, description=DIM_HELP)
    hidden_dim: Positive = Field(
        default=200, description="Width of the hidden states in each direction."
    )
    layers: Positive = Field(default=1, description="Number of layers.")
    characters: Positive = Field(
        default=262, description="Number of different characters (bytes and marks)."
    )
    character_dim: Positive = Field(default=30, description="Width of the character embeddings.")
    filters: NonEmptyTuple[CharacterFilter] = Field(
        default=((3, 30),), description="Character convolutions, as [width, number of filters]."
    )
    character_output_dim: Positive = Field(
        default=30, description="Width of the word vectors that are built from characters."
    )
    dropout: Rate = Field(default=0.5, description=DROPOUT_HELP)


class BiRnnAttentionConfig(Config):
    """A bidirectional RNN with attention, for slots and intents (Liu & Lane 2016)."""

    kind: Literal["birnn_attention"] = "birnn_attention"
    dim: Positive = Field(default=128, description=DIM_HELP)
    hidden_dim: Positive = Field(
        default=128, description="Width of the hidden states in each direction."
    )
    layers: Positive = Field(default=1, description="Number of layers.")
    score: ScoreName = Field(default="additive", description=SCORE_HELP)
    normalize: NormalizerName = Field(default="softmax", description=NORMALIZE_HELP)
    dropout: Rate = Field(default=0.5, description=DROPOUT_HELP)
    state_dropout: Rate = Field(
        default=0.0,
        description="Dropout of the recurrent connections, 0 to 1, with one mask for each "
        "sequence.",
    )


class BidafConfig(Config):
    """BiDAF: attention from context to question, and back (Seo et al. 2017)."""

    kind: Literal["bidaf"] = "bidaf"
    dim: Positive = Field(default=100, description=DIM_HELP)
    hidden_dim: Positive = Field(
        default=100, description="Width of the hidden states in each direction."
    )
    characters: Positive = Field(
        default=262, description="Number of different characters (bytes and marks)."
    )
    character_dim: Positive = Field(default=8, description="Width of the character embeddings.")
    filters: NonEmptyTuple[CharacterFilter] = Field(
        default=((5, 100),), description="Character convolutions, as [width, number of filters]."
    )
    character_output_dim: Positive = Field(
        default=100, description="Width of the word vectors that are built from characters."
    )
    highway_layers: Count = Field(
        default=2, description="Number of highway layers over words and characters."
    )
    layers: Positive = Field(
        default=2, description="Number of recurrent layers after the attention."
    )
    use_words: bool = Field(default=True, description="Use word embeddings.")
    use_characters: bool = Field(default=True, description="Use the characters of words.")
    c2q: bool = Field(default=True, description="Use attention from context to question.")
    q2c: bool = Field(default=True, description="Use attention from question to context.")
    dropout: Rate = Field(default=0.2, description=DROPOUT_HELP)

    @model_validator(mode="after")
    def _check_inputs(self) -> "BidafConfig":
        if not self.use_words and not self.use_characters:
            raise InputError("words and letters are both false: there is nothing to read")
        return self
