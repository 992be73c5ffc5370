"""TODO regard.config.data.text_pairs."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, DataConfig, Fraction, NonEmptyTuple, Positive
from regard.config.data.common import LANGUAGES, FilePaths


class DatesDataConfig(DataConfig):
    """Dates as people write them, to ISO 8601: made here."""

    corpus_class: ClassVar = "regard.data.synthetic.dates:Dates"
    kind: Literal["dates"] = "dates"
    size: Positive = Field(default=100_000, description="Pairs to train on.")
    held_out: Positive = Field(default=1000, description="Pairs in dev, and in the test.")
    seed: Count = Field(default=0, description="Another seed, other pairs.")
    languages: NonEmptyTuple[str] = Field(
        default=LANGUAGES, description="Which languages, of these 20."
    )


class ReorderDataConfig(DataConfig):
    """A made-up language into another, with known word alignments: made here."""

    corpus_class: ClassVar = "regard.data.synthetic.reorder:ReorderedSentences"
    kind: Literal["reorder"] = "reorder"
    size: Positive = Field(default=20_000, description="Pairs to train on.")
    held_out: Positive = Field(default=500, description="Pairs in dev, and in the test.")
    seed: Count = Field(default=0, description="Another seed, another language.")
    order: Literal["same", "local", "far"] = Field(
        default="far",
        description="same (neighbours may change places), local (blocks of four backwards) or far "
        "(all backwards).",
    )
    vocabulary_size: Positive = Field(default=40, description="Words of the source language.")
    min_words: Positive = Field(default=6, description="Words of a source sentence, at least.")
    max_words: Positive = Field(default=12, description="Words of a source sentence, at most.")
    fertility: Fraction = Field(default=0.0, description="Share of words that become two.")


class FilesDataConfig(DataConfig):
    """Your own files."""

    corpus_class: ClassVar = "regard.data.formats.text_pairs:TextPairFiles"
    record_fields: ClassVar = (("source", "target"),)
    kind: Literal["files"] = "files"
    train: FilePaths = Field(
        description='One file, or the two sides of parallel text: ["train.en", "train.de"]. '
        '"-" is standard input; .gz is unpacked.'
    )
    dev: FilePaths | None = Field(
        default=None, description="The same, for validation while training."
    )
    test: FilePaths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["tsv", "parallel", "jsonl", "parquet"] | None = Field(
        default=None,
        description="tsv, parallel, jsonl or parquet; not set, the names of the files tell.",
    )
    columns: NonEmptyTuple[str] = Field(
        default=("source", "target"),
        description='What each column of a TSV is, in order, or each parallel file; "-" skips one.',
    )
    fields: dict[str, str] = Field(
        default={"source": "source", "target": "target"},
        description='What our fields are called in JSON lines or Parquet, as "translation.de".',
    )

    held_out: Fraction = Field(
        default=0.0,
        description="Share of train to hold out for each of dev and test that is not given, 0 to "
        "0.5.",
    )

    @model_validator(mode="after")
    def _check_sides(self) -> "FilesDataConfig":
        for setting, names in (("columns", self.columns), ("fields", self.fields)):
            for side in ("source", "target"):
                if list(names).count(side) != 1:
                    raise ValueError(f"{setting} must name {side!r} once, not {list(names)}")
        return self


class PublicTranslationDataConfig(DataConfig):
    """A public corpus, fetched when it is first needed."""

    corpus_class: ClassVar = "regard.data.public.translation:PublicTranslation"
    kind: Literal["public"] = "public"
    name: Literal["multi30k", "multi30k_tok", "tatoeba"] = Field(
        description="Which one; `regard list` describes them."
    )
    source: str = Field(default="en", description="Translate from this language,")
    target: str = Field(default="de", description="into this one.")

    @model_validator(mode="after")
    def _check_languages(self) -> "PublicTranslationDataConfig":
        if self.source == self.target:
            raise ValueError(f"source and target are both {self.source!r}")
        return self


SingleTranslateDataConfig = Annotated[
    DatesDataConfig | ReorderDataConfig | FilesDataConfig | PublicTranslationDataConfig,
    Field(discriminator="kind"),
]


class MixPartConfig(Config):
    """A corpus, and how much of it."""

    weight: float = Field(default=1.0, gt=0, description="How often, relative to the other parts.")
    data: SingleTranslateDataConfig = Field(description="Any other kind of data.")


class MixDataConfig(DataConfig):
    """Several corpora, by weight."""

    kind: Literal["mix"] = "mix"
    seed: Count = Field(default=0, description="Of the draws.")
    parts: NonEmptyTuple[MixPartConfig] = Field(description="What is mixed.")
