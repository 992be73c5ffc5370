"""TODO regard.config.data.dialogues."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from regard.config.base import DataConfig, Fraction, NonEmptyTuple
from regard.config.data.common import HELD_OUT_HELP, PUBLIC_NAME_HELP, FilePaths


class DialoguesDataConfig(DataConfig):
    """Your own conversations, about anything, or about a database."""

    corpus_class: ClassVar = "regard.data.formats.dialogues:DialogueFiles"
    record_fields: ClassVar = (("turns",), ("exchanges",))
    kind: Literal["dialogues"] = "dialogues"
    train: FilePaths = Field(
        description="A line for each turn, a blank line behind a conversation; or JSON lines."
    )
    dev: FilePaths | None = Field(
        default=None, description="The same, for validation while training."
    )
    test: FilePaths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["txt", "jsonl"] | None = Field(
        default=None, description="txt or jsonl; not set, the names of the files tell."
    )
    database: str | None = Field(
        default=None, description="What can be looked up: a .csv, .json or .sqlite file."
    )
    slot_columns: NonEmptyTuple[str] | None = Field(
        default=None, description="Columns of the database that people have wishes about."
    )
    held_out: Fraction = Field(default=0.1, description=HELD_OUT_HELP)

    @model_validator(mode="after")
    def _check_database(self) -> "DialoguesDataConfig":
        if (self.database is None) != (self.slot_columns is None):
            raise ValueError("database and slot_columns belong together: give both, or none")
        return self


class PublicDialoguesDataConfig(DataConfig):
    """Public conversations, fetched when they are first needed."""

    corpus_class: ClassVar = "regard.data.public.dialogues:PublicDialogues"
    kind: Literal["public"] = "public"
    name: Literal["camrest676", "woz2"] = Field(default="camrest676", description=PUBLIC_NAME_HELP)
