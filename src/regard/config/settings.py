"""The base class of the settings of a run; each task has a subclass."""

from typing import Any

from pydantic import Field

from regard.config.base import Config, Count
from regard.config.text import TextConfig
from regard.config.train import TrainConfig

TEXT_HELP = "Tokenizer and vocabulary."
MODEL_HELP = "Model; `regard list` shows the kinds."
TRAIN_HELP = "Training: length, batches, optimizer, checkpoints."


class Settings(Config):
    """The tables that all tasks have; each task decides their types."""

    task: Any = Field(description="Task of the run.")
    seed: Count = Field(
        default=1, description="Random seed of weights, dropout and the order of the data."
    )
    data: Any = Field(description="Data set.")
    text: TextConfig = Field(default=TextConfig(), description=TEXT_HELP)
    model: Any = Field(description=MODEL_HELP)
    train: Any = Field(default=TrainConfig(), description=TRAIN_HELP)
