"""TODO regard.config.data.environments."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from regard.config.base import Count, DataConfig, Positive

SEED_HELP = "Another seed, other worlds."

HELD_OUT_HELP = "Worlds in dev, and in the test."


class BanditDataConfig(DataConfig):
    """Arms that pay 1 or nothing, each with a probability of its own: made here."""

    corpus_class: ClassVar = "regard.data.synthetic.environments:Bandits"
    kind: Literal["bandit"] = "bandit"
    arms: Annotated[int, Field(ge=2)] = Field(default=5, description="Arms to choose from.")
    steps: Positive = Field(default=10, description="Pulls of an episode.")
    seed: Count = Field(default=0, description=SEED_HELP)
    held_out: Positive = Field(default=10_000, description=HELD_OUT_HELP)


class MdpDataConfig(DataConfig):
    """Random Markov decision processes (Duan et al. 2016): made here."""

    corpus_class: ClassVar = "regard.data.synthetic.environments:Mdps"
    kind: Literal["mdp"] = "mdp"
    states: Annotated[int, Field(ge=2)] = Field(default=10, description="States of a world.")
    actions: Annotated[int, Field(ge=2)] = Field(default=5, description="Actions in each.")
    horizon: Positive = Field(default=10, description="Steps of an episode.")
    episodes: Positive = Field(default=10, description="Episodes in one world.")
    seed: Count = Field(default=0, description=SEED_HELP)
    held_out: Positive = Field(default=1000, description=HELD_OUT_HELP)
