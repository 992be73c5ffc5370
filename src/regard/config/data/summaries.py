"""[data] of documents with summaries."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from regard.config.base import Count, DataConfig, Positive
from regard.config.data.data_fields import (
    AUTOMATIC_HELD_OUT_HELP,
    PUBLIC_NAME_HELP,
    SKIP_BAD_HELP,
    FilePaths,
    HeldOutShare,
)
from regard.errors import InputError


class HeadlinesDataConfig(DataConfig):
    """Synthetic news with names that a summary has to copy."""

    corpus_class: ClassVar = "regard.data.synthetic.headlines:Headlines"
    kind: Literal["headlines"] = "headlines"
    size: Positive = Field(default=10_000, description="Number of training documents.")
    seed: Count = Field(default=0, description="Random seed of the documents.")
    held_out: Positive = Field(default=500, description="Number of documents in dev, and in test.")
    min_sentences: Positive = Field(
        default=3, description="Minimum number of sentences in a document."
    )
    max_sentences: Positive = Field(
        default=6, description="Maximum number of sentences in a document."
    )


class SummariesDataConfig(DataConfig):
    """Your own documents with summaries."""

    corpus_class: ClassVar = "regard.data.formats.summaries:SummaryFiles"
    record_fields: ClassVar = (("document", "summary"),)
    kind: Literal["summaries"] = "summaries"
    train: FilePaths = Field(
        description="TSV (document, tab, summary) or JSON lines. Files may be gzipped."
    )
    dev: FilePaths | None = Field(
        default=None, description="Files for validation, in the format of train."
    )
    test: FilePaths | None = Field(
        default=None, description="Files for `regard score`, in the format of train."
    )
    format: Literal["tsv", "jsonl"] | None = Field(
        default=None, description="Format: tsv or jsonl. Default: by file name."
    )
    fields: dict[str, str] = Field(
        default={"document": "document", "summary": "summary"},
        description="Names of the fields in JSON lines; a summary may be a list of several.",
    )
    held_out: HeldOutShare | None = Field(default=None, description=AUTOMATIC_HELD_OUT_HELP)
    skip_bad: bool = Field(default=False, description=SKIP_BAD_HELP)

    @model_validator(mode="after")
    def _check_fields(self) -> "SummariesDataConfig":
        if set(self.fields) != {"document", "summary"}:
            raise InputError(f"fields must name document and summary, not {list(self.fields)}")
        return self


class PublicSummariesDataConfig(DataConfig):
    """Public documents with summaries, downloaded at first use."""

    corpus_class: ClassVar = "regard.data.formats.summaries:PublicSummaries"
    kind: Literal["public"] = "public"
    name: Literal["aeslc", "scitldr"] = Field(description=PUBLIC_NAME_HELP)
