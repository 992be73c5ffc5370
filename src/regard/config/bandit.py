"""[data], [model] and [train] for bandit: worlds that are found out by acting in them."""

from typing import Annotated, Literal

from pydantic import Field

from regard.config.base import Config, Count, NonEmptyTuple, Positive
from regard.config.bits import LstmConfig

SEED_HELP = "Another seed, other worlds."
HELD_OUT_HELP = "Worlds in dev, and in the test."


class BanditDataConfig(Config):
    """Arms that pay 1 or nothing, each with a probability of its own: made here."""

    kind: Literal["bandit"] = "bandit"
    arms: Annotated[int, Field(ge=2)] = Field(default=5, description="Arms to choose from.")
    steps: Positive = Field(default=10, description="Pulls of an episode.")
    seed: Count = Field(default=0, description=SEED_HELP)
    held_out: Positive = Field(default=10_000, description=HELD_OUT_HELP)


class MdpDataConfig(Config):
    """Random Markov decision processes (Duan et al. 2016): made here."""

    kind: Literal["mdp"] = "mdp"
    states: Annotated[int, Field(ge=2)] = Field(default=10, description="States of a world.")
    actions: Annotated[int, Field(ge=2)] = Field(default=5, description="Actions in each.")
    horizon: Positive = Field(default=10, description="Steps of an episode.")
    episodes: Positive = Field(default=10, description="Episodes in one world.")
    seed: Count = Field(default=0, description=SEED_HELP)
    held_out: Positive = Field(default=1000, description=HELD_OUT_HELP)


class SnailConfig(Config):
    """Dilated convolutions and causal attention in turns (Mishra et al. 2018)."""

    kind: Literal["snail"] = "snail"
    dim: Positive | None = Field(
        default=None, description="Width of a layer below the blocks; none where not set."
    )
    blocks: NonEmptyTuple[str] = Field(
        default=("TC(32)", "TC(32)", "A(32, 32)"),
        description='In their order: "TC(filters)" convolves, "A(keys, values)" looks back.',
    )
    dilation: Literal[1, 2] = Field(
        default=1,
        description="Of the first convolution: 1, 2, 4, …; or 2, 4, 8, … as in the paper.",
    )
    tie_query_key_init: bool = Field(
        default=False,
        description="Keys begin as queries do: at first a step looks at those that are like it.",
    )


EnvironmentDataConfig = Annotated[BanditDataConfig | MdpDataConfig, Field(discriminator="kind")]
BanditModelConfig = Annotated[SnailConfig | LstmConfig, Field(discriminator="kind")]
