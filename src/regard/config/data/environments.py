"""[data] of environments for reinforcement learning."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from regard.config.base import MAX_NUMBER, Count, DataConfig, Positive

SeveralChoices = Annotated[int, Field(ge=2, le=MAX_NUMBER)]

SEED_HELP = "Random seed of the environments."

HELD_OUT_HELP = "Number of environments in dev, and in test."


class BanditDataConfig(DataConfig):
    """Synthetic multi-armed bandits; each arm pays 1 with its own probability."""

    corpus_class: ClassVar = "regard.data.synthetic.environments:Bandits"
    kind: Literal["bandit"] = "bandit"
    arms: SeveralChoices = Field(default=5, description="Number of arms.")
    steps: Positive = Field(default=10, description="Number of pulls in an episode.")
    seed: Count = Field(default=0, description=SEED_HELP)
    held_out: Positive = Field(default=10_000, description=HELD_OUT_HELP)


class MdpDataConfig(DataConfig):
    """Synthetic random Markov decision processes (Duan et al. 2016)."""

    corpus_class: ClassVar = "regard.data.synthetic.environments:Mdps"
    kind: Literal["mdp"] = "mdp"
    states: SeveralChoices = Field(default=10, description="Number of states.")
    actions: SeveralChoices = Field(default=5, description="Number of actions in each state.")
    horizon: Positive = Field(default=10, description="Number of steps in an episode.")
    episodes: Positive = Field(default=10, description="Number of episodes in one environment.")
    seed: Count = Field(default=0, description=SEED_HELP)
    held_out: Positive = Field(default=1000, description=HELD_OUT_HELP)
