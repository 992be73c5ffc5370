"""TODO regard.config.image_size."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, NonEmptyTuple, Positive


class ImageConfig(Config):
    """How an image becomes numbers."""

    size: Annotated[tuple[Positive, Positive], Field(strict=False)] = Field(
        default=(32, 32), description="Height and width that images are brought to, in pixels."
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


def check_patch_size(size: tuple[int, int], patch_size: int) -> None:
    """An image is cut into whole patches."""
    if size[0] % patch_size or size[1] % patch_size:
        raise ValueError(
            f"image.size = {list(size)} cannot be cut into patches of model.patch_size = "
            f"{patch_size}: "
            "make each side a multiple of it"
        )


def check_image_size(size: tuple[int, int], layers: int) -> None:
    """Each layer halves an image."""
    if min(size) >> layers == 0:
        raise ValueError(
            f"data.image_size = {list(size)} is too small for embed.layers = {layers}, each of "
            f"which halves it: at least {2**layers} x {2**layers}"
        )
