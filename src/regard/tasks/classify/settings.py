"""Settings of text classification."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Positive
from regard.config.data.texts import LabeledDataConfig, PlantedDataConfig, PublicLabeledDataConfig
from regard.config.encoder_head import VECTORS_HELP, HeadConfig, StartConfig, TextVectorsConfig
from regard.config.models.encoders import BertConfig, BiRnnConfig, ElmoConfig, HanConfig
from regard.config.settings import MODEL_HELP, TEXT_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.config.validators import check_word_tokenizer

ClassifyDataConfig = Annotated[
    PlantedDataConfig | LabeledDataConfig | PublicLabeledDataConfig, Field(discriminator="kind")
]

ClassifyModelConfig = Annotated[
    BiRnnConfig | HanConfig | BertConfig | ElmoConfig, Field(discriminator="kind")
]


class ClassifyTrainConfig(TrainConfig):
    """Training to classify."""

    max_tokens: Positive = Field(
        default=256, description="Maximum length of a text in tokens; the rest is cut off."
    )
    metric: Literal["loss", "accuracy", "f1"] = Field(
        default="accuracy",
        description="Metric on dev that selects the best weights: loss, accuracy or (macro) f1.",
    )


class ClassifySettings(Settings):
    """Settings of a run that classifies texts, or pairs of texts."""

    task: Literal["classify"] = Field(default="classify", description="Task of the run.")
    data: ClassifyDataConfig = Field(
        default=PlantedDataConfig(), description="Data set: planted, labeled or public."
    )
    text: TextConfig = Field(default=TextConfig(), description=TEXT_HELP)
    model: ClassifyModelConfig = Field(default=BiRnnConfig(), description=MODEL_HELP)
    start: StartConfig = Field(
        default=StartConfig(), description="Pretrained weights to start from."
    )
    head: HeadConfig = Field(
        default=HeadConfig(), description="Layers from the encoder to the classes."
    )
    vectors: TextVectorsConfig = Field(default=TextVectorsConfig(), description=VECTORS_HELP)
    train: ClassifyTrainConfig = Field(default=ClassifyTrainConfig(), description=TRAIN_HELP)

    def unused_settings(self) -> Mapping[str, str]:
        return {"text.joint": "the task has one vocabulary"}

    @model_validator(mode="after")
    def _check_settings(self) -> "ClassifySettings":
        check_word_tokenizer(self)
        return self
