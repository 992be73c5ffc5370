"""Settings of tagging and language understanding."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive, Rate
from regard.config.data.texts import PublicTagsDataConfig, TaggedDataConfig
from regard.config.encoder_head import VECTORS_HELP, StartConfig, TextVectorsConfig
from regard.config.models.encoders import (
    BertConfig,
    BilstmCrfConfig,
    BiRnnAttentionConfig,
    BiRnnConfig,
    ElmoConfig,
)
from regard.config.settings import MODEL_HELP, TEXT_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.config.validators import check_word_tokenizer

TagDataConfig = Annotated[TaggedDataConfig | PublicTagsDataConfig, Field(discriminator="kind")]

TagModelConfig = Annotated[
    BilstmCrfConfig | BiRnnAttentionConfig | BiRnnConfig | BertConfig | ElmoConfig,
    Field(discriminator="kind"),
]


class TagTrainConfig(TrainConfig):
    """Training of a tagger."""

    max_tokens: Positive = Field(
        default=256, description="Maximum length of a sentence in tokens; the rest is cut off."
    )
    metric: Literal["loss", "f1"] = Field(
        default="f1", description="Metric on dev that selects the best weights: loss or f1."
    )


class UnderstandTrainConfig(TrainConfig):
    """Training of a tagger that also predicts intents."""

    max_tokens: Positive = Field(
        default=256, description="Maximum length of a sentence in tokens; the rest is cut off."
    )
    metric: Literal["loss", "slot_f1", "intent_accuracy", "sentence_accuracy"] = Field(
        default="sentence_accuracy",
        description="Metric on dev that selects the best weights: loss, slot_f1, "
        "intent_accuracy or sentence_accuracy.",
    )


class TagHeadConfig(Config):
    """Layers from the state of a word to its tag."""

    crf: bool = Field(
        default=True, description="Whether a CRF scores all tags of a sentence together."
    )
    scheme: Literal["bio", "bioes"] = Field(
        default="bio",
        description="Tags the model learns: bio, or bioes with marks for last and single words.",
    )
    hidden_dim: Positive | None = Field(
        default=None, description="Width of a hidden layer before the tags; default: no such layer."
    )
    dropout: Rate = Field(
        default=0.1, description="Probability, 0 to 1, of setting a value to zero in training."
    )


class WordTaskSettings(Settings):
    """Settings that `tag` and `understand` share."""

    text: TextConfig = Field(default=TextConfig(kind="words"), description=TEXT_HELP)
    start: StartConfig = Field(
        default=StartConfig(), description="Pretrained weights to start from."
    )
    head: TagHeadConfig = Field(
        default=TagHeadConfig(), description="Layers from the state of a word to its tag."
    )
    vectors: TextVectorsConfig = Field(default=TextVectorsConfig(), description=VECTORS_HELP)

    def unused_settings(self) -> Mapping[str, str]:
        unused = {"text.joint": "the task has one vocabulary"}
        if self.head.crf and self.task == "tag":
            unused["train.label_smoothing"] = "a CRF has no label smoothing; see head.crf"
        return unused

    @model_validator(mode="after")
    def _check_settings(self) -> "WordTaskSettings":
        check_word_tokenizer(self)
        return self


class TagSettings(WordTaskSettings):
    """Settings of a run that labels spans of words, such as entities."""

    task: Literal["tag"] = Field(default="tag", description="Task of the run.")
    data: TagDataConfig = Field(
        default=PublicTagsDataConfig(name="wnut17"), description="Data set: tagged or public."
    )
    model: TagModelConfig = Field(default=BiRnnAttentionConfig(), description=MODEL_HELP)
    train: TagTrainConfig = Field(default=TagTrainConfig(), description=TRAIN_HELP)


class UnderstandSettings(WordTaskSettings):
    """Settings of a run that predicts the intent and the slots of a request."""

    task: Literal["understand"] = Field(default="understand", description="Task of the run.")
    data: TagDataConfig = Field(
        default=PublicTagsDataConfig(name="atis"), description="Data set: tagged or public."
    )
    model: TagModelConfig = Field(default=BiRnnAttentionConfig(), description=MODEL_HELP)
    train: UnderstandTrainConfig = Field(default=UnderstandTrainConfig(), description=TRAIN_HELP)
