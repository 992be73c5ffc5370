"""Settings of music."""

from collections.abc import Mapping
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
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.config.validators import STRIDE_HELP, check_windows
from regard.errors import InputError

MusicDataConfig = Annotated[
    RollsDataConfig | AbcDataConfig | PublicMusicDataConfig, Field(discriminator="kind")
]

MusicModelConfig = Annotated[
    RollRnnConfig | RollGptConfig | RnnlmConfig | Gpt2Config | LstmnConfig,
    Field(discriminator="kind"),
]


class MusicTrainConfig(TrainConfig):
    """[train] of music."""

    max_tokens: Positive = Field(
        default=512, description="Longest part of a piano roll, in steps; longer pieces are cut."
    )
    context_length: Positive = Field(default=128, description="Tokens of a window of tunes.")
    carry_state: bool = Field(
        default=False,
        description="Keep the state of the model from one window of tunes to the next (rnnlm).",
    )
    evaluation_stride: Positive | None = Field(default=None, description=STRIDE_HELP)
    metric: Literal["loss"] = Field(
        default="loss", description="Metric on dev that selects the best weights: loss."
    )


class MusicSettings(Settings):
    """Settings of a run that models and composes music."""

    task: Literal["music"] = Field(default="music", description="Task of the run.")
    data: MusicDataConfig = Field(
        default=PublicMusicDataConfig(), description="Data set: rolls, abc or public."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="characters"), description="Tokenizer and vocabulary of tunes."
    )
    model: MusicModelConfig = Field(default=RollRnnConfig(), description=MODEL_HELP)
    train: MusicTrainConfig = Field(default=MusicTrainConfig(), description=TRAIN_HELP)
    decode: SampleConfig = Field(
        default=SampleConfig(max_length=64), description="Sampling of compositions."
    )

    def unused_settings(self) -> Mapping[str, str]:
        if not is_roll_data(self.data):
            windows = "tunes are read in windows of train.context_length tokens"
            return {**super().unused_settings(), "train.max_tokens": windows}
        chords = "piano rolls have chords of notes, not tokens"
        names = ("train.label_smoothing", "train.context_length", "train.carry_state")
        names += ("train.evaluation_stride",)
        names += ("decode.min_length", "decode.no_repeat_ngram")
        names += ("decode.top_k", "decode.top_p", "decode.min_p")
        return {"text": chords, **dict.fromkeys(names, chords)}

    @model_validator(mode="after")
    def _check_settings(self) -> "MusicSettings":
        kind, has_rolls = self.model.kind, is_roll_data(self.data)
        if has_rolls != (kind in ROLL_MODELS):
            suitable_models = ROLL_MODELS if has_rolls else ("rnnlm", "gpt2", "lstmn")
            data_name = "piano rolls" if has_rolls else "tunes in ABC, which are text"
            raise InputError(
                f"model.kind = {kind!r} does not read {data_name}; take "
                f"{' or '.join(suitable_models)}"
            )
        check_windows(self)
        return self
