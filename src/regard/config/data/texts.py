"""[data] of texts: plain, with labels, or with tags."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from regard.config.base import Count, DataConfig, NonEmptyTuple, Positive
from regard.config.data.data_fields import (
    AUTOMATIC_HELD_OUT_HELP,
    HELD_OUT_HELP,
    PUBLIC_NAME_HELP,
    SKIP_BAD_HELP,
    FilePaths,
    HeldOutShare,
)


class TextDataConfig(DataConfig):
    """Plain text in your own files."""

    corpus_class: ClassVar = "regard.data.formats.documents:DocumentFiles"
    record_fields: ClassVar = (("text",),)
    record_format: ClassVar = "text"
    kind: Literal["text"] = "text"
    train: FilePaths = Field(description="Files or folders of plain text. Files may be gzipped.")
    dev: FilePaths | None = Field(
        default=None, description="Files for validation, in the format of train."
    )
    test: FilePaths | None = Field(
        default=None, description="Files for `regard score`, in the format of train."
    )
    unit: Literal["file", "line", "paragraph"] = Field(
        default="file", description="Unit that is one document: file, line or paragraph."
    )
    held_out: HeldOutShare = Field(default=0.05, description=HELD_OUT_HELP)


class PublicTextDataConfig(DataConfig):
    """A public text, downloaded at first use."""

    corpus_class: ClassVar = "regard.data.public.texts:PublicText"
    kind: Literal["public"] = "public"
    name: Literal["wikitext2", "tinyshakespeare"] = Field(
        default="tinyshakespeare", description=PUBLIC_NAME_HELP
    )


LanguageDataConfig = Annotated[TextDataConfig | PublicTextDataConfig, Field(discriminator="kind")]


class PlantedDataConfig(DataConfig):
    """Synthetic documents whose class depends on one word of one sentence."""

    corpus_class: ClassVar = "regard.data.synthetic.planted:PlantedWords"
    kind: Literal["planted"] = "planted"
    size: Positive = Field(default=4000, description="Number of training documents.")
    seed: Count = Field(default=0, description="Random seed of the documents.")
    held_out: Positive = Field(default=500, description="Number of documents in dev, and in test.")
    classes: Positive = Field(default=10, description="Number of classes.")
    keywords_per_class: Positive = Field(default=3, description="Number of keywords of each class.")
    filler_words: Positive = Field(default=500, description="Number of words that are no keywords.")
    min_sentences: Positive = Field(
        default=18, description="Minimum number of sentences in a document."
    )
    max_sentences: Positive = Field(
        default=22, description="Maximum number of sentences in a document."
    )
    min_words: Positive = Field(default=5, description="Minimum number of words in a sentence.")
    max_words: Positive = Field(default=12, description="Maximum number of words in a sentence.")


class LabeledDataConfig(DataConfig):
    """Your own texts with labels."""

    corpus_class: ClassVar = "regard.data.formats.labeled_texts:LabeledTextFiles"
    record_fields: ClassVar = (("text", "label"),)
    optional_record_fields: ClassVar = ("pair",)
    kind: Literal["labeled"] = "labeled"
    train: FilePaths = Field(
        description="TSV, CSV or JSON lines, two parallel files, or a folder with a folder of .txt "
        "files for each class. Files may be gzipped."
    )
    dev: FilePaths | None = Field(
        default=None, description="Files for validation, in the format of train."
    )
    test: FilePaths | None = Field(
        default=None, description="Files for `regard score`, in the format of train."
    )
    format: Literal["tsv", "csv", "jsonl", "parallel", "folder"] | None = Field(
        default=None,
        description="Format: tsv, csv, jsonl, parallel or folder. Default: by file name.",
    )
    columns: NonEmptyTuple[str] | None = Field(
        default=None,
        description='Names of the columns of a TSV or CSV without a header: "text", "pair", '
        '"label"; "-" skips a column.',
    )
    fields: dict[str, str] | None = Field(
        default=None,
        description="Names of the fields in JSON lines, or in the header of a TSV or CSV.",
    )
    held_out: HeldOutShare | None = Field(default=None, description=AUTOMATIC_HELD_OUT_HELP)
    skip_bad: bool = Field(default=False, description=SKIP_BAD_HELP)


class PublicLabeledDataConfig(DataConfig):
    """Public texts with labels, downloaded at first use."""

    corpus_class: ClassVar = "regard.data.public.texts:PublicText"
    kind: Literal["public"] = "public"
    name: Literal["sst2", "imdb_sample", "tweeteval_emotion"] = Field(description=PUBLIC_NAME_HELP)


class TaggedDataConfig(DataConfig):
    """Your own sentences with a tag for each word, and optionally a label."""

    corpus_class: ClassVar = "regard.data.formats.tagged_texts:TaggedTextFiles"
    record_fields: ClassVar = (("tokens", "tags"), ("text", "spans"), ("text", "entities"))
    kind: Literal["tagged"] = "tagged"
    train: FilePaths = Field(
        description="CoNLL columns, JSON lines, or a folder with seq.in, seq.out and label. Files "
        "may be gzipped."
    )
    dev: FilePaths | None = Field(
        default=None, description="Files for validation, in the format of train."
    )
    test: FilePaths | None = Field(
        default=None, description="Files for `regard score`, in the format of train."
    )
    format: Literal["conll", "jsonl", "folder"] | None = Field(
        default=None, description="Format: conll, jsonl or folder. Default: by file name."
    )
    scheme: Literal["bio", "iob1", "bioes"] = Field(
        default="bio", description="Tagging scheme of the files: bio, iob1 or bioes."
    )
    columns: Annotated[tuple[int, int], Field(strict=False)] = Field(
        default=(0, -1),
        description="Columns of word and tag in a CoNLL file, from 0; -1 is the last.",
    )
    held_out: HeldOutShare | None = Field(default=None, description=AUTOMATIC_HELD_OUT_HELP)
    skip_bad: bool = Field(default=False, description=SKIP_BAD_HELP)


class PublicTagsDataConfig(DataConfig):
    """Public sentences with tags, downloaded at first use."""

    corpus_class: ClassVar = "regard.data.public.tagged_texts:PublicTaggedTexts"
    kind: Literal["public"] = "public"
    name: Literal["wnut17", "atis", "snips"] = Field(description=PUBLIC_NAME_HELP)
