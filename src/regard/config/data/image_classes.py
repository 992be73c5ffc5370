"""[data] of episodes for few-shot learning."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from regard.config.base import MAX_NUMBER, Count, DataConfig, Positive
from regard.config.data.data_fields import PUBLIC_NAME_HELP, HeldOutShare

Ways = Annotated[int, Field(ge=2, le=MAX_NUMBER)]

HeightAndWidth = Annotated[tuple[Positive, Positive], Field(strict=False)]

WAYS_HELP = "Number of classes in an episode."

SHOTS_HELP = "Number of labeled examples of each class."

SEED_HELP = "Random seed of the episodes and of the classes that are held out."

EVAL_EPISODES_HELP = "Number of episodes in dev, and in test."

IMAGE_SIZE_HELP = "Height and width, in pixels, to which images are resized."

CHANNELS_HELP = "Color channels: 1 (gray) or 3 (red, green, blue)."

ROTATIONS_HELP = (
    "Add each training class three more times, rotated by 90, 180 and 270 degrees, as new classes."
)

HELD_OUT_HELP = (
    "Share of the training classes, 0 to 0.5, to hold out for each of dev and test "
    "that is not given."
)


class PrototypesDataConfig(DataConfig):
    """Synthetic points around the prototype of their class."""

    corpus_class: ClassVar = "regard.data.synthetic.episodes:Prototypes"
    kind: Literal["prototypes"] = "prototypes"
    ways: Ways = Field(default=5, description=WAYS_HELP)
    shots: Positive = Field(default=1, description=SHOTS_HELP)
    dim: Positive = Field(default=8, description="Dimension of a point.")
    noise: float = Field(
        default=0.5,
        gt=0,
        description="Standard deviation of points around their prototype, more than 0.",
    )
    seed: Count = Field(default=0, description="Random seed of the episodes.")
    eval_episodes: Positive = Field(default=2000, description=EVAL_EPISODES_HELP)


class ClassesDataConfig(DataConfig):
    """Your own images, in a folder for each class."""

    corpus_class: ClassVar = "regard.data.formats.class_folders:ClassFolders"
    record_fields: ClassVar = (("image", "label"),)
    record_format: ClassVar = "image_folders"
    kind: Literal["classes"] = "classes"
    train: str = Field(
        description="Folder or .zip file; each folder in it, at any depth, that holds images is a "
        "class."
    )
    dev: str | None = Field(default=None, description="Folder or .zip file with other classes.")
    test: str | None = Field(default=None, description="Folder or .zip file with other classes.")
    ways: Ways = Field(default=5, description=WAYS_HELP)
    shots: Positive = Field(default=1, description=SHOTS_HELP)
    image_size: HeightAndWidth = Field(default=(28, 28), description=IMAGE_SIZE_HELP)
    channels: Literal[1, 3] = Field(default=1, description=CHANNELS_HELP)
    rotations: bool = Field(default=False, description=ROTATIONS_HELP)
    held_out: HeldOutShare = Field(default=0.1, description=HELD_OUT_HELP)
    seed: Count = Field(default=0, description=SEED_HELP)
    eval_episodes: Positive = Field(default=2000, description=EVAL_EPISODES_HELP)


class PublicClassesDataConfig(DataConfig):
    """Public images of many classes, downloaded at first use."""

    corpus_class: ClassVar = "regard.data.formats.class_folders:PublicImageClasses"
    kind: Literal["public"] = "public"
    name: Literal["omniglot"] = Field(default="omniglot", description=PUBLIC_NAME_HELP)
    ways: Ways = Field(default=5, description=WAYS_HELP)
    shots: Positive = Field(default=1, description=SHOTS_HELP)
    image_size: HeightAndWidth = Field(default=(28, 28), description=IMAGE_SIZE_HELP)
    channels: Literal[1, 3] = Field(default=1, description=CHANNELS_HELP)
    rotations: bool = Field(default=True, description=ROTATIONS_HELP)
    held_out: HeldOutShare = Field(
        default=0.1, description="Share of the training classes, 0 to 0.5, to hold out for dev."
    )
    seed: Count = Field(default=0, description=SEED_HELP)
    eval_episodes: Positive = Field(default=2000, description=EVAL_EPISODES_HELP)
