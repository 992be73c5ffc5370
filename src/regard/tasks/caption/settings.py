"""Settings of image captioning."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Count, Positive
from regard.config.data.images import CaptionFilesDataConfig, DigitsDataConfig, ShapesDataConfig
from regard.config.decode import BeamConfig, DecodeConfig
from regard.config.image_size import ImageConfig
from regard.config.models.images import ShowAttendConfig, ShowTellConfig
from regard.config.settings import MODEL_HELP, TEXT_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.errors import InputError

CaptionDataConfig = Annotated[
    DigitsDataConfig | ShapesDataConfig | CaptionFilesDataConfig, Field(discriminator="kind")
]

CaptionModelConfig = Annotated[ShowTellConfig | ShowAttendConfig, Field(discriminator="kind")]


class CaptionTrainConfig(TrainConfig):
    """[train] of captioning."""

    tokens_per_batch: Positive | None = Field(
        default=None, description="Unused: set examples_per_batch."
    )
    examples_per_batch: Positive | None = Field(default=32, description="Captions per batch.")
    max_tokens: Positive = Field(
        default=50, description="Longest caption to train on, in tokens; longer ones are left out."
    )
    crop_padding: Count = Field(
        default=0,
        description="Padding of a random crop, in pixels: black on each side, then a crop of the "
        "original size at a random offset; 0: no crop.",
    )
    doubly_stochastic_weight: float = Field(
        default=0.0,
        ge=0,
        description="Weight lambda of the doubly stochastic penalty, for soft attention: the sum "
        "over regions of (1 - their total attention)^2; 1 in the paper.",
    )
    soft_attention_steps: Count = Field(
        default=0,
        description="First training steps in which hard attention reads all regions, as soft "
        "attention does, before it samples one.",
    )
    metric: Literal["loss", "bleu1", "bleu2", "bleu3", "bleu4", "cider", "exact", "pointing"] = (
        Field(
            default="loss",
            description="Metric on dev that selects the best weights: loss, bleu1 to bleu4, cider, "
            "exact or pointing.",
        )
    )

    @model_validator(mode="after")
    def _check_batch_size(self) -> "CaptionTrainConfig":
        if self.tokens_per_batch is not None:
            raise InputError("tokens_per_batch is not for images; set examples_per_batch")
        return self


def check_attention_settings(
    model: ShowTellConfig | ShowAttendConfig, train: CaptionTrainConfig
) -> None:
    """Raise an error if a setting of soft attention is used with hard attention, or reverse."""
    is_hard = isinstance(model, ShowAttendConfig) and model.normalize == "reinforce"
    if train.doubly_stochastic_weight and (is_hard or isinstance(model, ShowTellConfig)):
        unsupported = "hard attention" if is_hard else f"model.kind = {model.kind!r}"
        raise InputError(
            f"train.doubly_stochastic_weight is for soft attention, not for {unsupported}; "
            "set it to 0"
        )
    if train.soft_attention_steps and not is_hard:
        raise InputError(
            'train.soft_attention_steps is for hard attention; set model.normalize = "reinforce"'
        )
    if is_hard and train.label_smoothing:
        raise InputError("train.label_smoothing is not for hard attention; set it to 0")


def check_pooled_size(size: tuple[int, int], pooling_layers: int) -> None:
    """Raise an error if pooling leaves no region of an image."""
    if min(size) >> pooling_layers == 0:
        min_side = 2**pooling_layers
        raise InputError(
            f"image.size = {list(size)} is too small for model.pooling_layers = "
            f"{pooling_layers}; make each side at least {min_side} pixels"
        )


class CaptionSettings(Settings):
    """Settings of a run that describes an image in a sentence."""

    task: Literal["caption"] = Field(default="caption", description="Task of the run.")
    data: CaptionDataConfig = Field(
        default=DigitsDataConfig(), description="Data set: digits, shapes or captions."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="words", lower=True, split_punctuation=True), description=TEXT_HELP
    )
    image: ImageConfig = Field(
        default=ImageConfig(size=(48, 48)), description="Size and normalization of images."
    )
    model: CaptionModelConfig = Field(
        default=ShowAttendConfig(pooling_layers=3), description=MODEL_HELP
    )
    train: CaptionTrainConfig = Field(default=CaptionTrainConfig(), description=TRAIN_HELP)
    decode: DecodeConfig = Field(
        default=BeamConfig(width=3, max_length=50), description="Search: greedy, beam or sample."
    )

    @model_validator(mode="after")
    def _check_settings(self) -> "CaptionSettings":
        check_attention_settings(self.model, self.train)
        check_pooled_size(self.image.size, self.model.pooling_layers)
        if isinstance(self.decode, BeamConfig) and self.decode.coverage_penalty:
            raise InputError("decode.coverage_penalty needs a source text; set it to 0")
        return self
