"""[data], [picture], [model] and [train] for pictures."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, Fraction, NonEmptyTuple, Positive, Rate
from regard.config.data import HELD_OUT_HELP, PUBLIC_NAME_HELP, FilePaths
from regard.config.encoder import HEADS_HELP
from regard.config.model import ACTIVATION_HELP, DROPOUT_HELP, ActivationName

SHAPES = ("circle", "square", "triangle", "diamond", "cross", "ring")


class ShapesDataConfig(Config):
    """Pictures of a coloured shape, with its name and a sentence on it: made here."""

    kind: Literal["shapes"] = "shapes"
    size: Positive = Field(default=4000, description="Pictures to train on.")
    seed: Count = Field(default=0, description="Another seed, other pictures.")
    held_out: Positive = Field(default=500, description="Pictures in dev, and in the test.")
    side: Positive = Field(default=32, description="Height and width, in pixels.")
    shapes: NonEmptyTuple[str] = Field(default=SHAPES, description="Which shapes, of these.")
    noise: Count = Field(default=24, description="Of the ground: 0 is none, 100 is much.")


class ImagesDataConfig(Config):
    """Your own pictures with labels."""

    kind: Literal["pictures"] = "pictures"
    train: FilePaths = Field(
        description="A folder with a folder of pictures for each label; a TSV or CSV of paths and "
        'labels; or two IDX files: ["images-idx3-ubyte.gz", "labels-idx1-ubyte.gz"].'
    )
    dev: FilePaths | None = Field(
        default=None, description="The same, for validation while training."
    )
    test: FilePaths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["folder", "idx", "tsv", "csv"] | None = Field(
        default=None, description="folder, idx, tsv or csv; not set, the names of the files tell."
    )
    columns: NonEmptyTuple[str] = Field(
        default=("picture", "label"),
        description='What each column of a TSV or CSV is, in order; "-" skips one.',
    )
    labels: NonEmptyTuple[str] | None = Field(
        default=None, description="Names for the numbers of IDX files, from 0."
    )
    held_out: Fraction = Field(default=0.1, description=HELD_OUT_HELP)


class PublicImagesDataConfig(Config):
    """Public pictures with classes, fetched when they are first needed."""

    kind: Literal["public"] = "public"
    name: Literal["fashion_mnist", "fashion_mnist_20k"] = Field(
        default="fashion_mnist", description=PUBLIC_NAME_HELP
    )


ImageDataConfig = Annotated[
    ShapesDataConfig | ImagesDataConfig | PublicImagesDataConfig, Field(discriminator="kind")
]


class ImageConfig(Config):
    """How a picture becomes numbers."""

    size: Annotated[tuple[Positive, Positive], Field(strict=False)] = Field(
        default=(32, 32), description="Height and width that pictures are brought to, in pixels."
    )
    channels: Literal[1, 3] = Field(default=3, description="1: grey; 3: red, green and blue.")
    fit: Literal["crop", "pad", "stretch"] = Field(
        default="crop",
        description="Of another shape: its middle (crop), all of it on white (pad), or stretch.",
    )
    mean: NonEmptyTuple[float] = Field(
        default=(0.5,), description="Taken from each channel (0 to 1); one for all, or one each."
    )
    std: NonEmptyTuple[float] = Field(
        default=(0.5,), description="What is left is divided by this; one for all, or one each."
    )

    @model_validator(mode="after")
    def _check_channels(self) -> "ImageConfig":
        for name in ("mean", "std"):
            if len(getattr(self, name)) not in (1, self.channels):
                expected_count = (
                    f"one value, or {self.channels}" if self.channels > 1 else "one value"
                )
                raise ValueError(
                    f"{name} must have {expected_count}, not {len(getattr(self, name))}"
                )
        if min(self.std) <= 0:
            raise ValueError(f"std must be positive, not {min(self.std)}")
        return self


class VitConfig(Config):
    """A transformer over the patches of a picture (Dosovitskiy et al. 2021)."""

    kind: Literal["vit"] = "vit"
    patch_size: Positive = Field(default=16, description="Height and width of a patch, in pixels.")
    dim: Positive = Field(default=768, description="Width of a state.")
    heads: Positive = Field(default=12, description=HEADS_HELP)
    layers: Positive = Field(default=12, description="Layers, one on the other.")
    stem: Literal["patch", "convolution"] = Field(
        default="patch",
        description="A patch by one product, as in the paper, or by small convolutions, which "
        "learn from fewer pictures (patch_size is then 2, 4, 8, …).",
    )
    hidden_dim: Positive | None = Field(
        default=None,
        description="Width inside the feed-forward layers; four times dim where not set.",
    )
    activation: ActivationName = Field(default="gelu", description=ACTIVATION_HELP)
    norm_eps: float = Field(default=1e-6, gt=0, description="Added to a variance.")
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    attention_dropout: Rate | None = Field(
        default=None, description="The same, of attention weights; as dropout where not set."
    )

    @model_validator(mode="after")
    def _check_heads_and_patch_size(self) -> "VitConfig":
        if self.dim % self.heads:
            raise ValueError(f"dim = {self.dim} cannot be divided among heads = {self.heads}")
        if self.stem == "convolution" and (
            self.patch_size < 2 or self.patch_size & (self.patch_size - 1)
        ):
            raise ValueError(
                f"stem = 'convolution' needs patch_size = 2, 4, 8, …, not {self.patch_size}"
            )
        return self


def check_patch_size(size: tuple[int, int], patch_size: int) -> None:
    """A picture is cut into whole patches."""
    if size[0] % patch_size or size[1] % patch_size:
        raise ValueError(
            f"image.size = {list(size)} cannot be cut into patches of model.patch_size = "
            f"{patch_size}: "
            "make each side a multiple of it"
        )
