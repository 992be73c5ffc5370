"""[data] of dialogues."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from regard.config.base import DataConfig, NonEmptyTuple
from regard.config.data.data_fields import (
    AUTOMATIC_HELD_OUT_HELP,
    PUBLIC_NAME_HELP,
    SKIP_BAD_HELP,
    FilePaths,
    HeldOutShare,
)
from regard.errors import InputError


class DialoguesDataConfig(DataConfig):
    """Dialogues in your own files, optionally with a database."""

    corpus_class: ClassVar = "regard.data.formats.dialogues:DialogueFiles"
    record_fields: ClassVar = (("turns",), ("exchanges",))
    kind: Literal["dialogues"] = "dialogues"
    train: FilePaths = Field(
        description="Text with a line for each turn and a blank line after each dialogue, or JSON "
        "lines."
    )
    dev: FilePaths | None = Field(
        default=None, description="Files for validation, in the format of train."
    )
    test: FilePaths | None = Field(
        default=None, description="Files for `regard score`, in the format of train."
    )
    format: Literal["txt", "jsonl"] | None = Field(
        default=None, description="Format: txt or jsonl. Default: by file name."
    )
    database: str | None = Field(
        default=None,
        description="Database that the system searches: a .csv, .json or .sqlite file.",
    )
    slot_columns: NonEmptyTuple[str] | None = Field(
        default=None,
        description="Columns of the database that users constrain, such as area or price.",
    )
    held_out: HeldOutShare | None = Field(default=None, description=AUTOMATIC_HELD_OUT_HELP)
    skip_bad: bool = Field(default=False, description=SKIP_BAD_HELP)

    @model_validator(mode="after")
    def _check_database(self) -> "DialoguesDataConfig":
        if (self.database is None) != (self.slot_columns is None):
            raise InputError("database and slot_columns belong together: give both, or none")
        return self


class PublicDialoguesDataConfig(DataConfig):
    """Public dialogues, downloaded at first use."""

    corpus_class: ClassVar = "regard.data.public.dialogues:PublicDialogues"
    kind: Literal["public"] = "public"
    name: Literal["camrest676", "woz2"] = Field(default="camrest676", description=PUBLIC_NAME_HELP)
