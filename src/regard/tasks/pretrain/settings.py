"""Settings of pretraining."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive
from regard.config.data.texts import LanguageDataConfig, PublicTextDataConfig
from regard.config.models.encoders import BertConfig, ElmoConfig
from regard.config.settings import TEXT_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.config.validators import check_word_tokenizer

PretrainModelConfig = Annotated[BertConfig | ElmoConfig, Field(discriminator="kind")]


class PretrainTrainConfig(TrainConfig):
    """Training to be built on."""

    max_tokens: Positive = Field(default=128, description="Tokens of a pair of stretches of text.")
    metric: Literal["loss", "accuracy"] = Field(
        default="loss", description="What is better, on dev: loss or accuracy, of hidden words."
    )


class MaskConfig(Config):
    """What has to be told."""

    rate: float = Field(default=0.15, gt=0, lt=1, description="Share of the words that are hidden.")
    whole_words: bool = Field(
        default=False, description="Hide all pieces of a word together (wordpiece)."
    )
    next_sentence: bool = Field(
        default=True, description="Also tell whether one stretch of text follows the other."
    )


class PretrainSettings(Settings):
    """An encoder that learns from plain text, to be built on."""

    task: Literal["pretrain"] = Field(default="pretrain", description="What the model is to do.")
    data: LanguageDataConfig = Field(
        default=PublicTextDataConfig(name="wikitext2"), description="text or public."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="wordpiece", lower=True), description=TEXT_HELP
    )
    model: PretrainModelConfig = Field(
        default=BertConfig(pretrain="both"), description="bert or elmo."
    )
    mask: MaskConfig = Field(default=MaskConfig(), description="What has to be told.")
    train: PretrainTrainConfig = Field(default=PretrainTrainConfig(), description=TRAIN_HELP)

    @model_validator(mode="after")
    def _check_settings(self) -> "PretrainSettings":
        if self.mask.whole_words and self.text.kind != "wordpiece":
            raise ValueError("mask.whole_words needs text.kind = 'wordpiece'")
        check_word_tokenizer(self)
        if (
            self.model.kind == "elmo"
            and "mask" in self.model_fields_set
            and self.mask != MaskConfig()
        ):
            raise ValueError("mask is for bert: elmo tells every word, and hides none")
        return self
