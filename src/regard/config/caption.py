"""[data], [model] and [train] for captions of pictures; [picture] is that of `image`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, Fraction, Positive, Rate
from regard.config.data import HELD_OUT_HELP, FilePaths
from regard.config.image import ShapesDataConfig
from regard.config.model import (
    DIM_HELP,
    DROPOUT_HELP,
    HIDDEN_DIM_HELP,
    NORMALIZE_HELP,
    SCORE_HELP,
    NormalizerName,
    ScoreName,
)
from regard.config.train import TrainConfig

IMAGE_DIM_HELP = "Width of the convolutions, and of what is known of a place."
IMAGE_LAYERS_HELP = "Convolutions, one on the other."
POOLING_LAYERS_HELP = "How many of them halve the picture: more leave fewer places."


class DigitsDataConfig(Config):
    """Pictures of digits in the cells of a grid, and which digit is where: made here."""

    kind: Literal["digits"] = "digits"
    size: Positive = Field(default=8000, description="Pictures to train on.")
    seed: Count = Field(default=0, description="Another seed, other pictures.")
    held_out: Positive = Field(default=500, description="Pictures in dev, and in the test.")
    rows: Literal[2, 3] = Field(default=2, description="Rows of cells: 2 or 3.")
    columns: Literal[2, 3] = Field(default=2, description="Columns of cells: 2 or 3.")
    min_digits: Positive = Field(default=1, description="Digits of a picture, at least.")
    max_digits: Positive = Field(default=4, description="Digits of a picture, at most.")
    side: Positive = Field(default=48, description="Height and width, in pixels.")
    noise: Count = Field(default=24, description="Of the ground: 0 is none, 100 is much.")
    digit_source: Literal["font", "scikit-learn"] = Field(
        default="font",
        description="Digits in Pillow's font, or those that people wrote, if scikit-learn is "
        "installed, which has 1,797 of them.",
    )


class CaptionFilesDataConfig(Config):
    """Your own pictures with captions."""

    kind: Literal["captions"] = "captions"
    train: FilePaths = Field(
        description='JSON lines of {"image": …, "caption": …}, a picture as often as it has '
        "captions; or COCO's JSON of images and annotations."
    )
    dev: FilePaths | None = Field(
        default=None, description="The same, for validation while training."
    )
    test: FilePaths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["jsonl", "coco"] | None = Field(
        default=None, description="jsonl or coco; not set, the names of the files tell."
    )
    folder: str | None = Field(
        default=None, description="Where the pictures are; where the file is, if not set."
    )
    held_out: Fraction = Field(default=0.1, description=HELD_OUT_HELP)


CaptionDataConfig = Annotated[
    DigitsDataConfig | ShapesDataConfig | CaptionFilesDataConfig, Field(discriminator="kind")
]


class ShowTellConfig(Config):
    """The picture is read once, before the first word (Vinyals et al. 2015)."""

    kind: Literal["show_tell"] = "show_tell"
    dim: Positive = Field(default=128, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    image_dim: Positive = Field(default=64, description=IMAGE_DIM_HELP)
    image_layers: Positive = Field(default=3, description=IMAGE_LAYERS_HELP)
    pooling_layers: Count = Field(default=2, description=POOLING_LAYERS_HELP)
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)


class ShowAttendConfig(Config):
    """Each word looks at a place of the picture (Xu et al. 2015)."""

    kind: Literal["show_attend"] = "show_attend"
    dim: Positive = Field(default=128, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    align_dim: Positive | None = Field(
        default=None, description="Width inside the score; as hidden_dim where not set."
    )
    image_dim: Positive = Field(default=64, description=IMAGE_DIM_HELP)
    image_layers: Positive = Field(default=3, description=IMAGE_LAYERS_HELP)
    pooling_layers: Count = Field(default=2, description=POOLING_LAYERS_HELP)
    score: ScoreName = Field(default="additive", description=SCORE_HELP)
    normalize: NormalizerName = Field(
        default="softmax",
        description=f"{NORMALIZE_HELP} softmax is soft attention, reinforce hard.",
    )
    reward_weight: float = Field(
        default=1.0, gt=0, description="Weight of what a place was good for (reinforce)."
    )
    entropy_weight: float = Field(
        default=0.01, ge=0, description="Weight of looking around (reinforce)."
    )
    expectation_rate: Fraction = Field(
        default=0.5, description="How often all places are read after all (reinforce)."
    )
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)


CaptionModelConfig = Annotated[ShowTellConfig | ShowAttendConfig, Field(discriminator="kind")]


class CaptionTrainConfig(TrainConfig):
    """Training to say what is in a picture."""

    tokens_per_batch: Positive | None = Field(default=None, description="Not for pictures.")
    examples_per_batch: Positive | None = Field(default=32, description="Captions of a batch.")
    max_tokens: Positive = Field(
        default=50, description="Longer captions (in tokens) are left out."
    )
    crop_padding: Count = Field(
        default=0,
        description="A picture gets so many black pixels around it, and its own size is cut out of "
        "that anywhere: each time, it stands a little elsewhere.",
    )
    doubly_stochastic_weight: float = Field(
        default=0.0,
        ge=0,
        description="Weight of (1 - what a place got in all)^2, summed over places: lambda, in the "
        "paper 1; for soft attention.",
    )
    soft_attention_steps: Count = Field(
        default=0,
        description="For so many steps all places are read, before hard attention draws one.",
    )
    metric: Literal["loss", "bleu1", "bleu2", "bleu3", "bleu4", "cider", "exact", "pointing"] = (
        Field(
            default="loss",
            description="What is better, on dev: loss, bleu1 to bleu4, cider, exact or pointing.",
        )
    )

    @model_validator(mode="after")
    def _check_batch_size(self) -> "CaptionTrainConfig":
        if self.tokens_per_batch is not None:
            raise ValueError("tokens_per_batch is not for pictures: give examples_per_batch")
        return self


def check_attention_settings(
    model: ShowTellConfig | ShowAttendConfig, train: CaptionTrainConfig
) -> None:
    """What is for one of the two attentions only."""
    is_hard = isinstance(model, ShowAttendConfig) and model.normalize == "reinforce"
    if train.doubly_stochastic_weight and (is_hard or isinstance(model, ShowTellConfig)):
        unsupported = "hard attention" if is_hard else f"model.kind = {model.kind!r}"
        raise ValueError(
            f"train.doubly_stochastic_weight is for soft attention, not for {unsupported}: "
            "set it to 0"
        )
    if train.soft_attention_steps and not is_hard:
        raise ValueError(
            'train.soft_attention_steps is for hard attention: set model.normalize = "reinforce"'
        )
    if is_hard and train.label_smoothing:
        raise ValueError("train.label_smoothing is not for hard attention: set it to 0")


def check_pooled_size(size: tuple[int, int], pooling_layers: int) -> None:
    """A place is left of a picture, on each side."""
    if min(size) >> pooling_layers == 0:
        min_side = 2**pooling_layers
        raise ValueError(
            f"image.size = {list(size)} is too small for model.pooling_layers = "
            f"{pooling_layers}: each side must "
            f"be at least {min_side} pixels"
        )
