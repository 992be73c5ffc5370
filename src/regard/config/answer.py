"""What only `answer` has: its [data], [model], [head] and [train]."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, Fraction, NonEmptyTuple, Positive, Rate
from regard.config.data import HELD_OUT_HELP, PUBLIC_NAME_HELP, FilePaths
from regard.config.encoder import BertConfig, BiRnnConfig, CharacterFilter
from regard.config.model import DIM_HELP, DROPOUT_HELP


class FactsDataConfig(Config):
    """Made-up facts, and questions that name one of them by two keys: made here."""

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


class QuestionsDataConfig(Config):
    """Your own questions, each with a context and its answer in it."""

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


class PublicQuestionsDataConfig(Config):
    """Public questions, fetched when they are first needed."""

    kind: Literal["public"] = "public"
    name: Literal["squadshifts", "squad_dev"] = Field(description=PUBLIC_NAME_HELP)


AnswerDataConfig = Annotated[
    FactsDataConfig | QuestionsDataConfig | PublicQuestionsDataConfig, Field(discriminator="kind")
]


class BidafConfig(Config):
    """Context and question that ask each other (Seo et al. 2017)."""

    kind: Literal["bidaf"] = "bidaf"
    dim: Positive = Field(default=100, description=DIM_HELP)
    hidden_dim: Positive = Field(default=100, description="Width of a state, in each direction.")
    characters: Positive = Field(default=262, description="Letters that there are.")
    character_dim: Positive = Field(default=8, description="Width of a letter's vector.")
    filters: NonEmptyTuple[CharacterFilter] = Field(
        default=((5, 100),), description="Convolutions of letters: how wide, how many."
    )
    character_output_dim: Positive = Field(
        default=100, description="Width of what letters add to a word."
    )
    highway_layers: Count = Field(default=2, description="Highway layers over words and letters.")
    layers: Positive = Field(default=2, description="Layers over what attention has found.")
    use_words: bool = Field(default=True, description="Words have vectors of their own.")
    use_characters: bool = Field(default=True, description="Words are spelled.")
    c2q: bool = Field(default=True, description="Each word of the context looks at the question.")
    q2c: bool = Field(default=True, description="The question looks at the context.")
    dropout: Rate = Field(default=0.2, description=DROPOUT_HELP)

    @model_validator(mode="after")
    def _check_inputs(self) -> "BidafConfig":
        if not self.use_words and not self.use_characters:
            raise ValueError("words and letters are both false: there is nothing to read")
        return self


AnswerModelConfig = Annotated[BidafConfig | BiRnnConfig | BertConfig, Field(discriminator="kind")]
