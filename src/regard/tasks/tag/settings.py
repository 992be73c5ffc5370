"""Settings of tagging and language understanding."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive, Rate
from regard.config.data import (
    PublicTagsDataConfig,
    TagDataConfig,
)
from regard.config.encoder import (
    BilstmCrfConfig,
    BiRnnAttentionConfig,
    StartConfig,
    TagModelConfig,
)
from regard.config.settings import MODEL_HELP, TEXT_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.config.validators import check_word_tokenizer


class TagTrainConfig(TrainConfig):
    """Training to name stretches of words."""

    max_tokens: Positive = Field(
        default=256, description="Of longer sentences (in tokens) the end is cut."
    )
    metric: Literal["loss", "f1"] = Field(
        default="loss", description="What is better, on dev: loss or f1."
    )


class UnderstandTrainConfig(TrainConfig):
    """Training to understand."""

    max_tokens: Positive = Field(
        default=256, description="Of longer sentences (in tokens) the end is cut."
    )
    metric: Literal["loss", "slot_f1", "intent_accuracy", "sentence_accuracy"] = Field(
        default="loss",
        description="What is better, on dev: loss, slot_f1, intent_accuracy or sentence_accuracy.",
    )


class TagHeadConfig(Config):
    """From the state of a word to its tag."""

    crf: bool = Field(default=True, description="Tags depend on each other (a CRF); else alone.")
    scheme: Literal["bio", "bioes"] = Field(
        default="bio", description="What the model is taught: bio, or bioes, which says more."
    )
    hidden_dim: Positive | None = Field(
        default=None, description="Width of a layer before the tags; none where not set."
    )
    dropout: Rate = Field(default=0.1, description="Share of values set to zero in training.")


class WordTaskSettings(Settings):
    """What tasks share that say something of each word."""

    text: TextConfig = Field(default=TextConfig(kind="words", min_count=2), description=TEXT_HELP)
    start: StartConfig = Field(
        default=StartConfig(), description="What to begin with, other than chance."
    )
    head: TagHeadConfig = Field(
        default=TagHeadConfig(), description="From a word's state to its tag."
    )

    @model_validator(mode="after")
    def _check_settings(self) -> "WordTaskSettings":
        check_word_tokenizer(self)
        return self


class TagSettings(WordTaskSettings):
    """Names for stretches of words: entities."""

    task: Literal["tag"] = Field(default="tag", description="What the model is to do.")
    data: TagDataConfig = Field(
        default=PublicTagsDataConfig(name="wnut17"), description="tagged or public."
    )
    model: TagModelConfig = Field(default=BilstmCrfConfig(), description=MODEL_HELP)
    train: TagTrainConfig = Field(default=TagTrainConfig(), description=TRAIN_HELP)


class UnderstandSettings(WordTaskSettings):
    """What is wanted (an intent), and with what (slots)."""

    task: Literal["understand"] = Field(
        default="understand", description="What the model is to do."
    )
    data: TagDataConfig = Field(
        default=PublicTagsDataConfig(name="atis"), description="tagged or public."
    )
    model: TagModelConfig = Field(default=BiRnnAttentionConfig(), description=MODEL_HELP)
    train: UnderstandTrainConfig = Field(default=UnderstandTrainConfig(), description=TRAIN_HELP)
