"""[image]: the conversion of images into pixels, and checks of sizes."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, NonEmptyTuple, Positive
from regard.errors import InputError


class ImageConfig(Config):
    """The conversion of an image into an array of pixels."""

    size: Annotated[tuple[Positive, Positive], Field(strict=False)] = Field(
        default=(32, 32), description="Height and width, in pixels, to which images are resized."
    )
    channels: Literal[1, 3] = Field(
        default=3, description="Color channels: 1 (gray) or 3 (red, green, blue)."
    )
    fit: Literal["crop", "pad", "stretch"] = Field(
        default="crop",
        description="Treatment of images with another aspect ratio: crop, pad (with white) or "
        "stretch.",
    )
    mean: NonEmptyTuple[float] = Field(
        default=(0.5,),
        description="Mean to subtract from the channels (values 0 to 1): one value, or one for each"
        " channel.",
    )
    std: NonEmptyTuple[float] = Field(
        default=(0.5,),
        description="Standard deviation to divide the channels by: one value, or one for each "
        "channel.",
    )

    @model_validator(mode="after")
    def _check_channels(self) -> "ImageConfig":
        for name in ("mean", "std"):
            if len(getattr(self, name)) not in (1, self.channels):
                expected_count = (
                    f"one value, or {self.channels}" if self.channels > 1 else "one value"
                )
                raise InputError(
                    f"{name} must have {expected_count}, not {len(getattr(self, name))}"
                )
        if min(self.std) <= 0:
            raise InputError(f"std must be positive, not {min(self.std)}")
        return self


def check_patch_size(size: tuple[int, int], patch_size: int) -> None:
    """Raise an error unless an image can be cut into complete patches."""
    if size[0] % patch_size or size[1] % patch_size:
        raise InputError(
            f"image.size = {list(size)} cannot be cut into patches of model.patch_size = "
            f"{patch_size}: "
            "make each side a multiple of it"
        )


def check_image_size(size: tuple[int, int], layers: int) -> None:
    """Raise an error if an image is too small for layers that each halve it."""
    if min(size) >> layers == 0:
        raise InputError(
            f"data.image_size = {list(size)} is too small for embed.layers = {layers}, each of "
            f"which halves it: at least {2**layers} x {2**layers}"
        )
