"""What only `answer` has: its [data], [model], [head] and [train]."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.data import HELD_OUT, WHICH, Paths
from regard.config.encoder import Bert, BiRnn, Filter
from regard.config.model import DIM, DROPOUT
from regard.config.table import Count, Part, Positive, Several, Share, Table
from regard.config.train import Train


class FactsData(Table):
    """Made-up facts, and questions that name one of them by two keys: made here."""

    kind: Literal["facts"] = "facts"
    size: Positive = Field(default=20_000, description="Questions to train on.")
    held_out: Positive = Field(default=500, description="Questions in dev, and in the test.")
    seed: Count = Field(default=0, description="Another seed, other words.")
    things: Positive = Field(default=3, description="Things that a context tells of.")
    traits: Positive = Field(default=2, description="What it tells of each of them.")
    words: Positive = Field(default=60, description="Words that answers are made of.")
    longest: Positive = Field(default=3, description="Words of an answer, at most.")
    new_names: Share = Field(
        default=0.2, description="Share of contexts with names that are in no other."
    )
    unanswerable: Share = Field(default=0.0, description="Share of questions without an answer.")


class QuestionsData(Table):
    """Your own questions, each with a context and its answer in it."""

    kind: Literal["questions"] = "questions"
    train: Paths = Field(description="SQuAD's JSON (1.1 or 2.0) or JSON lines; .gz is unpacked.")
    dev: Paths | None = Field(default=None, description="The same, for validation while training.")
    test: Paths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["squad", "jsonl"] | None = Field(
        default=None, description="squad or jsonl; not set, the names of the files tell."
    )
    held_out: Share = Field(default=0.1, description=HELD_OUT)


class NamedQuestions(Table):
    """Public questions, fetched when they are first needed."""

    kind: Literal["named"] = "named"
    name: Literal["squadshifts", "squad_dev"] = Field(description=WHICH)


Questions = Annotated[FactsData | QuestionsData | NamedQuestions, Field(discriminator="kind")]


class Bidaf(Table):
    """Context and question that ask each other (Seo et al. 2017)."""

    kind: Literal["bidaf"] = "bidaf"
    dim: Positive = Field(default=100, description=DIM)
    hidden_dim: Positive = Field(default=100, description="Width of a state, in each direction.")
    characters: Positive = Field(default=262, description="Letters that there are.")
    character_dim: Positive = Field(default=8, description="Width of a letter's vector.")
    filters: Several[Filter] = Field(
        default=((5, 100),), description="Convolutions of letters: how wide, how many."
    )
    letters_dim: Positive = Field(default=100, description="Width of what letters add to a word.")
    highways: Count = Field(default=2, description="Highway layers over words and letters.")
    layers: Positive = Field(default=2, description="Layers over what attention has found.")
    words: bool = Field(default=True, description="Words have vectors of their own.")
    letters: bool = Field(default=True, description="Words are spelled.")
    c2q: bool = Field(default=True, description="Each word of the context looks at the question.")
    q2c: bool = Field(default=True, description="The question looks at the context.")
    dropout: Part = Field(default=0.2, description=DROPOUT)

    @model_validator(mode="after")
    def _reads(self) -> "Bidaf":
        if not self.words and not self.letters:
            raise ValueError("words and letters are both false: there is nothing to read")
        return self


Answerer = Annotated[Bidaf | BiRnn | Bert, Field(discriminator="kind")]


class AnswerHead(Table):
    """From the states of a context to a stretch of it."""

    longest: Positive = Field(default=30, description="Tokens of an answer, at most.")
    stride: Positive = Field(
        default=128,
        description="Of a context that is too long: tokens from the beginning of one window to "
        "that of the next.",
    )
    no_answer: bool = Field(
        default=False, description="A question may have no answer in its context (SQuAD 2.0)."
    )
    hidden_dim: Positive | None = Field(
        default=None, description="Width of a layer before the energies; none where not set."
    )
    dropout: Part = Field(default=0.1, description="Share of values set to zero in training.")


class AnswerTrain(Train):
    """Training to answer."""

    longest: Positive = Field(
        default=384, description="Longer contexts (in tokens) are read in windows; see head.stride."
    )
    metric: Literal["loss", "exact", "f1"] = Field(
        default="f1", description="What is better, on dev: loss, exact or f1."
    )
