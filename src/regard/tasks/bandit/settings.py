"""Settings of bandits and MDPs."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Fraction, Positive
from regard.config.data.environments import BanditDataConfig, MdpDataConfig
from regard.config.models.memories import LstmConfig, SnailConfig
from regard.config.settings import MODEL_HELP, TRAIN_HELP, Settings
from regard.config.train import TrainConfig

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


class BanditSettings(Settings):
    """Acting in worlds that are found out on the way."""

    task: Literal["bandit"] = Field(default="bandit", description="What the model is to do.")
    data: EnvironmentDataConfig = Field(
        default=BanditDataConfig(), description="bandit or mdp, made here."
    )
    model: BanditModelConfig = Field(default=SnailConfig(dim=32), description=MODEL_HELP)
    train: BanditTrainConfig = Field(default=BanditTrainConfig(), description=TRAIN_HELP)
