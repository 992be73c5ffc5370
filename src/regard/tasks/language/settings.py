"""Settings of language modeling."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Positive
from regard.config.data.texts import LanguageDataConfig, PublicTextDataConfig
from regard.config.decode import DecodeConfig, SampleConfig
from regard.config.models.language_models import Gpt2Config, LanguageModelConfig
from regard.config.settings import MODEL_HELP, TEXT_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.config.validators import STRIDE_HELP, check_windows


class LanguageTrainConfig(TrainConfig):
    """Training of a language model."""

    context_length: Positive = Field(
        default=128, description="Length of a training window, in tokens."
    )
    carry_state: bool = Field(
        default=False,
        description="Keep the state of a recurrent model from window to window. Otherwise each "
        "window starts at a random position, without a state.",
    )
    evaluation_stride: Positive | None = Field(default=None, description=STRIDE_HELP)
    metric: Literal["loss", "perplexity"] = Field(
        default="loss",
        description="Metric on dev that selects the best weights: loss or perplexity.",
    )


class LanguageSettings(Settings):
    """Settings of a run that models and continues texts."""

    task: Literal["language"] = Field(default="language", description="Task of the run.")
    data: LanguageDataConfig = Field(
        default=PublicTextDataConfig(), description="Data set: text or public."
    )
    text: TextConfig = Field(default=TextConfig(), description=TEXT_HELP)
    model: LanguageModelConfig = Field(default=Gpt2Config(), description=MODEL_HELP)
    train: LanguageTrainConfig = Field(default=LanguageTrainConfig(), description=TRAIN_HELP)
    decode: DecodeConfig = Field(
        default=SampleConfig(), description="Search: greedy, beam or sample."
    )

    def unused_settings(self) -> Mapping[str, str]:
        windows = "texts are read in windows of train.context_length tokens"
        return {**super().unused_settings(), "train.max_tokens": windows}

    @model_validator(mode="after")
    def _check_settings(self) -> "LanguageSettings":
        check_windows(self)
        return self
