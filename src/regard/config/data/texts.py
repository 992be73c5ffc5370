"""TODO regard.config.data.texts."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from regard.config.base import Count, DataConfig, Fraction, NonEmptyTuple, Positive
from regard.config.data.common import HELD_OUT_HELP, PUBLIC_NAME_HELP, FilePaths


class TextDataConfig(DataConfig):
    """Your own texts, to write like them."""

    corpus_class: ClassVar = "regard.data.formats.documents:DocumentFiles"
    record_fields: ClassVar = (("text",),)
    record_format: ClassVar = "text"
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


class PublicTextDataConfig(DataConfig):
    """A public text, fetched when it is first needed."""

    corpus_class: ClassVar = "regard.data.public.texts:PublicText"
    kind: Literal["public"] = "public"
    name: Literal["wikitext2", "tinyshakespeare"] = Field(
        default="tinyshakespeare", description=PUBLIC_NAME_HELP
    )


LanguageDataConfig = Annotated[TextDataConfig | PublicTextDataConfig, Field(discriminator="kind")]


class PlantedDataConfig(DataConfig):
    """Documents whose class hangs on one word of one sentence: made here."""

    corpus_class: ClassVar = "regard.data.synthetic.planted:PlantedWords"
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


class LabeledDataConfig(DataConfig):
    """Your own texts with their classes."""

    corpus_class: ClassVar = "regard.data.formats.labeled_texts:LabeledTextFiles"
    record_fields: ClassVar = (("text", "label"),)
    optional_record_fields: ClassVar = ("pair",)
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


class PublicLabeledDataConfig(DataConfig):
    """Public texts with classes, fetched when they are first needed."""

    corpus_class: ClassVar = "regard.data.public.texts:PublicText"
    kind: Literal["public"] = "public"
    name: Literal["sst2", "imdb_sample", "tweeteval_emotion"] = Field(description=PUBLIC_NAME_HELP)


class TaggedDataConfig(DataConfig):
    """Your own sentences with a tag for each word, and perhaps a label."""

    corpus_class: ClassVar = "regard.data.formats.tagged_texts:TaggedTextFiles"
    record_fields: ClassVar = (("tokens", "tags"), ("text", "spans"), ("text", "entities"))
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


class PublicTagsDataConfig(DataConfig):
    """Public tagged sentences, fetched when they are first needed."""

    corpus_class: ClassVar = "regard.data.public.tagged_texts:PublicTaggedTexts"
    kind: Literal["public"] = "public"
    name: Literal["wnut17", "atis", "snips"] = Field(description=PUBLIC_NAME_HELP)
