"""[data] of pairs of texts: a source and a target."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, DataConfig, Fraction, NonEmptyTuple, Positive
from regard.config.data.data_fields import (
    AUTOMATIC_HELD_OUT_HELP,
    LANGUAGES,
    SKIP_BAD_HELP,
    FilePaths,
    HeldOutShare,
)
from regard.errors import InputError


class DatesDataConfig(DataConfig):
    """Synthetic dates as people write them, with the date in ISO 8601."""

    corpus_class: ClassVar = "regard.data.synthetic.dates:Dates"
    tokenizer_kind: ClassVar = "characters"
    kind: Literal["dates"] = "dates"
    size: Positive = Field(default=100_000, description="Number of training pairs.")
    held_out: Positive = Field(default=1000, description="Number of pairs in dev, and in test.")
    seed: Count = Field(default=0, description="Random seed of the pairs.")
    languages: NonEmptyTuple[str] = Field(
        default=LANGUAGES, description="Languages of the dates, of the 20 in the default."
    )


class ReorderDataConfig(DataConfig):
    """Synthetic sentences of two invented languages, with known word alignments."""

    corpus_class: ClassVar = "regard.data.synthetic.reorder:ReorderedSentences"
    kind: Literal["reorder"] = "reorder"
    size: Positive = Field(default=20_000, description="Number of training pairs.")
    held_out: Positive = Field(default=500, description="Number of pairs in dev, and in test.")
    seed: Count = Field(default=0, description="Random seed of the languages and sentences.")
    order: Literal["same", "local", "far"] = Field(
        default="far",
        description="Word order of the target: same (with swaps of neighbors), local (blocks of "
        "four reversed) or far (all reversed).",
    )
    vocabulary_size: Positive = Field(
        default=40, description="Number of words in the source language."
    )
    min_words: Positive = Field(
        default=6, description="Minimum number of words in a source sentence."
    )
    max_words: Positive = Field(
        default=12, description="Maximum number of words in a source sentence."
    )
    fertility: Fraction = Field(
        default=0.0, description="Share of source words, 0 to 1, that become two target words."
    )


class FilesDataConfig(DataConfig):
    """Pairs of texts in your own files."""

    corpus_class: ClassVar = "regard.data.formats.text_pairs:TextPairFiles"
    record_fields: ClassVar = (("source", "target"),)
    kind: Literal["files"] = "files"
    train: FilePaths = Field(
        description='One file, or the two sides of parallel text: ["train.en", "train.de"]. "-" is '
        "standard input. Files may be gzipped."
    )
    dev: FilePaths | None = Field(
        default=None, description="Files for validation, in the format of train."
    )
    test: FilePaths | None = Field(
        default=None, description="Files for `regard score`, in the format of train."
    )
    format: Literal["tsv", "csv", "parallel", "jsonl", "parquet"] | None = Field(
        default=None,
        description="Format: tsv, csv, parallel, jsonl or parquet. Default: by file name.",
    )
    columns: NonEmptyTuple[str] = Field(
        default=("source", "target"),
        description="Names of the columns of a TSV or CSV, or of the parallel files, in order; "
        '"-" skips a column.',
    )
    fields: dict[str, str] = Field(
        default={"source": "source", "target": "target"},
        description="Names of the fields in JSON lines or Parquet; a dot enters an object, as in "
        '"translation.de".',
    )

    held_out: HeldOutShare | None = Field(default=None, description=AUTOMATIC_HELD_OUT_HELP)
    skip_bad: bool = Field(default=False, description=SKIP_BAD_HELP)

    @model_validator(mode="after")
    def _check_sides(self) -> "FilesDataConfig":
        for setting, names in (("columns", self.columns), ("fields", self.fields)):
            for side in ("source", "target"):
                if list(names).count(side) != 1:
                    raise InputError(f"{setting} must name {side!r} once, not {list(names)}")
        return self


class PublicTranslationDataConfig(DataConfig):
    """A public parallel corpus, downloaded at first use."""

    corpus_class: ClassVar = "regard.data.public.translation:PublicTranslation"
    kind: Literal["public"] = "public"
    name: Literal["multi30k", "multi30k_tok", "tatoeba"] = Field(
        description="Name of the data set; `regard list` describes each."
    )
    source: str = Field(default="en", description='Language of the source, such as "en".')
    target: str = Field(default="de", description='Language of the target, such as "de".')

    @model_validator(mode="after")
    def _check_languages(self) -> "PublicTranslationDataConfig":
        if self.source == self.target:
            raise InputError(f"source and target are both {self.source!r}")
        return self


SingleTranslateDataConfig = Annotated[
    DatesDataConfig | ReorderDataConfig | FilesDataConfig | PublicTranslationDataConfig,
    Field(discriminator="kind"),
]


class MixPartConfig(Config):
    """One corpus of a mixture, and its weight."""

    weight: float = Field(
        default=1.0, gt=0, description="Weight of this corpus relative to the others, more than 0."
    )
    data: SingleTranslateDataConfig = Field(
        description="The corpus: a [data] table of any other kind."
    )


class MixDataConfig(DataConfig):
    """A mixture of several corpora."""

    kind: Literal["mix"] = "mix"
    seed: Count = Field(default=0, description="Random seed of the mixture.")
    parts: NonEmptyTuple[MixPartConfig] = Field(description="Corpora with their weights.")
