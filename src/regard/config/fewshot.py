"""[data], [embed], [model] and [train] for fewshot: classes from a few examples."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.bits import Lstm
from regard.config.data import WHICH
from regard.config.table import Count, Positive, Share, Table
from regard.config.train import Train
from regard.config.worlds import Snail

Ways = Annotated[int, Field(ge=2)]
Size = Annotated[tuple[Positive, Positive], Field(strict=False)]
WAYS, SHOTS = "Classes of an episode.", "Examples of each of them."
SEED = "Another seed, other episodes, and other classes held out."
EPISODES = "Episodes in dev, and in the test."
SIZE = "Height and width that pictures are brought to, in pixels."
CHANNELS = "1: grey; 3: red, green and blue."
TURNED = "To train on, each class is there four times, turned by right angles: as other classes."
HELD_OUT = "Share of the classes of train that are dev or test, where those are not given."


class PrototypesData(Table):
    """Points around the points that are their classes: made here."""

    kind: Literal["prototypes"] = "prototypes"
    ways: Ways = Field(default=5, description=WAYS)
    shots: Positive = Field(default=1, description=SHOTS)
    dim: Positive = Field(default=8, description="Numbers of a point.")
    noise: float = Field(default=0.5, gt=0, description="Of a point around its class.")
    seed: Count = Field(default=0, description="Another seed, other episodes.")
    episodes: Positive = Field(default=2000, description=EPISODES)


class ClassesData(Table):
    """Your own pictures, a folder for each class."""

    kind: Literal["classes"] = "classes"
    train: str = Field(
        description="A folder or a .zip; each folder in it, at any depth, that has pictures is a "
        "class."
    )
    dev: str | None = Field(default=None, description="The same, with other classes.")
    test: str | None = Field(default=None, description="The same, with other classes.")
    ways: Ways = Field(default=5, description=WAYS)
    shots: Positive = Field(default=1, description=SHOTS)
    size: Size = Field(default=(28, 28), description=SIZE)
    channels: Literal[1, 3] = Field(default=1, description=CHANNELS)
    turned: bool = Field(default=False, description=TURNED)
    held_out: Share = Field(default=0.1, description=HELD_OUT)
    seed: Count = Field(default=0, description=SEED)
    episodes: Positive = Field(default=2000, description=EPISODES)


class NamedClasses(Table):
    """Public pictures with many classes, fetched when they are first needed."""

    kind: Literal["named"] = "named"
    name: Literal["omniglot"] = Field(default="omniglot", description=WHICH)
    ways: Ways = Field(default=5, description=WAYS)
    shots: Positive = Field(default=1, description=SHOTS)
    size: Size = Field(default=(28, 28), description=SIZE)
    channels: Literal[1, 3] = Field(default=1, description=CHANNELS)
    turned: bool = Field(default=True, description=TURNED)
    held_out: Share = Field(default=0.1, description="Share of the classes of train that are dev.")
    seed: Count = Field(default=0, description=SEED)
    episodes: Positive = Field(default=2000, description=EPISODES)


Shown = Annotated[PrototypesData | ClassesData | NamedClasses, Field(discriminator="kind")]
Recogniser = Annotated[Snail | Lstm, Field(discriminator="kind")]
BLOCKS = ("A(64, 32)", "TC(128)", "A(256, 128)", "TC(128)", "A(512, 256)")


class Embed(Table):
    """From a picture to a vector: convolutions that each halve it (Vinyals et al. 2016)."""

    dim: Positive = Field(default=64, description="Width of the vector.")
    hidden_dim: Positive = Field(default=64, description="Filters of each convolution.")
    layers: Positive = Field(default=4, description="Convolutions, one on the other.")


class FewshotTrain(Train):
    """Training to learn from a few examples."""

    tokens_per_batch: Positive | None = Field(default=None, description="Not for episodes.")
    sentences_per_batch: Positive | None = Field(default=32, description="Episodes of a batch.")
    longest: Positive = Field(default=1, description="Not for episodes: all have one length.")
    queries: Positive = Field(
        default=5, description="Pictures of an episode that are asked for, one after another."
    )
    varied: bool = Field(
        default=False, description="Batches have 1 to data.shots shots, as in the paper."
    )
    metric: Literal["loss", "accuracy"] = Field(
        default="accuracy", description="What is better, on dev: loss or accuracy."
    )

    @model_validator(mode="after")
    def _has_no_tokens(self) -> "FewshotTrain":
        if self.tokens_per_batch is not None:
            raise ValueError("tokens_per_batch is not for episodes: give sentences_per_batch")
        if self.epochs is not None:
            raise ValueError("epochs are not for episodes, which have no end: give steps")
        return self


def check_size(size: tuple[int, int], layers: int) -> None:
    """Each layer halves a picture."""
    if min(size) >> layers == 0:
        raise ValueError(
            f"data.size = {list(size)} is too small for embed.layers = {layers}, each of which "
            f"halves it: at least {2**layers} x {2**layers}"
        )
