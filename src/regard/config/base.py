"""The base classes of all tables of settings: frozen, strict, without unknown keys."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

T = TypeVar("T")

MAX_NUMBER = 2**31 - 1
Positive = Annotated[int, Field(ge=1, le=MAX_NUMBER)]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]  # a seed may have 64 bits
Fraction = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(ge=0, lt=1)]
NonEmptyTuple = Annotated[tuple[T, ...], Field(strict=False, min_length=1)]
"""TOML has lists, frozen settings have tuples."""


class Config(BaseModel):
    """A table of settings; the description of a field is its help text and its comment in TOML."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _complete_tables(cls, values: object) -> object:
        """Complete each partial table from the default of its field.

        Pydantic alone would take the rest from the class of the table. So a task that declares
        `text: TextConfig = TextConfig(kind="words")` keeps its words if only text.size is given.
        """
        if not isinstance(values, Mapping):
            return values
        completed = dict(values)
        for name, field in cls.model_fields.items():
            if isinstance(field.default, Config) and isinstance(values.get(name), Mapping):
                completed[name] = complete_table(values[name], field.default)
        return completed


def complete_table(values: Mapping[str, object], default: Config) -> dict[str, object]:
    """Add the values that `default` sets itself; a table of another kind shares none of them."""
    default_kind = getattr(default, "kind", None)
    if default_kind is None:
        completed: dict[str, object] = {}
    elif values.get("kind", default_kind) == default_kind:
        completed = {"kind": default_kind}
    else:
        return dict(values)
    completed |= {name: getattr(default, name) for name in default.model_fields_set}
    for name, value in values.items():
        table = completed.get(name)
        if isinstance(table, Config) and isinstance(value, Mapping):
            value = complete_table(value, table)
        completed[name] = value
    return completed


class DataConfig(Config):
    """A [data] table: the arguments of a corpus."""

    corpus_class: ClassVar[str]  # "module:class"; `regard.data.build` imports it
    # The fields of records from a Python program, in one or more alternatives; () accepts none.
    record_fields: ClassVar[tuple[tuple[str, ...], ...]] = ()
    optional_record_fields: ClassVar[tuple[str, ...]] = ()  # read if every record has them
    tokenizer_kind: ClassVar[str | None] = None  # what suits this data; None: by its size
    record_format: ClassVar[str] = "jsonl"  # a key of WRITERS in `regard.data.records`
