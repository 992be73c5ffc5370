"""Settings of translation."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, Fraction, Positive
from regard.config.data.text_pairs import (
    DatesDataConfig,
    FilesDataConfig,
    MixDataConfig,
    PublicTranslationDataConfig,
    ReorderDataConfig,
)
from regard.config.decode import BeamConfig, DecodeConfig
from regard.config.models.seq2seq import RnnSearchConfig, TextPairModelConfig
from regard.config.settings import MODEL_HELP, NO_SINGLETONS, TEXT_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.config.validators import check_joint_vocabulary
from regard.errors import InputError

TranslateDataConfig = Annotated[
    DatesDataConfig
    | ReorderDataConfig
    | FilesDataConfig
    | PublicTranslationDataConfig
    | MixDataConfig,
    Field(discriminator="kind"),
]

TranslateModelConfig = Annotated[TextPairModelConfig, Field(discriminator="kind")]


class TranslateTrainConfig(TrainConfig):
    """Training of a translator."""

    max_tokens: Positive = Field(
        default=256, description="Maximum length of a side in tokens; longer pairs are left out."
    )
    metric: Literal["loss", "bleu", "chrf", "ter", "exact"] = Field(
        default="loss",
        description="Metric on dev that selects the best weights: loss, bleu, chrf, ter or exact.",
    )
    teacher_forcing: Fraction = Field(
        default=1.0,
        description="Probability, 0 to 1, that the decoder reads the true previous token and not "
        "its own; below 1: scheduled sampling.",
    )
    teacher_forcing_steps: Count = Field(
        default=0,
        description="Steps in which train.teacher_forcing falls linearly from 1; 0: at once.",
    )
    compile: bool = Field(
        default=False,
        description="Whether to compile the transformer before training (torch.compile).",
    )
    guided_alignment_weight: float = Field(
        default=0.0,
        ge=0,
        description="Weight of the guided alignment loss, 0 or more; 0: no such loss.",
    )
    alignments: str | None = Field(
        default=None,
        description="File of word alignments in Pharaoh format, a line for each training pair.",
    )

    @model_validator(mode="after")
    def _check_alignments(self) -> "TranslateTrainConfig":
        if self.guided_alignment_weight and self.alignments is None:
            raise InputError(
                "guided_alignment_weight needs alignments: name their file in train.alignments"
            )
        return self


class TranslateMetricsConfig(Config):
    """Options of the metrics of translation."""

    tokenize: Literal["13a", "none", "intl", "char", "zh"] = Field(
        default="13a",
        description="Tokenizer of BLEU: 13a, intl, char, zh, or none for data that is tokenized.",
    )


class TranslateSettings(Settings):
    """Settings of a run that translates a source text into a target text."""

    task: Literal["translate"] = Field(default="translate", description="Task of the run.")
    data: TranslateDataConfig = Field(
        default=DatesDataConfig(), description="Data set: dates, reorder, files, public or mix."
    )
    text: TextConfig = Field(default=TextConfig(), description=TEXT_HELP)
    model: TranslateModelConfig = Field(default=RnnSearchConfig(), description=MODEL_HELP)
    train: TranslateTrainConfig = Field(default=TranslateTrainConfig(), description=TRAIN_HELP)
    decode: DecodeConfig = Field(
        default=BeamConfig(), description="Search: greedy, beam or sample."
    )
    metrics: TranslateMetricsConfig = Field(
        default=TranslateMetricsConfig(), description="Options of the metrics."
    )

    def unused_settings(self) -> Mapping[str, str]:
        return NO_SINGLETONS

    @model_validator(mode="after")
    def _check_settings(self) -> "TranslateSettings":
        check_joint_vocabulary(self)
        if self.train.compile and self.model.kind != "transformer":
            reason = "a recurrent model would be compiled again for every length"
            raise InputError(f"train.compile is for the transformer: {reason}; set it to false")
        return self
