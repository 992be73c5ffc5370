"""[data], [model] and [train] for bandit: worlds that are found out by acting in them."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, Fraction, NonEmptyTuple, Positive
from regard.config.bits import LstmConfig
from regard.config.train import TrainConfig

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


class BanditTrainConfig(TrainConfig):
    """Training to act (PPO: Schulman et al. 2017)."""

    tokens_per_batch: Positive | None = Field(default=None, description="Not for worlds.")
    examples_per_batch: Positive | None = Field(default=256, description="Worlds of a batch.")
    max_tokens: Positive = Field(default=1, description="Not for worlds: all have one length.")
    rollout_environments: Positive = Field(
        default=1024, description="Worlds that are played in before they are learnt from."
    )
    rollout_epochs: Positive = Field(default=3, description="Times that they are learnt from.")
    discount: Fraction = Field(
        default=1.0, description="Of a reward, for each step that it is off."
    )
    gae_lambda: Fraction = Field(
        default=0.5, description="GAE: 0 trusts the value of the next step, 1 only what was paid."
    )
    clip_ratio: float = Field(
        default=0.2, gt=0, lt=1, description="How far an action's chances move in a round, at most."
    )
    value_weight: float = Field(default=5.0, ge=0, description="Weight of the value's error.")
    entropy_weight: float = Field(
        default=0.02, ge=0, description="Weight of being undecided; it falls to 0 at the end."
    )
    learning_rate: float = Field(default=3e-3, gt=0, description="The highest; but see schedule.")
    exploration_rate: Fraction = Field(
        default=0.25,
        description="Share of worlds in which the first steps, any number, are taken by chance: so "
        "it learns to go on after what others have done.",
    )
    metric: Literal["loss", "return"] = Field(
        default="return",
        description="What is better, on dev: loss (what is missed of what is there) or return.",
    )

    @model_validator(mode="after")
    def _check_batch_size(self) -> "BanditTrainConfig":
        if self.tokens_per_batch is not None:
            raise ValueError("tokens_per_batch is not for worlds: give examples_per_batch")
        return self
