"""[data], [model] and [train] for captions of pictures; [picture] is that of `image`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.data import HELD_OUT, Paths
from regard.config.image import ShapesData
from regard.config.model import DIM, DROPOUT, HIDDEN, NORMALISE, SCORE, Normaliser, Score
from regard.config.table import Count, Part, Positive, Share, Table
from regard.config.train import Train

PICTURE_DIM = "Width of the convolutions, and of what is known of a place."
PICTURE_LAYERS = "Convolutions, one on the other."
POOLS = "How many of them halve the picture: more leave fewer places."


class DigitsData(Table):
    """Pictures of digits in the cells of a grid, and which digit is where: made here."""

    kind: Literal["digits"] = "digits"
    size: Positive = Field(default=8000, description="Pictures to train on.")
    seed: Count = Field(default=0, description="Another seed, other pictures.")
    held_out: Positive = Field(default=500, description="Pictures in dev, and in the test.")
    rows: Literal[2, 3] = Field(default=2, description="Rows of cells: 2 or 3.")
    columns: Literal[2, 3] = Field(default=2, description="Columns of cells: 2 or 3.")
    fewest: Positive = Field(default=1, description="Digits of a picture, at least.")
    most: Positive = Field(default=4, description="Digits of a picture, at most.")
    side: Positive = Field(default=48, description="Height and width, in pixels.")
    noise: Count = Field(default=24, description="Of the ground: 0 is none, 100 is much.")
    drawn: Literal["font", "scikit-learn"] = Field(
        default="font",
        description="Digits in Pillow's font, or those that people wrote, if scikit-learn is "
        "installed, which has 1,797 of them.",
    )


class CaptionsData(Table):
    """Your own pictures with captions."""

    kind: Literal["captions"] = "captions"
    train: Paths = Field(
        description='JSON lines of {"image": …, "caption": …}, a picture as often as it has '
        "captions; or COCO's JSON of images and annotations."
    )
    dev: Paths | None = Field(default=None, description="The same, for validation while training.")
    test: Paths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["jsonl", "coco"] | None = Field(
        default=None, description="jsonl or coco; not set, the names of the files tell."
    )
    folder: str | None = Field(
        default=None, description="Where the pictures are; where the file is, if not set."
    )
    held_out: Share = Field(default=0.1, description=HELD_OUT)


Captions = Annotated[DigitsData | ShapesData | CaptionsData, Field(discriminator="kind")]


class ShowTell(Table):
    """The picture is read once, before the first word (Vinyals et al. 2015)."""

    kind: Literal["show_tell"] = "show_tell"
    dim: Positive = Field(default=128, description=DIM)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN)
    picture_dim: Positive = Field(default=64, description=PICTURE_DIM)
    picture_layers: Positive = Field(default=3, description=PICTURE_LAYERS)
    pools: Count = Field(default=2, description=POOLS)
    dropout: Part = Field(default=0.0, description=DROPOUT)


class ShowAttend(Table):
    """Each word looks at a place of the picture (Xu et al. 2015)."""

    kind: Literal["show_attend"] = "show_attend"
    dim: Positive = Field(default=128, description=DIM)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN)
    align_dim: Positive | None = Field(
        default=None, description="Width inside the score; as hidden_dim where not set."
    )
    picture_dim: Positive = Field(default=64, description=PICTURE_DIM)
    picture_layers: Positive = Field(default=3, description=PICTURE_LAYERS)
    pools: Count = Field(default=2, description=POOLS)
    score: Score = Field(default="additive", description=SCORE)
    normalise: Normaliser = Field(
        default="softmax", description=f"{NORMALISE} softmax is soft attention, reinforce hard."
    )
    reward: float = Field(
        default=1.0, gt=0, description="Weight of what a place was good for (reinforce)."
    )
    entropy: float = Field(default=0.01, ge=0, description="Weight of looking around (reinforce).")
    expected: Share = Field(
        default=0.5, description="How often all places are read after all (reinforce)."
    )
    dropout: Part = Field(default=0.0, description=DROPOUT)


Captioner = Annotated[ShowTell | ShowAttend, Field(discriminator="kind")]


class CaptionTrain(Train):
    """Training to say what is in a picture."""

    tokens_per_batch: Positive | None = Field(default=None, description="Not for pictures.")
    sentences_per_batch: Positive | None = Field(default=32, description="Captions of a batch.")
    longest: Positive = Field(default=50, description="Longer captions (in tokens) are left out.")
    crop: Count = Field(
        default=0,
        description="A picture gets so many black pixels around it, and its own size is cut out of "
        "that anywhere: each time, it stands a little elsewhere.",
    )
    doubly: float = Field(
        default=0.0,
        ge=0,
        description="Weight of (1 - what a place got in all)^2, summed over places: lambda, in the "
        "paper 1; for soft attention.",
    )
    soft_steps: Count = Field(
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
    def _has_no_tokens(self) -> "CaptionTrain":
        if self.tokens_per_batch is not None:
            raise ValueError("tokens_per_batch is not for pictures: give sentences_per_batch")
        return self


def check_captioner(model: ShowTell | ShowAttend, train: CaptionTrain) -> None:
    """What is for one of the two attentions only."""
    hard = isinstance(model, ShowAttend) and model.normalise == "reinforce"
    if train.doubly and (hard or isinstance(model, ShowTell)):
        what = "hard attention" if hard else f"model.kind = {model.kind!r}"
        raise ValueError(f"train.doubly is for soft attention, not for {what}: set it to 0")
    if train.soft_steps and not hard:
        raise ValueError(
            'train.soft_steps is for hard attention: set model.normalise = "reinforce"'
        )
    if hard and train.label_smoothing:
        raise ValueError("train.label_smoothing is not for hard attention: set it to 0")


def check_grid(size: tuple[int, int], pools: int) -> None:
    """A place is left of a picture, on each side."""
    if min(size) >> pools == 0:
        least = 2**pools
        raise ValueError(
            f"picture.size = {list(size)} is too small for model.pools = {pools}: each side must "
            f"be at least {least} pixels"
        )
