"""Settings of protein folding."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive, Rate
from regard.config.data.proteins import (
    DistancesDataConfig,
    PointsDataConfig,
    ProteinsDataConfig,
    PublicProteinsDataConfig,
    is_distance_data,
)
from regard.config.models.encoders import BertConfig, BiRnnConfig
from regard.config.models.proteins import MsaConfig
from regard.config.settings import MODEL_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig

FoldDataConfig = Annotated[
    ProteinsDataConfig | PublicProteinsDataConfig | PointsDataConfig | DistancesDataConfig,
    Field(discriminator="kind"),
]

FoldModelConfig = Annotated[MsaConfig | BiRnnConfig | BertConfig, Field(discriminator="kind")]


class FoldHeadConfig(Config):
    """From states to states of residues, or from pairs to distances."""

    hidden_dim: Positive | None = Field(
        default=None, description="Width of a layer before the classes; none where not set."
    )
    dropout: Rate = Field(default=0.1, description="Share of values set to zero in training.")
    bins: Positive = Field(default=64, description="Of distances: classes that they fall into,")
    min_distance: float = Field(default=2.0, ge=0, description="from here,")
    max_distance: float = Field(
        default=22.0, gt=0, description="to there; the last has all beyond."
    )
    contact_distance: float = Field(default=8.0, gt=0, description="Nearer than this is a contact.")

    @model_validator(mode="after")
    def _check_distances(self) -> "FoldHeadConfig":
        if self.bins < 2 or not self.min_distance < self.contact_distance <= self.max_distance:
            raise ValueError(
                f"min_distance = {self.min_distance}, contact_distance = {self.contact_distance} "
                f"and max_distance = {self.max_distance} must rise, and bins be 2 or more"
            )
        return self


class FoldTrainConfig(TrainConfig):
    """Training to fold."""

    max_tokens: Positive = Field(
        default=128,
        description="Residues that are read at once; longer proteins are read in windows that "
        "overlap by half. Sets of more points are left out.",
    )
    examples_per_batch: Positive | None = Field(default=8, description="Windows of a batch.")
    tokens_per_batch: Positive | None = Field(
        default=None, description="Size of a batch, padding included. Or give examples_per_batch."
    )
    metric: Literal["loss", "accuracy", "mae"] = Field(
        default="loss",
        description="What is better, on dev: loss, accuracy (of states) or mae (of distances).",
    )


class FoldSettings(Settings):
    """A protein into the states of its residues, or some distances into the others."""

    task: Literal["fold"] = Field(default="fold", description="What the model is to do.")
    data: FoldDataConfig = Field(
        default=PublicProteinsDataConfig(), description="proteins, public, points or distances."
    )
    text: TextConfig = Field(
        default=TextConfig(), description="Not for proteins: letters are known."
    )
    model: FoldModelConfig = Field(default=MsaConfig(), description=MODEL_HELP)
    head: FoldHeadConfig = Field(
        default=FoldHeadConfig(), description="From residues or pairs to what is told."
    )
    train: FoldTrainConfig = Field(default=FoldTrainConfig(), description=TRAIN_HELP)

    @model_validator(mode="after")
    def _check_settings(self) -> "FoldSettings":
        has_distances, metric = is_distance_data(self.data), self.train.metric
        if has_distances and self.model.kind != "msa":
            raise ValueError(f"model.kind = {self.model.kind!r} knows no pairs: take 'msa'")
        if metric == ("accuracy" if has_distances else "mae"):
            raise ValueError(f"train.metric = {metric!r} is not for data.kind = {self.data.kind!r}")
        return self
