"""Settings of music."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Positive
from regard.config.data.notes import (
    AbcDataConfig,
    PublicMusicDataConfig,
    RollsDataConfig,
    is_roll_data,
)
from regard.config.decode import SampleConfig
from regard.config.models.language_models import Gpt2Config, LstmnConfig, RnnlmConfig
from regard.config.models.piano_rolls import ROLL_MODELS, RollGptConfig, RollRnnConfig
from regard.config.settings import MODEL_HELP, TRAIN_HELP, Settings
from regard.config.train import TrainConfig
from regard.config.validators import check_windows

MusicDataConfig = Annotated[
    RollsDataConfig | AbcDataConfig | PublicMusicDataConfig, Field(discriminator="kind")
]

MusicModelConfig = Annotated[
    RollRnnConfig | RollGptConfig | RnnlmConfig | Gpt2Config | LstmnConfig,
    Field(discriminator="kind"),
]


class MusicTrainConfig(TrainConfig):
    """Training to make music."""

    max_tokens: Positive = Field(
        default=512, description="Longer pieces (piano rolls, in steps) are trained on in parts."
    )
    context_length: Positive = Field(
        default=128, description="Tokens of tunes that are read at a time."
    )
    carry_state: bool = Field(
        default=False,
        description="Of tunes: go on with what was read before, window after window (rnnlm).",
    )
    metric: Literal["loss"] = Field(default="loss", description="What is better, on dev: loss.")


class MusicSettings(Settings):
    """How likely a piece of music is, and how it goes on."""

    task: Literal["music"] = Field(default="music", description="What the model is to do.")
    data: MusicDataConfig = Field(
        default=PublicMusicDataConfig(), description="rolls, abc or public."
    )
    model: MusicModelConfig = Field(default=RollRnnConfig(), description=MODEL_HELP)
    train: MusicTrainConfig = Field(default=MusicTrainConfig(), description=TRAIN_HELP)
    decode: SampleConfig = Field(
        default=SampleConfig(max_length=64), description="How music is drawn."
    )

    @model_validator(mode="after")
    def _check_settings(self) -> "MusicSettings":
        kind, has_rolls = self.model.kind, is_roll_data(self.data)
        if has_rolls != (kind in ROLL_MODELS):
            suitable_models = ROLL_MODELS if has_rolls else ("rnnlm", "gpt2", "lstmn")
            data_name = "piano rolls" if has_rolls else "tunes in ABC, which are text"
            raise ValueError(
                f"model.kind = {kind!r} does not read {data_name}: take "
                f"{' or '.join(suitable_models)}"
            )
        if has_rolls:
            for name in ("top_k", "top_p", "min_p"):
                if getattr(self.decode, name) is not None:
                    raise ValueError(f"decode.{name} is for tunes: each key is drawn by itself")
        check_windows(self)
        return self
