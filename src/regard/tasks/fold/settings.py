"""Settings of protein folding."""

from collections.abc import Mapping
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
from regard.errors import InputError

FoldDataConfig = Annotated[
    ProteinsDataConfig | PublicProteinsDataConfig | PointsDataConfig | DistancesDataConfig,
    Field(discriminator="kind"),
]

FoldModelConfig = Annotated[MsaConfig | BiRnnConfig | BertConfig, Field(discriminator="kind")]


class FoldHeadConfig(Config):
    """[head]: from residues to their states, or from pairs of residues to distances."""

    hidden_dim: Positive | None = Field(
        default=None, description="Width of a hidden layer before the classes; unset: none."
    )
    dropout: Rate = Field(default=0.1, description="Share of values set to zero in training.")
    bins: Positive = Field(default=64, description="Number of bins of distance; at least 2.")
    min_distance: float = Field(
        default=2.0, ge=0, description="Lower edge of the first bin, in angstroms."
    )
    max_distance: float = Field(
        default=22.0,
        gt=0,
        description="Upper edge of the last bin, in angstroms; it also holds all larger distances.",
    )
    contact_distance: float = Field(
        default=8.0, gt=0, description="Distance below which a pair is a contact, in angstroms."
    )

    @model_validator(mode="after")
    def _check_distances(self) -> "FoldHeadConfig":
        if self.bins < 2 or not self.min_distance < self.contact_distance <= self.max_distance:
            raise InputError(
                f"min_distance = {self.min_distance}, contact_distance = {self.contact_distance} "
                f"and max_distance = {self.max_distance} must increase, and bins must be at least 2"
            )
        return self


class FoldTrainConfig(TrainConfig):
    """[train] of proteins."""

    max_tokens: Positive = Field(
        default=128,
        description="Residues of a window; longer proteins are read in windows that overlap by "
        "half. Sets of more points are left out.",
    )
    examples_per_batch: Positive | None = Field(default=8, description="Windows per batch.")
    tokens_per_batch: Positive | None = Field(
        default=None,
        description="Size of a batch in residues, padding included. Set this or "
        "examples_per_batch.",
    )
    metric: Literal["loss", "accuracy", "mae"] | None = Field(
        default=None,
        description="Metric on dev that selects the best weights: loss, accuracy (of states) or "
        "mae (of distances). Default: accuracy or mae, by the data.",
    )


class FoldSettings(Settings):
    """Settings of a run that predicts the states of residues, or distances between them."""

    task: Literal["fold"] = Field(default="fold", description="Task of the run.")
    data: FoldDataConfig = Field(
        default=PublicProteinsDataConfig(),
        description="Data set: proteins, public, points or distances.",
    )
    text: TextConfig = Field(
        default=TextConfig(kind="characters"),
        description="Unused: the letters of residues are fixed.",
    )
    model: FoldModelConfig = Field(default=MsaConfig(), description=MODEL_HELP)
    head: FoldHeadConfig = Field(
        default=FoldHeadConfig(), description="Layers from residues or pairs to predictions."
    )
    train: FoldTrainConfig = Field(default=FoldTrainConfig(), description=TRAIN_HELP)

    def unused_settings(self) -> Mapping[str, str]:
        letters = "the letters of residues are fixed"
        if is_distance_data(self.data):
            return {"text": letters, "head.hidden_dim": "distances are read from states of pairs"}
        names = ("bins", "min_distance", "max_distance", "contact_distance")
        reason = "this data has states of residues, not distances"
        return {"text": letters, **{f"head.{name}": reason for name in names}}

    @model_validator(mode="after")
    def _check_settings(self) -> "FoldSettings":
        has_distances, metric = is_distance_data(self.data), self.train.metric
        if has_distances and self.model.kind != "msa":
            raise InputError(f"model.kind = {self.model.kind!r} has no states of pairs; take 'msa'")
        if metric == ("accuracy" if has_distances else "mae"):
            raise InputError(f"train.metric = {metric!r} is not for data.kind = {self.data.kind!r}")
        return self
