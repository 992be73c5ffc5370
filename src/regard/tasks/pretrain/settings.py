"""Settings of pretraining."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive
from regard.config.data.texts import LanguageDataConfig, PublicTextDataConfig
from regard.config.encoder_head import VECTORS_HELP, TextVectorsConfig
from regard.config.models.encoders import BertConfig, ElmoConfig
from regard.config.settings import TEXT_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.config.validators import check_word_tokenizer
from regard.errors import InputError

PretrainModelConfig = Annotated[BertConfig | ElmoConfig, Field(discriminator="kind")]


class PretrainTrainConfig(TrainConfig):
    """[train] of pretraining."""

    max_tokens: Positive = Field(default=128, description="Longest pair of text spans, in tokens.")
    metric: Literal["loss", "accuracy"] = Field(
        default="loss",
        description="Metric on dev that selects the best weights: loss or accuracy of masked "
        "words.",
    )


class MaskConfig(Config):
    """[mask]: the objective of BERT."""

    rate: float = Field(
        default=0.15, gt=0, lt=1, description="Share of tokens to predict, between 0 and 1."
    )
    whole_words: bool = Field(
        default=False, description="Mask all pieces of a word together (text.kind = wordpiece)."
    )
    next_sentence: bool | None = Field(
        default=None,
        description="Also predict whether the second span follows the first. Default: if "
        "model.pretrain = both.",
    )


class PretrainSettings(Settings):
    """Settings of a run that pretrains an encoder on plain text."""

    task: Literal["pretrain"] = Field(default="pretrain", description="Task of the run.")
    data: LanguageDataConfig = Field(
        default=PublicTextDataConfig(name="wikitext2"), description="Data set: text or public."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="wordpiece", lower=True), description=TEXT_HELP
    )
    model: PretrainModelConfig = Field(
        default=BertConfig(pretrain="both"), description="Model: bert or elmo."
    )
    mask: MaskConfig = Field(
        default=MaskConfig(), description="Masked words and sentence pairs (bert)."
    )
    vectors: TextVectorsConfig = Field(default=TextVectorsConfig(), description=VECTORS_HELP)
    train: PretrainTrainConfig = Field(default=PretrainTrainConfig(), description=TRAIN_HELP)

    def unused_settings(self) -> Mapping[str, str]:
        smoothing = "pretraining predicts words without label smoothing"
        unused = {**super().unused_settings(), "train.label_smoothing": smoothing}
        return unused if self.model.kind == "bert" else {**unused, "mask": "elmo masks no word"}

    @model_validator(mode="after")
    def _check_settings(self) -> "PretrainSettings":
        if self.mask.whole_words and self.text.kind != "wordpiece":
            raise InputError("mask.whole_words needs text.kind = 'wordpiece'")
        check_word_tokenizer(self)
        heads = self.model.pretrain if isinstance(self.model, BertConfig) else None
        if self.mask.next_sentence and heads in ("none", "masked"):
            raise InputError(f"mask.next_sentence needs model.pretrain = 'both', not {heads!r}")
        return self
