"""[data]: where the examples come from. `regard.corpora.build` makes a corpus of it."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.table import Count, Positive, Several, Share, Table

LANGUAGES = (
    *("en", "de", "nl", "sv", "da", "nb", "fr", "es", "it", "pt"),
    *("ro", "pl", "cs", "ru", "uk", "el", "hu", "tr", "fi", "ja"),
)
HELD_OUT = "Share of train that is held out for a dev or test that is not given."
WHICH = "Which one; `regard list` describes them."
Paths = Annotated[str, Field(min_length=1)] | Several[str]


class DatesData(Table):
    """Dates as people write them, to ISO 8601: made here."""

    kind: Literal["dates"] = "dates"
    size: Positive = Field(default=100_000, description="Pairs to train on.")
    held_out: Positive = Field(default=1000, description="Pairs in dev, and in the test.")
    seed: Count = Field(default=0, description="Another seed, other pairs.")
    languages: Several[str] = Field(default=LANGUAGES, description="Which languages, of these 20.")


class ReorderData(Table):
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
    words: Positive = Field(default=40, description="Words of the source language.")
    shortest: Positive = Field(default=6, description="Words of a source sentence, at least.")
    longest: Positive = Field(default=12, description="Words of a source sentence, at most.")
    fertility: Share = Field(default=0.0, description="Share of words that become two.")


class FilesData(Table):
    """Your own files."""

    kind: Literal["files"] = "files"
    train: Paths = Field(
        description='One file, or the two sides of parallel text: ["train.en", "train.de"]. '
        '"-" is standard input; .gz is unpacked.'
    )
    dev: Paths | None = Field(default=None, description="The same, for validation while training.")
    test: Paths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["tsv", "parallel", "jsonl", "parquet"] | None = Field(
        default=None,
        description="tsv, parallel, jsonl or parquet; not set, the names of the files tell.",
    )
    columns: Several[str] = Field(
        default=("source", "target"),
        description='What each column of a TSV is, in order, or each parallel file; "-" skips one.',
    )
    fields: dict[str, str] = Field(
        default={"source": "source", "target": "target"},
        description='What our fields are called in JSON lines or Parquet, as "translation.de".',
    )

    @model_validator(mode="after")
    def _has_both_sides(self) -> "FilesData":
        for where, names in (("columns", self.columns), ("fields", self.fields)):
            for needed in ("source", "target"):
                if list(names).count(needed) != 1:
                    raise ValueError(f"{where} must name {needed!r} once, not {list(names)}")
        return self


class NamedData(Table):
    """A public corpus, fetched when it is first needed."""

    kind: Literal["named"] = "named"
    name: Literal["multi30k", "multi30k_tok", "tatoeba"] = Field(
        description="Which one; `regard list` describes them."
    )
    source: str = Field(default="en", description="Translate from this language,")
    target: str = Field(default="de", description="into this one.")

    @model_validator(mode="after")
    def _differs(self) -> "NamedData":
        if self.source == self.target:
            raise ValueError(f"source and target are both {self.source!r}")
        return self


One = Annotated[DatesData | ReorderData | FilesData | NamedData, Field(discriminator="kind")]


class Portion(Table):
    """A corpus, and how much of it."""

    weight: float = Field(default=1.0, gt=0, description="How often, relative to the other parts.")
    data: One = Field(description="Any other kind of data.")


class MixData(Table):
    """Several corpora, by weight."""

    kind: Literal["mix"] = "mix"
    seed: Count = Field(default=0, description="Of the draws.")
    parts: Several[Portion] = Field(description="What is mixed.")


Pairs = Annotated[
    DatesData | ReorderData | FilesData | NamedData | MixData, Field(discriminator="kind")
]


class TextData(Table):
    """Your own texts, to write like them."""

    kind: Literal["text"] = "text"
    train: Paths = Field(description="Files or folders of plain text; .gz is unpacked.")
    dev: Paths | None = Field(default=None, description="The same, for validation while training.")
    test: Paths | None = Field(default=None, description="The same, for `regard score`.")
    unit: Literal["file", "line", "paragraph"] = Field(
        default="file", description="What one document is: a file, a line or a paragraph."
    )
    held_out: Share = Field(default=0.05, description=HELD_OUT)


class NamedText(Table):
    """A public text, fetched when it is first needed."""

    kind: Literal["named"] = "named"
    name: Literal["wikitext2", "tinyshakespeare"] = Field(
        default="tinyshakespeare", description=WHICH
    )


Texts = Annotated[TextData | NamedText, Field(discriminator="kind")]


class PlantedData(Table):
    """Documents whose class hangs on one word of one sentence: made here."""

    kind: Literal["planted"] = "planted"
    size: Positive = Field(default=4000, description="Documents to train on.")
    seed: Count = Field(default=0, description="Another seed, other documents.")
    held_out: Positive = Field(default=500, description="Documents in dev, and in the test.")
    classes: Positive = Field(default=10, description="Classes.")
    keys: Positive = Field(default=3, description="Words that each of them hangs on.")
    words: Positive = Field(default=500, description="Words that say nothing.")
    fewest: Positive = Field(default=18, description="Sentences of a document, at least.")
    most: Positive = Field(default=22, description="Sentences of a document, at most.")
    shortest: Positive = Field(default=5, description="Words of a sentence, at least.")
    longest: Positive = Field(default=12, description="Words of a sentence, at most.")


class LabelledData(Table):
    """Your own texts with their classes."""

    kind: Literal["labelled"] = "labelled"
    train: Paths = Field(
        description="TSV, CSV or JSON lines (.gz is unpacked), two parallel files, or a folder of "
        "folders, one for each class, with .txt files in them."
    )
    dev: Paths | None = Field(default=None, description="The same, for validation while training.")
    test: Paths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["tsv", "csv", "jsonl", "parallel", "folder"] | None = Field(
        default=None,
        description="tsv, csv, jsonl, parallel or folder; not set, the names of the files tell.",
    )
    columns: Several[str] | None = Field(
        default=None,
        description='What each column of a TSV or CSV without header is: "text", "pair", "label"; '
        '"-" skips one.',
    )
    fields: dict[str, str] | None = Field(
        default=None,
        description="What our fields are called in JSON lines, or in the header of a TSV or CSV.",
    )
    held_out: Share = Field(default=0.1, description=HELD_OUT)


class NamedLabelled(Table):
    """Public texts with classes, fetched when they are first needed."""

    kind: Literal["named"] = "named"
    name: Literal["sst2", "imdb_sample", "tweeteval_emotion"] = Field(description=WHICH)


Labelled = Annotated[PlantedData | LabelledData | NamedLabelled, Field(discriminator="kind")]


class TaggedData(Table):
    """Your own sentences with a tag for each word, and perhaps a label."""

    kind: Literal["tagged"] = "tagged"
    train: Paths = Field(
        description="CoNLL columns or JSON lines (.gz is unpacked), or a folder with seq.in, "
        "seq.out and label."
    )
    dev: Paths | None = Field(default=None, description="The same, for validation while training.")
    test: Paths | None = Field(default=None, description="The same, for `regard score`.")
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
    held_out: Share = Field(default=0.1, description=HELD_OUT)


class NamedTags(Table):
    """Public tagged sentences, fetched when they are first needed."""

    kind: Literal["named"] = "named"
    name: Literal["wnut17", "atis", "snips"] = Field(description=WHICH)


class DialogueData(Table):
    """Your own conversations, about anything, or about a database."""

    kind: Literal["dialogues"] = "dialogues"
    train: Paths = Field(
        description="A line for each turn, a blank line behind a conversation; or JSON lines."
    )
    dev: Paths | None = Field(default=None, description="The same, for validation while training.")
    test: Paths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["txt", "jsonl"] | None = Field(
        default=None, description="txt or jsonl; not set, the names of the files tell."
    )
    database: str | None = Field(
        default=None, description="What can be looked up: a .csv, .json or .sqlite file."
    )
    asked: Several[str] | None = Field(
        default=None, description="Columns of the database that people have wishes about."
    )
    held_out: Share = Field(default=0.1, description=HELD_OUT)

    @model_validator(mode="after")
    def _asks(self) -> "DialogueData":
        if (self.database is None) != (self.asked is None):
            raise ValueError("database and asked belong together: give both, or none")
        return self


class NamedDialogues(Table):
    """Public conversations, fetched when they are first needed."""

    kind: Literal["named"] = "named"
    name: Literal["camrest676", "woz2"] = Field(default="camrest676", description=WHICH)


Conversations = Annotated[DialogueData | NamedDialogues, Field(discriminator="kind")]
Tags = Annotated[TaggedData | NamedTags, Field(discriminator="kind")]


class HeadlinesData(Table):
    """News with names that must be copied: made here."""

    kind: Literal["headlines"] = "headlines"
    size: Positive = Field(default=10_000, description="Documents to train on.")
    seed: Count = Field(default=0, description="Another seed, other documents.")
    held_out: Positive = Field(default=500, description="Documents in dev, and in the test.")
    fewest: Positive = Field(default=3, description="Sentences of a document, at least.")
    most: Positive = Field(default=6, description="Sentences of a document, at most.")


class SummariesData(Table):
    """Your own documents with their summaries."""

    kind: Literal["summaries"] = "summaries"
    train: Paths = Field(description="TSV (document, tab, summary) or JSON lines; .gz is unpacked.")
    dev: Paths | None = Field(default=None, description="The same, for validation while training.")
    test: Paths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["tsv", "jsonl"] | None = Field(
        default=None, description="tsv or jsonl; not set, the names of the files tell."
    )
    fields: dict[str, str] = Field(
        default={"document": "document", "summary": "summary"},
        description="What our fields are called in JSON lines; a summary may be a list of several.",
    )
    held_out: Share = Field(default=0.1, description=HELD_OUT)

    @model_validator(mode="after")
    def _has_both(self) -> "SummariesData":
        if set(self.fields) != {"document", "summary"}:
            raise ValueError(f"fields must name document and summary, not {list(self.fields)}")
        return self


class NamedSummaries(Table):
    """Public documents with summaries, fetched when they are first needed."""

    kind: Literal["named"] = "named"
    name: Literal["aeslc", "scitldr"] = Field(description=WHICH)


Documents = Annotated[HeadlinesData | SummariesData | NamedSummaries, Field(discriminator="kind")]
