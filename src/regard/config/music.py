"""[data], [model] and [train] for music: piano rolls, and tunes in ABC."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Fraction, Positive, Rate
from regard.config.data import HELD_OUT_HELP, PUBLIC_NAME_HELP, FilePaths
from regard.config.language import Gpt2Config, LstmnConfig, RnnlmConfig
from regard.config.model import ACTIVATION_HELP, DROPOUT_HELP, ActivationName

ROLL_MODELS = ("roll_rnn", "roll_gpt")  # models that read keys; the others read text


class RollsDataConfig(Config):
    """Your own piano rolls: pieces of steps of MIDI pitches."""

    kind: Literal["rolls"] = "rolls"
    train: FilePaths = Field(
        description="JSON: a list of pieces, or {train, valid, test} of such lists; or JSON lines, "
        "a piece a line. A piece is a list of steps, a step a list of MIDI pitches. .gz is "
        "unpacked."
    )
    dev: FilePaths | None = Field(
        default=None, description="The same, for validation while training."
    )
    test: FilePaths | None = Field(default=None, description="The same, for `regard score`.")
    held_out: Fraction = Field(default=0.1, description=HELD_OUT_HELP)


class AbcDataConfig(Config):
    """Your own tunes in ABC notation."""

    kind: Literal["abc"] = "abc"
    train: FilePaths = Field(description="Files of tunes, each from `X:` on; .gz is unpacked.")
    dev: FilePaths | None = Field(
        default=None, description="The same, for validation while training."
    )
    test: FilePaths | None = Field(default=None, description="The same, for `regard score`.")
    header_fields: str = Field(
        default="TRMLQPK",
        description="Letters of the fields that are kept; the rest is about the tune, not in it.",
    )
    held_out: Fraction = Field(default=0.1, description=HELD_OUT_HELP)


class PublicMusicDataConfig(Config):
    """Public music, fetched when it is first needed."""

    kind: Literal["public"] = "public"
    name: Literal["jsb_chorales", "nottingham"] = Field(
        default="jsb_chorales", description=PUBLIC_NAME_HELP
    )


MusicDataConfig = Annotated[
    RollsDataConfig | AbcDataConfig | PublicMusicDataConfig, Field(discriminator="kind")
]


def is_roll_data(data: RollsDataConfig | AbcDataConfig | PublicMusicDataConfig) -> bool:
    """Keys that sound, step by step; else text."""
    return data.kind == "rolls" or (
        isinstance(data, PublicMusicDataConfig) and data.name == "jsb_chorales"
    )


class RollRnnConfig(Config):
    """Recurrent, from the keys of a step to those of the next (Boulanger-Lewandowski 2012)."""

    kind: Literal["roll_rnn"] = "roll_rnn"
    cell: Literal["lstm", "gru", "elman"] = Field(default="lstm", description="lstm, gru or elman.")
    dim: Positive = Field(default=200, description="Width of a state.")
    layers: Positive = Field(default=1, description="Layers, one on the other.")
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    input_dropout: Rate = Field(
        default=0.0, description="The same, of a layer's input, one mask for a piece."
    )
    state_dropout: Rate = Field(
        default=0.0, description="The same, in recurrent products, one mask for a piece."
    )


class RollGptConfig(Config):
    """A transformer that looks back at the steps before, with GPT-2's blocks."""

    kind: Literal["roll_gpt"] = "roll_gpt"
    dim: Positive = Field(default=128, description="Width of a state.")
    heads: Positive = Field(
        default=4, description="Attentions side by side; dim is divided among them."
    )
    layers: Positive = Field(default=2, description="Layers, one on the other.")
    hidden_dim: Positive | None = Field(
        default=None,
        description="Width inside the feed-forward layers; four times dim where not set.",
    )
    activation: ActivationName = Field(default="gelu", description=ACTIVATION_HELP)
    dropout: Rate = Field(default=0.1, description=DROPOUT_HELP)

    @model_validator(mode="after")
    def _check_heads(self) -> "RollGptConfig":
        if self.dim % self.heads:
            raise ValueError(f"dim = {self.dim} cannot be divided among heads = {self.heads}")
        return self


MusicModelConfig = Annotated[
    RollRnnConfig | RollGptConfig | RnnlmConfig | Gpt2Config | LstmnConfig,
    Field(discriminator="kind"),
]
