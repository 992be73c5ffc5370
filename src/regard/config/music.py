"""[data], [model] and [train] for music: piano rolls, and tunes in ABC."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.data import HELD_OUT, WHICH, Paths
from regard.config.model import ACTIVATION, DROPOUT, Activation
from regard.config.table import Part, Positive, Share, Table
from regard.config.train import Train
from regard.config.writer import Gpt2, Lstmn, Rnnlm

ROLLS = ("roll_rnn", "roll_gpt")  # models that read keys; the others read text


class RollsData(Table):
    """Your own piano rolls: pieces of steps of MIDI pitches."""

    kind: Literal["rolls"] = "rolls"
    train: Paths = Field(
        description="JSON: a list of pieces, or {train, valid, test} of such lists; or JSON lines, "
        "a piece a line. A piece is a list of steps, a step a list of MIDI pitches. .gz is "
        "unpacked."
    )
    dev: Paths | None = Field(default=None, description="The same, for validation while training.")
    test: Paths | None = Field(default=None, description="The same, for `regard score`.")
    held_out: Share = Field(default=0.1, description=HELD_OUT)


class AbcData(Table):
    """Your own tunes in ABC notation."""

    kind: Literal["abc"] = "abc"
    train: Paths = Field(description="Files of tunes, each from `X:` on; .gz is unpacked.")
    dev: Paths | None = Field(default=None, description="The same, for validation while training.")
    test: Paths | None = Field(default=None, description="The same, for `regard score`.")
    fields: str = Field(
        default="TRMLQPK",
        description="Letters of the fields that are kept; the rest is about the tune, not in it.",
    )
    held_out: Share = Field(default=0.1, description=HELD_OUT)


class NamedMusic(Table):
    """Public music, fetched when it is first needed."""

    kind: Literal["named"] = "named"
    name: Literal["jsb_chorales", "nottingham"] = Field(default="jsb_chorales", description=WHICH)


Music = Annotated[RollsData | AbcData | NamedMusic, Field(discriminator="kind")]


def is_rolls(data: RollsData | AbcData | NamedMusic) -> bool:
    """Keys that sound, step by step; else text."""
    return data.kind == "rolls" or (isinstance(data, NamedMusic) and data.name == "jsb_chorales")


class RollRnn(Table):
    """Recurrent, from the keys of a step to those of the next (Boulanger-Lewandowski 2012)."""

    kind: Literal["roll_rnn"] = "roll_rnn"
    cell: Literal["lstm", "gru", "elman"] = Field(default="lstm", description="lstm, gru or elman.")
    dim: Positive = Field(default=200, description="Width of a state.")
    layers: Positive = Field(default=1, description="Layers, one on the other.")
    dropout: Part = Field(default=0.0, description=DROPOUT)
    input_dropout: Part = Field(
        default=0.0, description="The same, of a layer's input, one mask for a piece."
    )
    state_dropout: Part = Field(
        default=0.0, description="The same, in recurrent products, one mask for a piece."
    )


class RollGpt(Table):
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
    activation: Activation = Field(default="gelu", description=ACTIVATION)
    dropout: Part = Field(default=0.1, description=DROPOUT)

    @model_validator(mode="after")
    def _is_divided(self) -> "RollGpt":
        if self.dim % self.heads:
            raise ValueError(f"dim = {self.dim} cannot be divided among heads = {self.heads}")
        return self


Musician = Annotated[RollRnn | RollGpt | Rnnlm | Gpt2 | Lstmn, Field(discriminator="kind")]


class MusicTrain(Train):
    """Training to make music."""

    longest: Positive = Field(
        default=512, description="Longer pieces (piano rolls, in steps) are trained on in parts."
    )
    context: Positive = Field(default=128, description="Tokens of tunes that are read at a time.")
    carry: bool = Field(
        default=False,
        description="Of tunes: go on with what was read before, window after window (rnnlm).",
    )
    metric: Literal["loss"] = Field(default="loss", description="What is better, on dev: loss.")
