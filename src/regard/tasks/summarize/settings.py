"""Settings of summarization."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Count, Positive
from regard.config.data import (
    HeadlinesDataConfig,
    SummarizeDataConfig,
)
from regard.config.decode import BeamConfig, DecodeConfig
from regard.config.model import (
    PointerConfig,
    SummarizeModelConfig,
)
from regard.config.settings import MODEL_HELP, TEXT_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.config.validators import check_joint_vocabulary


class SummarizeTrainConfig(TrainConfig):
    """Training to summarize."""

    max_tokens: Positive = Field(
        default=400, description="Of longer documents (in tokens) the end is cut."
    )
    max_summary_tokens: Positive = Field(
        default=100, description="Of longer summaries (in tokens) the end is cut."
    )
    metric: Literal["loss", "rouge1", "rouge2", "rougeL"] = Field(
        default="loss", description="What is better, on dev: loss, rouge1, rouge2 or rougeL."
    )
    coverage_weight: float = Field(
        default=1.0, ge=0, description="Weight of the coverage loss (pointer): lambda."
    )
    coverage_after: Count = Field(
        default=0,
        description="Steps before coverage is switched on (pointer); in the paper, almost all.",
    )

    @model_validator(mode="after")
    def _check_coverage(self) -> "SummarizeTrainConfig":
        if not self.coverage_after:
            return self
        if self.patience is not None:
            reason = "patience may end the training before coverage_after"
            raise ValueError(f"{reason} = {self.coverage_after}: leave one of them out")
        if self.steps is not None:
            last_validation = self.steps - self.steps % self.validate_every
            if last_validation <= self.coverage_after:
                raise ValueError(
                    f"coverage_after = {self.coverage_after} leaves no validation with coverage: "
                    f"the last is after {last_validation} steps"
                )
        return self


class SummarizeSettings(Settings):
    """A document into its summary."""

    task: Literal["summarize"] = Field(default="summarize", description="What the model is to do.")
    data: SummarizeDataConfig = Field(
        default=HeadlinesDataConfig(), description="headlines, summaries or public."
    )
    text: TextConfig = Field(
        default=TextConfig(
            kind="words", size=50_000, joint=True, split_punctuation=True, min_count=3
        ),
        description=TEXT_HELP,
    )
    model: SummarizeModelConfig = Field(default=PointerConfig(), description=MODEL_HELP)
    train: SummarizeTrainConfig = Field(default=SummarizeTrainConfig(), description=TRAIN_HELP)
    decode: DecodeConfig = Field(
        default=BeamConfig(width=4, max_length=100), description="greedy, beam or sample."
    )

    @model_validator(mode="after")
    def _check_settings(self) -> "SummarizeSettings":
        check_joint_vocabulary(self)
        if self.model.kind == "pointer" and self.model.copying and self.train.label_smoothing:
            raise ValueError("train.label_smoothing is not for a pointer that copies: set it to 0")
        return self
