"""Settings of translation."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, Fraction, Positive
from regard.config.data import (
    DatesDataConfig,
    TranslateDataConfig,
)
from regard.config.decode import BeamConfig, DecodeConfig
from regard.config.model import (
    RnnSearchConfig,
    TranslateModelConfig,
)
from regard.config.settings import MODEL_HELP, TRAIN_HELP, Settings
from regard.config.train import TrainConfig
from regard.config.validators import check_joint_vocabulary


class TranslateTrainConfig(TrainConfig):
    """Training to translate."""

    max_tokens: Positive = Field(
        default=256, description="Longer pairs (in tokens, a side) are left out."
    )
    metric: Literal["loss", "bleu", "chrf", "ter", "exact"] = Field(
        default="loss", description="What is better: loss, bleu, chrf, ter or exact, on dev."
    )
    teacher_forcing: Fraction = Field(
        default=1.0,
        description="How often the decoder reads the true token before, not its own: 1 is always, "
        "less is scheduled sampling.",
    )
    teacher_forcing_steps: Count = Field(
        default=0, description="Steps in which that falls from 1, along a line; 0: at once."
    )
    compile: bool = Field(
        default=False, description="Compile the transformer first (torch.compile)."
    )
    guided_alignment_weight: float = Field(
        default=0.0, ge=0, description="Weight of a loss on given alignments; 0 is none."
    )
    alignments: str | None = Field(
        default=None,
        description="These alignments: Pharaoh format, a line for each pair of training data.",
    )

    @model_validator(mode="after")
    def _check_alignments(self) -> "TranslateTrainConfig":
        if self.guided_alignment_weight and self.alignments is None:
            raise ValueError(
                "guided_alignment_weight needs alignments: name the file that holds them"
            )
        return self


class TranslateMetricsConfig(Config):
    """How translations are scored."""

    tokenize: Literal["13a", "none", "intl", "char", "zh"] = Field(
        default="13a", description="Tokenizer of BLEU; none if the data is tokenized already."
    )


class TranslateSettings(Settings):
    """A source text into a target text."""

    task: Literal["translate"] = Field(default="translate", description="What the model is to do.")
    data: TranslateDataConfig = Field(
        default=DatesDataConfig(), description="dates, reorder, files, public or mix."
    )
    model: TranslateModelConfig = Field(default=RnnSearchConfig(), description=MODEL_HELP)
    train: TranslateTrainConfig = Field(default=TranslateTrainConfig(), description=TRAIN_HELP)
    decode: DecodeConfig = Field(default=BeamConfig(), description="greedy, beam or sample.")
    metrics: TranslateMetricsConfig = Field(
        default=TranslateMetricsConfig(), description="How translations are scored."
    )

    @model_validator(mode="after")
    def _check_settings(self) -> "TranslateSettings":
        check_joint_vocabulary(self)
        if self.train.compile and self.model.kind != "transformer":
            reason = "a recurrent loop would be compiled anew for every length"
            raise ValueError(f"train.compile is for the transformer: {reason}; set it to false")
        return self
