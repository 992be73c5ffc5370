"""Settings of question answering."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.answer import AnswerDataConfig, AnswerModelConfig, BidafConfig, FactsDataConfig
from regard.config.base import Config, Positive, Rate
from regard.config.encoder import StartConfig
from regard.config.settings import MODEL_HELP, TEXT_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import (
    TrainConfig,
)
from regard.config.validators import check_word_tokenizer


class AnswerHeadConfig(Config):
    """From the states of a context to a stretch of it."""

    max_answer_tokens: Positive = Field(default=30, description="Tokens of an answer, at most.")
    stride: Positive = Field(
        default=128,
        description="Of a context that is too long: tokens from the beginning of one window to "
        "that of the next.",
    )
    allow_no_answer: bool = Field(
        default=False, description="A question may have no answer in its context (SQuAD 2.0)."
    )
    hidden_dim: Positive | None = Field(
        default=None, description="Width of a layer before the energies; none where not set."
    )
    dropout: Rate = Field(default=0.1, description="Share of values set to zero in training.")


class AnswerTrainConfig(TrainConfig):
    """Training to answer."""

    max_tokens: Positive = Field(
        default=384, description="Longer contexts (in tokens) are read in windows; see head.stride."
    )
    metric: Literal["loss", "exact", "f1"] = Field(
        default="f1", description="What is better, on dev: loss, exact or f1."
    )


class AnswerSettings(Settings):
    """A question, by a stretch of a context."""

    task: Literal["answer"] = Field(default="answer", description="What the model is to do.")
    data: AnswerDataConfig = Field(
        default=FactsDataConfig(), description="facts, questions or public."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="words", size=20_000, lower=True), description=TEXT_HELP
    )
    model: AnswerModelConfig = Field(default=BidafConfig(), description=MODEL_HELP)
    start: StartConfig = Field(
        default=StartConfig(), description="What to begin with, other than chance."
    )
    head: AnswerHeadConfig = Field(
        default=AnswerHeadConfig(), description="From states to a stretch of text."
    )
    train: AnswerTrainConfig = Field(default=AnswerTrainConfig(), description=TRAIN_HELP)

    @model_validator(mode="after")
    def _check_settings(self) -> "AnswerSettings":
        check_word_tokenizer(self)
        return self
