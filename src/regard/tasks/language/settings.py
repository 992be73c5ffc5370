"""Settings of language modeling."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.data import (
    LanguageDataConfig,
    PublicTextDataConfig,
)
from regard.config.decode import DecodeConfig, SampleConfig
from regard.config.language import Gpt2Config, LanguageModelConfig
from regard.config.settings import MODEL_HELP, TRAIN_HELP, Settings
from regard.config.train import (
    LanguageTrainConfig,
)
from regard.config.validators import check_windows


class LanguageSettings(Settings):
    """How likely a text is, and how it goes on."""

    task: Literal["language"] = Field(default="language", description="What the model is to do.")
    data: LanguageDataConfig = Field(default=PublicTextDataConfig(), description="text or public.")
    model: LanguageModelConfig = Field(default=Gpt2Config(), description=MODEL_HELP)
    train: LanguageTrainConfig = Field(default=LanguageTrainConfig(), description=TRAIN_HELP)
    decode: DecodeConfig = Field(default=SampleConfig(), description="greedy, beam or sample.")

    @model_validator(mode="after")
    def _check_settings(self) -> "LanguageSettings":
        check_windows(self)
        return self
