"""Settings of question answering."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive, Rate
from regard.config.data.questions import (
    FactsDataConfig,
    PublicQuestionsDataConfig,
    QuestionsDataConfig,
)
from regard.config.encoder_head import VECTORS_HELP, StartConfig, TextVectorsConfig
from regard.config.models.encoders import BertConfig, BidafConfig, BiRnnConfig
from regard.config.settings import MODEL_HELP, TEXT_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.config.validators import check_word_tokenizer

AnswerDataConfig = Annotated[
    FactsDataConfig | QuestionsDataConfig | PublicQuestionsDataConfig, Field(discriminator="kind")
]

AnswerModelConfig = Annotated[BidafConfig | BiRnnConfig | BertConfig, Field(discriminator="kind")]


class AnswerHeadConfig(Config):
    """Layers from the states of a context to a span of it."""

    max_answer_tokens: Positive = Field(
        default=30, description="Maximum length of an answer in tokens."
    )
    stride: Positive = Field(
        default=128,
        description="Tokens between the starts of two consecutive windows of a long context.",
    )
    allow_no_answer: bool = Field(
        default=False,
        description="Whether a question may have no answer in its context (SQuAD 2.0).",
    )
    hidden_dim: Positive | None = Field(
        default=None,
        description="Width of a hidden layer before the energies; default: no such layer.",
    )
    dropout: Rate = Field(
        default=0.1, description="Probability, 0 to 1, of setting a value to zero in training."
    )


class AnswerTrainConfig(TrainConfig):
    """Training of a question answering model."""

    max_tokens: Positive = Field(
        default=384,
        description="Maximum length of a window in tokens; longer contexts are read in several.",
    )
    metric: Literal["loss", "exact", "f1"] = Field(
        default="f1", description="Metric on dev that selects the best weights: loss, exact or f1."
    )


class AnswerSettings(Settings):
    """Settings of a run that answers questions by a span of their context."""

    task: Literal["answer"] = Field(default="answer", description="Task of the run.")
    data: AnswerDataConfig = Field(
        default=FactsDataConfig(), description="Data set: facts, questions or public."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="words", size=20_000, lower=True), description=TEXT_HELP
    )
    model: AnswerModelConfig = Field(default=BidafConfig(), description=MODEL_HELP)
    start: StartConfig = Field(
        default=StartConfig(), description="Pretrained weights to start from."
    )
    head: AnswerHeadConfig = Field(
        default=AnswerHeadConfig(),
        description="Layers from the states of a context to a span of it.",
    )
    vectors: TextVectorsConfig = Field(default=TextVectorsConfig(), description=VECTORS_HELP)
    train: AnswerTrainConfig = Field(default=AnswerTrainConfig(), description=TRAIN_HELP)

    def unused_settings(self) -> Mapping[str, str]:
        spans = "answers are spans of the original text"
        return {
            "text.joint": "the task has one vocabulary",
            "text.zero_digits": spans,
            "text.split_punctuation": spans,
        }

    @model_validator(mode="after")
    def _check_settings(self) -> "AnswerSettings":
        check_word_tokenizer(self)
        return self
