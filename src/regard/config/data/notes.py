"""TODO regard.config.data.notes."""

from typing import ClassVar, Literal

from pydantic import Field

from regard.config.base import DataConfig, Fraction
from regard.config.data.common import HELD_OUT_HELP, PUBLIC_NAME_HELP, FilePaths


class RollsDataConfig(DataConfig):
    """Your own piano rolls: pieces of steps of MIDI pitches."""

    corpus_class: ClassVar = "regard.data.formats.piano_rolls:PianoRollFiles"
    record_fields: ClassVar = (("notes",),)
    record_format: ClassVar = "piano_rolls"
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


class AbcDataConfig(DataConfig):
    """Your own tunes in ABC notation."""

    corpus_class: ClassVar = "regard.data.formats.abc_files:AbcFiles"
    record_fields: ClassVar = (("abc",),)
    record_format: ClassVar = "abc"
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


class PublicMusicDataConfig(DataConfig):
    """Public music, fetched when it is first needed."""

    corpus_class: ClassVar = "regard.data.public.music:PublicMusic"
    kind: Literal["public"] = "public"
    name: Literal["jsb_chorales", "nottingham"] = Field(
        default="jsb_chorales", description=PUBLIC_NAME_HELP
    )


def is_roll_data(data: RollsDataConfig | AbcDataConfig | PublicMusicDataConfig) -> bool:
    """Keys that sound, step by step; else text."""
    return data.kind == "rolls" or (
        isinstance(data, PublicMusicDataConfig) and data.name == "jsb_chorales"
    )
