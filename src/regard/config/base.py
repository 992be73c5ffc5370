"""The base classes of all tables of settings: frozen, strict, without unknown keys."""

from typing import Annotated, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(ge=0, lt=1)]
NonEmptyTuple = Annotated[tuple[T, ...], Field(strict=False, min_length=1)]
"""TOML has lists, frozen settings have tuples."""


class Config(BaseModel):
    """A table of settings; the description of a field is its help text and its comment in TOML."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class DataConfig(Config):
    """A [data] table: the arguments of a corpus."""

    corpus_class: ClassVar[str]  # "module:class"; `regard.data.build` imports it
    # The fields of records from a Python program, in one or more alternatives; () accepts none.
    record_fields: ClassVar[tuple[tuple[str, ...], ...]] = ()
    optional_record_fields: ClassVar[tuple[str, ...]] = ()  # read if every record has them
    record_format: ClassVar[str] = "jsonl"  # a key of WRITERS in `regard.data.records`
