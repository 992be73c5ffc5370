"""Settings of summarization."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Count, Positive
from regard.config.data.summaries import (
    HeadlinesDataConfig,
    PublicSummariesDataConfig,
    SummariesDataConfig,
)
from regard.config.decode import BeamConfig, DecodeConfig
from regard.config.models.seq2seq import PointerConfig, TextPairModelConfig
from regard.config.settings import MODEL_HELP, NO_SINGLETONS, TEXT_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.config.validators import check_joint_vocabulary
from regard.errors import InputError

SummarizeDataConfig = Annotated[
    HeadlinesDataConfig | SummariesDataConfig | PublicSummariesDataConfig,
    Field(discriminator="kind"),
]

SummarizeModelConfig = Annotated[TextPairModelConfig | PointerConfig, Field(discriminator="kind")]


class SummarizeTrainConfig(TrainConfig):
    """Training of a summarizer."""

    max_tokens: Positive = Field(
        default=400, description="Maximum length of a document in tokens; the rest is cut off."
    )
    max_summary_tokens: Positive = Field(
        default=100, description="Maximum length of a summary in tokens; the rest is cut off."
    )
    metric: Literal["loss", "rouge1", "rouge2", "rougeL"] = Field(
        default="loss",
        description="Metric on dev that selects the best weights: loss, rouge1, rouge2 or rougeL.",
    )
    coverage_weight: float = Field(
        default=1.0,
        ge=0,
        description="Weight of the coverage loss of the pointer model, 0 or more.",
    )
    coverage_after: Count = Field(
        default=0,
        description="Steps before coverage of the pointer model starts; in the paper, almost all.",
    )

    @model_validator(mode="after")
    def _check_coverage(self) -> "SummarizeTrainConfig":
        if not self.coverage_after:
            return self
        if self.patience is not None:
            reason = "patience may end the training before coverage_after"
            raise InputError(f"{reason} = {self.coverage_after}: remove one of them")
        if self.steps is not None and self.validate_every is not None:
            last_validation = self.steps - self.steps % self.validate_every
            if last_validation <= self.coverage_after:
                raise InputError(
                    f"coverage_after = {self.coverage_after} leaves no validation with coverage: "
                    f"the last is after {last_validation} steps"
                )
        return self


class SummarizeSettings(Settings):
    """Settings of a run that summarizes documents."""

    task: Literal["summarize"] = Field(default="summarize", description="Task of the run.")
    data: SummarizeDataConfig = Field(
        default=HeadlinesDataConfig(), description="Data set: headlines, summaries or public."
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
        default=BeamConfig(width=4, max_length=100), description="Search: greedy, beam or sample."
    )

    def unused_settings(self) -> Mapping[str, str]:
        return NO_SINGLETONS

    @model_validator(mode="after")
    def _check_settings(self) -> "SummarizeSettings":
        check_joint_vocabulary(self)
        if self.model.kind == "pointer" and self.model.copying and self.train.label_smoothing:
            raise InputError("train.label_smoothing is not for a pointer that copies: set it to 0")
        return self
