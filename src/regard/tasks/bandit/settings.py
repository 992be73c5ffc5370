"""Settings of bandits and MDPs."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Fraction, Positive
from regard.config.data.environments import BanditDataConfig, MdpDataConfig
from regard.config.models.memories import LstmConfig, SnailConfig
from regard.config.settings import MODEL_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.errors import InputError

EnvironmentDataConfig = Annotated[BanditDataConfig | MdpDataConfig, Field(discriminator="kind")]

BanditModelConfig = Annotated[SnailConfig | LstmConfig, Field(discriminator="kind")]


class BanditTrainConfig(TrainConfig):
    """[train] of a policy (PPO: Schulman et al. 2017)."""

    tokens_per_batch: Positive | None = Field(
        default=None, description="Unused: set examples_per_batch."
    )
    examples_per_batch: Positive | None = Field(default=256, description="Environments per batch.")
    steps: Positive | None = Field(default=10_000, description="Number of optimizer steps.")
    max_tokens: Positive = Field(default=1, description="Unused: all episodes have one length.")
    rollout_environments: Positive = Field(
        default=1024, description="Environments of a rollout; the policy plays one episode in each."
    )
    rollout_epochs: Positive = Field(
        default=3, description="Passes over a rollout before the next one is played."
    )
    discount: Fraction = Field(
        default=1.0, description="Discount of rewards per step, from 0 to 1."
    )
    gae_lambda: Fraction = Field(
        default=0.5,
        description="Lambda of generalized advantage estimation, from 0 (one step, then the "
        "value) to 1 (rewards only).",
    )
    clip_ratio: float = Field(
        default=0.2,
        gt=0,
        lt=1,
        description="Largest relative change of the probability of an action (PPO).",
    )
    value_weight: float = Field(
        default=5.0, ge=0, description="Weight of the squared error of the value."
    )
    entropy_weight: float = Field(
        default=0.02,
        ge=0,
        description="Weight of the entropy of the policy at the first step; falls to 0.",
    )
    learning_rate: float = Field(
        default=3e-3, gt=0, description="Highest learning rate; see schedule."
    )
    exploration_rate: Fraction = Field(
        default=0.25,
        description="Share of episodes whose first actions are random: the policy learns to "
        "continue after actions that it would not take.",
    )
    metric: Literal["loss", "return"] = Field(
        default="return",
        description="Metric on dev that selects the best weights: loss (the regret) or return.",
    )

    @model_validator(mode="after")
    def _check_batch_size(self) -> "BanditTrainConfig":
        if self.tokens_per_batch is not None:
            raise InputError("tokens_per_batch is not for environments; set examples_per_batch")
        return self


class BanditSettings(Settings):
    """Settings of a run that acts in unknown environments."""

    task: Literal["bandit"] = Field(default="bandit", description="Task of the run.")
    data: EnvironmentDataConfig = Field(
        default=BanditDataConfig(), description="Environments: bandit or mdp, both synthetic."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="characters"), description="Unused: there is no text."
    )
    model: BanditModelConfig = Field(default=SnailConfig(dim=32), description=MODEL_HELP)
    train: BanditTrainConfig = Field(default=BanditTrainConfig(), description=TRAIN_HELP)

    def unused_settings(self) -> Mapping[str, str]:
        return {
            "text": "environments have no text",
            "train.max_tokens": "all episodes have one length",
            "train.label_smoothing": "a policy has no labels",
        }
