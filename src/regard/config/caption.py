"""[data], [model] and [train] for captions of pictures; [picture] is that of `image`."""

from typing import Annotated, Literal

from pydantic import Field

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
