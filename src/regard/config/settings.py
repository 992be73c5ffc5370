"""All that a run is made from, as one frozen tree; TOML and Python say the same.

Each task has its own tree, with what makes sense for it.
"""

from typing import Any

from pydantic import Field

from regard.config.base import Config, Count
from regard.config.text import TextConfig
from regard.config.train import TrainConfig

TEXT_HELP = "How text becomes ids."
MODEL_HELP = "Which model; `regard list` shows them."
TRAIN_HELP = "How long, how fast, and what is kept."


class Settings(Config):
    """What all runs have; of which kind, each task says for itself."""

    task: Any = Field(description="What the model is to do.")
    seed: Count = Field(default=1, description="Of weights, dropout and the order of the data.")
    data: Any = Field(description="Where the examples come from.")
    text: TextConfig = Field(default=TextConfig(), description=TEXT_HELP)
    model: Any = Field(description=MODEL_HELP)
    train: Any = Field(default=TrainConfig(), description=TRAIN_HELP)
