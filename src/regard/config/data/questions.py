"""TODO regard.config.data.questions."""

from typing import ClassVar, Literal

from pydantic import Field

from regard.config.base import Count, DataConfig, Fraction, Positive
from regard.config.data.common import HELD_OUT_HELP, PUBLIC_NAME_HELP, FilePaths


class FactsDataConfig(DataConfig):
    """Made-up facts, and questions that name one of them by two keys: made here."""

    corpus_class: ClassVar = "regard.data.synthetic.facts:Facts"
    kind: Literal["facts"] = "facts"
    size: Positive = Field(default=20_000, description="Questions to train on.")
    held_out: Positive = Field(default=500, description="Questions in dev, and in the test.")
    seed: Count = Field(default=0, description="Another seed, other words.")
    entities: Positive = Field(default=3, description="Things that a context tells of.")
    attributes: Positive = Field(default=2, description="What it tells of each of them.")
    vocabulary_size: Positive = Field(default=60, description="Words that answers are made of.")
    max_answer_words: Positive = Field(default=3, description="Words of an answer, at most.")
    new_names: Fraction = Field(
        default=0.2, description="Share of contexts with names that are in no other."
    )
    unanswerable: Fraction = Field(default=0.0, description="Share of questions without an answer.")


class QuestionsDataConfig(DataConfig):
    """Your own questions, each with a context and its answer in it."""

    corpus_class: ClassVar = "regard.data.formats.questions:QuestionFiles"
    record_fields: ClassVar = (("question", "context"),)
    kind: Literal["questions"] = "questions"
    train: FilePaths = Field(
        description="SQuAD's JSON (1.1 or 2.0) or JSON lines; .gz is unpacked."
    )
    dev: FilePaths | None = Field(
        default=None, description="The same, for validation while training."
    )
    test: FilePaths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["squad", "jsonl"] | None = Field(
        default=None, description="squad or jsonl; not set, the names of the files tell."
    )
    held_out: Fraction = Field(default=0.1, description=HELD_OUT_HELP)


class PublicQuestionsDataConfig(DataConfig):
    """Public questions, fetched when they are first needed."""

    corpus_class: ClassVar = "regard.data.public.questions:PublicQuestions"
    kind: Literal["public"] = "public"
    name: Literal["squadshifts", "squad_dev"] = Field(description=PUBLIC_NAME_HELP)
