"""[data] of questions with a context."""

from typing import ClassVar, Literal

from pydantic import Field

from regard.config.base import Count, DataConfig, Fraction, Positive
from regard.config.data.data_fields import (
    AUTOMATIC_HELD_OUT_HELP,
    PUBLIC_NAME_HELP,
    SKIP_BAD_HELP,
    FilePaths,
    HeldOutShare,
)


class FactsDataConfig(DataConfig):
    """Synthetic facts, and questions about one of them."""

    corpus_class: ClassVar = "regard.data.synthetic.facts:Facts"
    kind: Literal["facts"] = "facts"
    size: Positive = Field(default=20_000, description="Number of training questions.")
    held_out: Positive = Field(default=500, description="Number of questions in dev, and in test.")
    seed: Count = Field(default=0, description="Random seed of the facts.")
    entities: Positive = Field(default=3, description="Number of entities in a context.")
    attributes: Positive = Field(default=2, description="Number of facts about each entity.")
    vocabulary_size: Positive = Field(
        default=60, description="Number of different words in answers."
    )
    max_answer_words: Positive = Field(
        default=3, description="Maximum number of words in an answer."
    )
    new_names: Fraction = Field(
        default=0.2,
        description="Share of contexts, 0 to 1, with entities that no other context has.",
    )
    unanswerable: Fraction = Field(
        default=0.0, description="Share of questions, 0 to 1, without an answer in their context."
    )


class QuestionsDataConfig(DataConfig):
    """Your own questions; the answer of each is a span of its context."""

    corpus_class: ClassVar = "regard.data.formats.questions:QuestionFiles"
    record_fields: ClassVar = (("question", "context"),)
    kind: Literal["questions"] = "questions"
    train: FilePaths = Field(
        description="JSON in the format of SQuAD (1.1 or 2.0), or JSON lines. Files may be gzipped."
    )
    dev: FilePaths | None = Field(
        default=None, description="Files for validation, in the format of train."
    )
    test: FilePaths | None = Field(
        default=None, description="Files for `regard score`, in the format of train."
    )
    format: Literal["squad", "jsonl"] | None = Field(
        default=None, description="Format: squad or jsonl. Default: by file name."
    )
    held_out: HeldOutShare | None = Field(default=None, description=AUTOMATIC_HELD_OUT_HELP)
    skip_bad: bool = Field(default=False, description=SKIP_BAD_HELP)


class PublicQuestionsDataConfig(DataConfig):
    """Public questions, downloaded at first use."""

    corpus_class: ClassVar = "regard.data.public.questions:PublicQuestions"
    kind: Literal["public"] = "public"
    name: Literal["squadshifts", "squad_dev"] = Field(description=PUBLIC_NAME_HELP)
