"""Settings of text classification."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.data import (
    ClassifyDataConfig,
    PlantedDataConfig,
)
from regard.config.encoder import (
    BiRnnConfig,
    ClassifyModelConfig,
    HeadConfig,
    StartConfig,
)
from regard.config.settings import MODEL_HELP, TRAIN_HELP, Settings
from regard.config.train import (
    ClassifyTrainConfig,
)
from regard.config.validators import check_word_tokenizer


class ClassifySettings(Settings):
    """A text, or two, into one of some classes."""

    task: Literal["classify"] = Field(default="classify", description="What the model is to do.")
    data: ClassifyDataConfig = Field(
        default=PlantedDataConfig(), description="planted, labeled or public."
    )
    model: ClassifyModelConfig = Field(default=BiRnnConfig(), description=MODEL_HELP)
    start: StartConfig = Field(
        default=StartConfig(), description="What to begin with, other than chance."
    )
    head: HeadConfig = Field(default=HeadConfig(), description="From the encoder to the classes.")
    train: ClassifyTrainConfig = Field(default=ClassifyTrainConfig(), description=TRAIN_HELP)

    @model_validator(mode="after")
    def _check_settings(self) -> "ClassifySettings":
        check_word_tokenizer(self)
        return self
