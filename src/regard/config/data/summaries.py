"""TODO regard.config.data.summaries."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from regard.config.base import Count, DataConfig, Fraction, Positive
from regard.config.data.common import HELD_OUT_HELP, PUBLIC_NAME_HELP, FilePaths


class HeadlinesDataConfig(DataConfig):
    """News with names that must be copied: made here."""

    corpus_class: ClassVar = "regard.data.synthetic.headlines:Headlines"
    kind: Literal["headlines"] = "headlines"
    size: Positive = Field(default=10_000, description="Documents to train on.")
    seed: Count = Field(default=0, description="Another seed, other documents.")
    held_out: Positive = Field(default=500, description="Documents in dev, and in the test.")
    min_sentences: Positive = Field(default=3, description="Sentences of a document, at least.")
    max_sentences: Positive = Field(default=6, description="Sentences of a document, at most.")


class SummariesDataConfig(DataConfig):
    """Your own documents with their summaries."""

    corpus_class: ClassVar = "regard.data.formats.summaries:SummaryFiles"
    record_fields: ClassVar = (("document", "summary"),)
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


class PublicSummariesDataConfig(DataConfig):
    """Public documents with summaries, fetched when they are first needed."""

    corpus_class: ClassVar = "regard.data.formats.summaries:PublicSummaries"
    kind: Literal["public"] = "public"
    name: Literal["aeslc", "scitldr"] = Field(description=PUBLIC_NAME_HELP)
