"""TODO regard.config.data.image_classes."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from regard.config.base import Count, DataConfig, Fraction, Positive
from regard.config.data.common import PUBLIC_NAME_HELP

Ways = Annotated[int, Field(ge=2)]

HeightAndWidth = Annotated[tuple[Positive, Positive], Field(strict=False)]

WAYS_HELP = "Classes of an episode."

SHOTS_HELP = "Examples of each of them."

SEED_HELP = "Another seed, other episodes, and other classes held out."

EVAL_EPISODES_HELP = "Episodes in dev, and in the test."

IMAGE_SIZE_HELP = "Height and width that images are brought to, in pixels."

CHANNELS_HELP = "1: grey; 3: red, green and blue."

ROTATIONS_HELP = (
    "To train on, each class is there four times, turned by right angles: as other classes."
)

HELD_OUT_HELP = "Share of the classes of train that are dev or test, where those are not given."


class PrototypesDataConfig(DataConfig):
    """Points around the points that are their classes: made here."""

    corpus_class: ClassVar = "regard.data.synthetic.episodes:Prototypes"
    kind: Literal["prototypes"] = "prototypes"
    ways: Ways = Field(default=5, description=WAYS_HELP)
    shots: Positive = Field(default=1, description=SHOTS_HELP)
    dim: Positive = Field(default=8, description="Numbers of a point.")
    noise: float = Field(default=0.5, gt=0, description="Of a point around its class.")
    seed: Count = Field(default=0, description="Another seed, other episodes.")
    eval_episodes: Positive = Field(default=2000, description=EVAL_EPISODES_HELP)


class ClassesDataConfig(DataConfig):
    """Your own images, a folder for each class."""

    corpus_class: ClassVar = "regard.data.formats.class_folders:ClassFolders"
    record_fields: ClassVar = (("image", "label"),)
    record_format: ClassVar = "image_folders"
    kind: Literal["classes"] = "classes"
    train: str = Field(
        description="A folder or a .zip; each folder in it, at any depth, that has images is a "
        "class."
    )
    dev: str | None = Field(default=None, description="The same, with other classes.")
    test: str | None = Field(default=None, description="The same, with other classes.")
    ways: Ways = Field(default=5, description=WAYS_HELP)
    shots: Positive = Field(default=1, description=SHOTS_HELP)
    image_size: HeightAndWidth = Field(default=(28, 28), description=IMAGE_SIZE_HELP)
    channels: Literal[1, 3] = Field(default=1, description=CHANNELS_HELP)
    rotations: bool = Field(default=False, description=ROTATIONS_HELP)
    held_out: Fraction = Field(default=0.1, description=HELD_OUT_HELP)
    seed: Count = Field(default=0, description=SEED_HELP)
    eval_episodes: Positive = Field(default=2000, description=EVAL_EPISODES_HELP)


class PublicClassesDataConfig(DataConfig):
    """Public images with many classes, fetched when they are first needed."""

    corpus_class: ClassVar = "regard.data.formats.class_folders:PublicImageClasses"
    kind: Literal["public"] = "public"
    name: Literal["omniglot"] = Field(default="omniglot", description=PUBLIC_NAME_HELP)
    ways: Ways = Field(default=5, description=WAYS_HELP)
    shots: Positive = Field(default=1, description=SHOTS_HELP)
    image_size: HeightAndWidth = Field(default=(28, 28), description=IMAGE_SIZE_HELP)
    channels: Literal[1, 3] = Field(default=1, description=CHANNELS_HELP)
    rotations: bool = Field(default=True, description=ROTATIONS_HELP)
    held_out: Fraction = Field(
        default=0.1, description="Share of the classes of train that are dev."
    )
    seed: Count = Field(default=0, description=SEED_HELP)
    eval_episodes: Positive = Field(default=2000, description=EVAL_EPISODES_HELP)
