"""The base class of the settings of a run; each task has a subclass."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from regard.config.base import Config, Count
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.errors import InputError

TEXT_HELP = "Tokenizer and vocabulary."
MODEL_HELP = "Model; `regard list` shows the kinds."
TRAIN_HELP = "Training: length, batches, optimizer, checkpoints."

NO_SINGLETONS = {"text.unknown_singletons": "only encoders of words hide words seen once"}


class Settings(Config):
    """The tables that all tasks have; each task decides their types."""

    task: Any = Field(description="Task of the run.")
    seed: Count = Field(
        default=1, description="Random seed of weights, dropout and the order of the data."
    )
    data: Any = Field(description="Data set.")
    text: TextConfig = Field(default=TextConfig(kind="characters"), description=TEXT_HELP)
    model: Any = Field(description=MODEL_HELP)
    train: Any = Field(default=TrainConfig(), description=TRAIN_HELP)

    def unused_settings(self) -> Mapping[str, str]:
        """Return the keys that have no effect in this run, each with the reason.

        A key names a table or a setting of it. Validation refuses other values than the defaults.
        """
        return {"text.joint": "the task has one vocabulary", **NO_SINGLETONS}

    @model_validator(mode="after")
    def _refuse_unused_settings(self) -> "Settings":
        for key, reason in self.unused_settings().items():
            table_name, _, name = key.partition(".")
            table, default = getattr(self, table_name), type(self).model_fields[table_name].default
            if type(default) is not type(table):
                default = type(table)()
            value, unchanged = (getattr(t, name) if name else t for t in (table, default))
            if value != unchanged:
                raise InputError(f"{key} has no effect: {reason}; remove it")
        return self
