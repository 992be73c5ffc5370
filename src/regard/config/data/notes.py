"""[data] of music: piano rolls, and tunes in ABC notation."""

from typing import ClassVar, Literal

from pydantic import Field

from regard.config.base import DataConfig
from regard.config.data.data_fields import (
    AUTOMATIC_HELD_OUT_HELP,
    PUBLIC_NAME_HELP,
    SKIP_BAD_HELP,
    FilePaths,
    HeldOutShare,
)


class RollsDataConfig(DataConfig):
    """Piano rolls in your own files."""

    corpus_class: ClassVar = "regard.data.formats.piano_rolls:PianoRollFiles"
    record_fields: ClassVar = (("notes",),)
    record_format: ClassVar = "piano_rolls"
    kind: Literal["rolls"] = "rolls"
    train: FilePaths = Field(
        description="JSON: a list of pieces, or {train, valid, test} with such lists; or JSON lines"
        " with one piece each. A piece is a list of steps, a step a list of MIDI "
        "pitches. Files may be gzipped."
    )
    dev: FilePaths | None = Field(
        default=None, description="Files for validation, in the format of train."
    )
    test: FilePaths | None = Field(
        default=None, description="Files for `regard score`, in the format of train."
    )
    held_out: HeldOutShare | None = Field(default=None, description=AUTOMATIC_HELD_OUT_HELP)
    skip_bad: bool = Field(default=False, description=SKIP_BAD_HELP)


class AbcDataConfig(DataConfig):
    """Tunes in ABC notation in your own files."""

    corpus_class: ClassVar = "regard.data.formats.abc_files:AbcFiles"
    record_fields: ClassVar = (("abc",),)
    record_format: ClassVar = "abc"
    kind: Literal["abc"] = "abc"
    train: FilePaths = Field(
        description="Files of tunes, each of which starts with `X:`. Files may be gzipped."
    )
    dev: FilePaths | None = Field(
        default=None, description="Files for validation, in the format of train."
    )
    test: FilePaths | None = Field(
        default=None, description="Files for `regard score`, in the format of train."
    )
    header_fields: str = Field(
        default="TRMLQPK",
        description="Letters of the header fields to keep; others, such as the source of a tune, "
        "are removed.",
    )
    held_out: HeldOutShare | None = Field(default=None, description=AUTOMATIC_HELD_OUT_HELP)
    skip_bad: bool = Field(default=False, description=SKIP_BAD_HELP)


class PublicMusicDataConfig(DataConfig):
    """Public music, downloaded at first use."""

    corpus_class: ClassVar = "regard.data.public.music:PublicMusic"
    kind: Literal["public"] = "public"
    name: Literal["jsb_chorales", "nottingham"] = Field(
        default="jsb_chorales", description=PUBLIC_NAME_HELP
    )


def is_roll_data(data: RollsDataConfig | AbcDataConfig | PublicMusicDataConfig) -> bool:
    """Return whether the data are piano rolls rather than tunes in ABC notation."""
    return data.kind == "rolls" or (
        isinstance(data, PublicMusicDataConfig) and data.name == "jsb_chorales"
    )
