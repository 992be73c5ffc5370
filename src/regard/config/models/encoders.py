"""TODO regard.config.models.encoders."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, NonEmptyTuple, Positive, Rate
from regard.config.models.common import (
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


class BiRnnConfig(Config):
    """Recurrent, both ways, with attention over what was read (Lin et al. 2017)."""

    kind: Literal["birnn"] = "birnn"
    cell: Literal["lstm", "gru", "elman"] = Field(default="lstm", description="lstm, gru or elman.")
    dim: Positive = Field(default=128, description=DIM_HELP)
    hidden_dim: Positive = Field(default=128, description="Width of a state, in each direction.")
    layers: Positive = Field(default=1, description="Layers, one on the other.")
    bidirectional: bool = Field(default=True, description="Read from both ends.")
    pooling: Literal["last", "mean", "max", "attention"] = Field(
        default="attention", description="One vector of all states: last, mean, max or attention."
    )
    align_dim: Positive | None = Field(default=None, description=ALIGN_DIM_HELP)
    hops: Positive = Field(default=1, description="Attentions side by side, each with its vector.")
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    state_dropout: Rate = Field(
        default=0.0, description="The same in recurrent products, one mask for a sequence."
    )


class HanConfig(Config):
    """Attention over words, then over sentences (Yang et al. 2016)."""

    kind: Literal["han"] = "han"
    dim: Positive = Field(default=200, description=DIM_HELP)
    hidden_dim: Positive = Field(default=50, description="Width of a state, in each direction.")
    align_dim: Positive | None = Field(default=None, description=ALIGN_DIM_HELP)
    pooling: Literal["attention", "mean"] = Field(
        default="attention", description="attention, or for comparison mean."
    )
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)


class BertConfig(Config):
    """A transformer that reads both ways (Devlin et al. 2019)."""

    kind: Literal["bert"] = "bert"
    dim: Positive = Field(default=768, description="Width of a state, and of a word vector.")
    heads: Positive = Field(default=12, description=HEADS_HELP)
    layers: Positive = Field(default=12, description="Layers, one on the other.")
    max_positions: Positive = Field(default=512, description="Tokens that it can read.")
    segments: Count = Field(default=2, description="Texts that it can tell apart.")
    pooler: bool = Field(default=True, description="One vector of the whole, from its first state.")
    pretrain: Literal["none", "masked", "both"] = Field(
        default="none", description="Also weights to tell hidden words (masked), and what follows."
    )
    hidden_dim: Positive | None = Field(
        default=None,
        description="Width inside the feed-forward layers; four times dim where not set.",
    )
    activation: ActivationName = Field(default="gelu", description=ACTIVATION_HELP)
    norm_eps: float = Field(default=1e-12, gt=0, description="Added to a variance.")
    dropout: Rate = Field(default=0.1, description=DROPOUT_HELP)
    attention_dropout: Rate | None = Field(
        default=None, description="The same, of attention weights; as dropout where not set."
    )
    init_std: float = Field(default=0.02, gt=0, description="Deviation of weights at first.")

    @model_validator(mode="after")
    def _check_heads(self) -> "BertConfig":
        if self.dim % self.heads:
            raise ValueError(f"dim = {self.dim} cannot be divided among heads = {self.heads}")
        return self


class ElmoConfig(Config):
    """Letters, and a language model from each end, mixed (Peters et al. 2018)."""

    kind: Literal["elmo"] = "elmo"
    characters: Positive = Field(default=262, description="Letters that there are.")
    character_dim: Positive = Field(default=16, description="Width of a letter's vector.")
    filters: NonEmptyTuple[CharacterFilter] = Field(
        default=((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)),
        description="Convolutions of letters: how wide, how many.",
    )
    highway_layers: Count = Field(default=2, description="Highway layers over the convolutions.")
    dim: Positive = Field(default=512, description="Width of a state, in each direction.")
    hidden_dim: Positive = Field(default=4096, description="Cells of a layer; dim or more.")
    layers: Positive = Field(default=2, description="Layers in each direction.")
    state_clip: float = Field(default=3.0, gt=0, description="Cells and states are held to this.")
    layer_norm: bool = Field(
        default=False, description="Normalise each layer before they are mixed."
    )
    dropout: Rate = Field(default=0.1, description=DROPOUT_HELP)

    @model_validator(mode="after")
    def _check_widths(self) -> "ElmoConfig":
        if self.hidden_dim < self.dim:
            raise ValueError(f"hidden_dim = {self.hidden_dim} must be at least dim = {self.dim}")
        return self


class BilstmCrfConfig(Config):
    """Words and their letters, read both ways (Huang et al. 2015; Ma & Hovy 2016)."""

    kind: Literal["bilstm_crf"] = "bilstm_crf"
    dim: Positive = Field(default=100, description=DIM_HELP)
    hidden_dim: Positive = Field(default=200, description="Width of a state, in each direction.")
    layers: Positive = Field(default=1, description="Layers, one on the other.")
    characters: Positive = Field(default=262, description="Letters that there are.")
    character_dim: Positive = Field(default=30, description="Width of a letter's vector.")
    filters: NonEmptyTuple[CharacterFilter] = Field(
        default=((3, 30),), description="Convolutions of letters: how wide, how many."
    )
    character_output_dim: Positive = Field(
        default=30, description="Width of what letters add to a word."
    )
    dropout: Rate = Field(default=0.5, description=DROPOUT_HELP)


class BiRnnAttentionConfig(Config):
    """Words that look at each other, for slots and intents (Liu & Lane 2016)."""

    kind: Literal["birnn_attention"] = "birnn_attention"
    dim: Positive = Field(default=128, description=DIM_HELP)
    hidden_dim: Positive = Field(default=128, description="Width of a state, in each direction.")
    layers: Positive = Field(default=1, description="Layers, one on the other.")
    score: ScoreName = Field(default="additive", description=SCORE_HELP)
    normalize: NormalizerName = Field(default="softmax", description=NORMALIZE_HELP)
    dropout: Rate = Field(default=0.5, description=DROPOUT_HELP)
    state_dropout: Rate = Field(
        default=0.0, description="The same in recurrent products, one mask for a sequence."
    )


class BidafConfig(Config):
    """Context and question that ask each other (Seo et al. 2017)."""

    kind: Literal["bidaf"] = "bidaf"
    dim: Positive = Field(default=100, description=DIM_HELP)
    hidden_dim: Positive = Field(default=100, description="Width of a state, in each direction.")
    characters: Positive = Field(default=262, description="Letters that there are.")
    character_dim: Positive = Field(default=8, description="Width of a letter's vector.")
    filters: NonEmptyTuple[CharacterFilter] = Field(
        default=((5, 100),), description="Convolutions of letters: how wide, how many."
    )
    character_output_dim: Positive = Field(
        default=100, description="Width of what letters add to a word."
    )
    highway_layers: Count = Field(default=2, description="Highway layers over words and letters.")
    layers: Positive = Field(default=2, description="Layers over what attention has found.")
    use_words: bool = Field(default=True, description="Words have vectors of their own.")
    use_characters: bool = Field(default=True, description="Words are spelled.")
    c2q: bool = Field(default=True, description="Each word of the context looks at the question.")
    q2c: bool = Field(default=True, description="The question looks at the context.")
    dropout: Rate = Field(default=0.2, description=DROPOUT_HELP)

    @model_validator(mode="after")
    def _check_inputs(self) -> "BidafConfig":
        if not self.use_words and not self.use_characters:
            raise ValueError("words and letters are both false: there is nothing to read")
        return self
