"""[data]: where the examples come from. `regard.data.build` makes a corpus of it."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, Fraction, NonEmptyTuple, Positive

LANGUAGES = (
    *("en", "de", "nl", "sv", "da", "nb", "fr", "es", "it", "pt"),
    *("ro", "pl", "cs", "ru", "uk", "el", "hu", "tr", "fi", "ja"),
)
HELD_OUT_HELP = "Share of train that is held out for a dev or test that is not given."
PUBLIC_NAME_HELP = "Which one; `regard list` describes them."
FilePaths = Annotated[str, Field(min_length=1)] | NonEmptyTuple[str]


class DatesDataConfig(Config):
    """Dates as people write them, to ISO 8601: made here."""

    kind: Literal["dates"] = "dates"
    size: Positive = Field(default=100_000, description="Pairs to train on.")
    held_out: Positive = Field(default=1000, description="Pairs in dev, and in the test.")
    seed: Count = Field(default=0, description="Another seed, other pairs.")
    languages: NonEmptyTuple[str] = Field(
        default=LANGUAGES, description="Which languages, of these 20."
    )


class ReorderDataConfig(Config):
    """A made-up language into another, with known word alignments: made here."""

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


class FilesDataConfig(Config):
    """Your own files."""

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

    @model_validator(mode="after")
    def _check_sides(self) -> "FilesDataConfig":
        for setting, names in (("columns", self.columns), ("fields", self.fields)):
            for side in ("source", "target"):
                if list(names).count(side) != 1:
                    raise ValueError(f"{setting} must name {side!r} once, not {list(names)}")
        return self


class PublicTranslationDataConfig(Config):
    """A public corpus, fetched when it is first needed."""

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


class MixDataConfig(Config):
    """Several corpora, by weight."""

    kind: Literal["mix"] = "mix"
    seed: Count = Field(default=0, description="Of the draws.")
    parts: NonEmptyTuple[MixPartConfig] = Field(description="What is mixed.")


TranslateDataConfig = Annotated[
    DatesDataConfig
    | ReorderDataConfig
    | FilesDataConfig
    | PublicTranslationDataConfig
    | MixDataConfig,
    Field(discriminator="kind"),
]


class TextDataConfig(Config):
    """Your own texts, to write like them."""

    kind: Literal["text"] = "text"
    train: FilePaths = Field(description="Files or folders of plain text; .gz is unpacked.")
    dev: FilePaths | None = Field(
        default=None, description="The same, for validation while training."
    )
    test: FilePaths | None = Field(default=None, description="The same, for `regard score`.")
    unit: Literal["file", "line", "paragraph"] = Field(
        default="file", description="What one document is: a file, a line or a paragraph."
    )
    held_out: Fraction = Field(default=0.05, description=HELD_OUT_HELP)


class PublicTextDataConfig(Config):
    """A public text, fetched when it is first needed."""

    kind: Literal["public"] = "public"
    name: Literal["wikitext2", "tinyshakespeare"] = Field(
        default="tinyshakespeare", description=PUBLIC_NAME_HELP
    )


LanguageDataConfig = Annotated[TextDataConfig | PublicTextDataConfig, Field(discriminator="kind")]


class PlantedDataConfig(Config):
    """Documents whose class hangs on one word of one sentence: made here."""

    kind: Literal["planted"] = "planted"
    size: Positive = Field(default=4000, description="Documents to train on.")
    seed: Count = Field(default=0, description="Another seed, other documents.")
    held_out: Positive = Field(default=500, description="Documents in dev, and in the test.")
    classes: Positive = Field(default=10, description="Classes.")
    keywords_per_class: Positive = Field(default=3, description="Words that each of them hangs on.")
    filler_words: Positive = Field(default=500, description="Words that say nothing.")
    min_sentences: Positive = Field(default=18, description="Sentences of a document, at least.")
    max_sentences: Positive = Field(default=22, description="Sentences of a document, at most.")
    min_words: Positive = Field(default=5, description="Words of a sentence, at least.")
    max_words: Positive = Field(default=12, description="Words of a sentence, at most.")


class LabeledDataConfig(Config):
    """Your own texts with their classes."""

    kind: Literal["labeled"] = "labeled"
    train: FilePaths = Field(
        description="TSV, CSV or JSON lines (.gz is unpacked), two parallel files, or a folder of "
        "folders, one for each class, with .txt files in them."
    )
    dev: FilePaths | None = Field(
        default=None, description="The same, for validation while training."
    )
    test: FilePaths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["tsv", "csv", "jsonl", "parallel", "folder"] | None = Field(
        default=None,
        description="tsv, csv, jsonl, parallel or folder; not set, the names of the files tell.",
    )
    columns: NonEmptyTuple[str] | None = Field(
        default=None,
        description='What each column of a TSV or CSV without header is: "text", "pair", "label"; '
        '"-" skips one.',
    )
    fields: dict[str, str] | None = Field(
        default=None,
        description="What our fields are called in JSON lines, or in the header of a TSV or CSV.",
    )
    held_out: Fraction = Field(default=0.1, description=HELD_OUT_HELP)


class PublicLabeledDataConfig(Config):
    """Public texts with classes, fetched when they are first needed."""

    kind: Literal["public"] = "public"
    name: Literal["sst2", "imdb_sample", "tweeteval_emotion"] = Field(description=PUBLIC_NAME_HELP)


ClassifyDataConfig = Annotated[
    PlantedDataConfig | LabeledDataConfig | PublicLabeledDataConfig, Field(discriminator="kind")
]


class TaggedDataConfig(Config):
    """Your own sentences with a tag for each word, and perhaps a label."""

    kind: Literal["tagged"] = "tagged"
    train: FilePaths = Field(
        description="CoNLL columns or JSON lines (.gz is unpacked), or a folder with seq.in, "
        "seq.out and label."
    )
    dev: FilePaths | None = Field(
        default=None, description="The same, for validation while training."
    )
    test: FilePaths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["conll", "jsonl", "folder"] | None = Field(
        default=None, description="conll, jsonl or folder; not set, the names of the files tell."
    )
    scheme: Literal["bio", "iob1", "bioes"] = Field(
        default="bio", description="How the files write their tags: bio, iob1 or bioes."
    )
    columns: Annotated[tuple[int, int], Field(strict=False)] = Field(
        default=(0, -1),
        description="Of CoNLL: the columns of word and tag, from 0; -1: the last.",
    )
    held_out: Fraction = Field(default=0.1, description=HELD_OUT_HELP)


class PublicTagsDataConfig(Config):
    """Public tagged sentences, fetched when they are first needed."""

    kind: Literal["public"] = "public"
    name: Literal["wnut17", "atis", "snips"] = Field(description=PUBLIC_NAME_HELP)


class DialoguesDataConfig(Config):
    """Your own conversations, about anything, or about a database."""

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


class PublicDialoguesDataConfig(Config):
    """Public conversations, fetched when they are first needed."""

    kind: Literal["public"] = "public"
    name: Literal["camrest676", "woz2"] = Field(default="camrest676", description=PUBLIC_NAME_HELP)


ChatDataConfig = Annotated[
    DialoguesDataConfig | PublicDialoguesDataConfig, Field(discriminator="kind")
]
TagDataConfig = Annotated[TaggedDataConfig | PublicTagsDataConfig, Field(discriminator="kind")]


class HeadlinesDataConfig(Config):
    """News with names that must be copied: made here."""

    kind: Literal["headlines"] = "headlines"
    size: Positive = Field(default=10_000, description="Documents to train on.")
    seed: Count = Field(default=0, description="Another seed, other documents.")
    held_out: Positive = Field(default=500, description="Documents in dev, and in the test.")
    min_sentences: Positive = Field(default=3, description="Sentences of a document, at least.")
    max_sentences: Positive = Field(default=6, description="Sentences of a document, at most.")


class SummariesDataConfig(Config):
    """Your own documents with their summaries."""

    kind: Literal["summaries"] = "summaries"
    train: FilePaths = Field(
        description="TSV (document, tab, summary) or JSON lines; .gz is unpacked."
    )
    dev: FilePaths | None = Field(
        default=None, description="The same, for validation while training."
    )
    test: FilePaths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["tsv", "jsonl"] | None = Field(
        default=None, description="tsv or jsonl; not set, the names of the files tell."
    )
    fields: dict[str, str] = Field(
        default={"document": "document", "summary": "summary"},
        description="What our fields are called in JSON lines; a summary may be a list of several.",
    )
    held_out: Fraction = Field(default=0.1, description=HELD_OUT_HELP)

    @model_validator(mode="after")
    def _check_fields(self) -> "SummariesDataConfig":
        if set(self.fields) != {"document", "summary"}:
            raise ValueError(f"fields must name document and summary, not {list(self.fields)}")
        return self


class PublicSummariesDataConfig(Config):
    """Public documents with summaries, fetched when they are first needed."""

    kind: Literal["public"] = "public"
    name: Literal["aeslc", "scitldr"] = Field(description=PUBLIC_NAME_HELP)


SummarizeDataConfig = Annotated[
    HeadlinesDataConfig | SummariesDataConfig | PublicSummariesDataConfig,
    Field(discriminator="kind"),
]
