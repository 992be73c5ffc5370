"""[data], [embed], [model] and [train] for fewshot: classes from a few examples."""

from typing import Annotated, Literal

from pydantic import Field

from regard.config.bandit import SnailConfig
from regard.config.base import Config, Count, Fraction, Positive
from regard.config.bits import LstmConfig
from regard.config.data import PUBLIC_NAME_HELP

Ways = Annotated[int, Field(ge=2)]
HeightAndWidth = Annotated[tuple[Positive, Positive], Field(strict=False)]
WAYS_HELP, SHOTS_HELP = "Classes of an episode.", "Examples of each of them."
SEED_HELP = "Another seed, other episodes, and other classes held out."
EVAL_EPISODES_HELP = "Episodes in dev, and in the test."
IMAGE_SIZE_HELP = "Height and width that pictures are brought to, in pixels."
CHANNELS_HELP = "1: grey; 3: red, green and blue."
ROTATIONS_HELP = (
    "To train on, each class is there four times, turned by right angles: as other classes."
)
HELD_OUT_HELP = "Share of the classes of train that are dev or test, where those are not given."


class PrototypesDataConfig(Config):
    """Points around the points that are their classes: made here."""

    kind: Literal["prototypes"] = "prototypes"
    ways: Ways = Field(default=5, description=WAYS_HELP)
    shots: Positive = Field(default=1, description=SHOTS_HELP)
    dim: Positive = Field(default=8, description="Numbers of a point.")
    noise: float = Field(default=0.5, gt=0, description="Of a point around its class.")
    seed: Count = Field(default=0, description="Another seed, other episodes.")
    eval_episodes: Positive = Field(default=2000, description=EVAL_EPISODES_HELP)


class ClassesDataConfig(Config):
    """Your own pictures, a folder for each class."""

    kind: Literal["classes"] = "classes"
    train: str = Field(
        description="A folder or a .zip; each folder in it, at any depth, that has pictures is a "
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


class PublicClassesDataConfig(Config):
    """Public pictures with many classes, fetched when they are first needed."""

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


FewshotDataConfig = Annotated[
    PrototypesDataConfig | ClassesDataConfig | PublicClassesDataConfig, Field(discriminator="kind")
]
FewshotModelConfig = Annotated[SnailConfig | LstmConfig, Field(discriminator="kind")]
DEFAULT_BLOCKS = ("A(64, 32)", "TC(128)", "A(256, 128)", "TC(128)", "A(512, 256)")


def check_image_size(size: tuple[int, int], layers: int) -> None:
    """Each layer halves a picture."""
    if min(size) >> layers == 0:
        raise ValueError(
            f"data.image_size = {list(size)} is too small for embed.layers = {layers}, each of "
            f"which halves it: at least {2**layers} x {2**layers}"
        )
