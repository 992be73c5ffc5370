"""Settings of conversation."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive, Rate
from regard.config.data.dialogues import DialoguesDataConfig, PublicDialoguesDataConfig
from regard.config.decode import DecodeConfig, SampleConfig
from regard.config.models.language_models import Gpt2Config, LanguageModelConfig
from regard.config.settings import MODEL_HELP, TEXT_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig
from regard.errors import InputError

ChatDataConfig = Annotated[
    DialoguesDataConfig | PublicDialoguesDataConfig, Field(discriminator="kind")
]


class ChatTrainConfig(TrainConfig):
    """Training of a chat model."""

    max_tokens: Positive = Field(
        default=256,
        description="Maximum length of a row in tokens; a longer dialogue has several rows.",
    )
    replies_only: bool = Field(
        default=False,
        description="Whether only what the model writes counts in the loss, not the user's turns.",
    )
    reverse_turns: bool = Field(
        default=False,
        description="Whether turns are read in reverse, to use the run as rerank.backward_run.",
    )
    metric: Literal["loss", "bleu", "joint_goal", "entity_match"] = Field(
        default="loss",
        description="Metric on dev that selects the best weights: loss, bleu, joint_goal or "
        "entity_match.",
    )


class RerankConfig(Config):
    """Choice among several replies by maximum mutual information (Li et al. 2016)."""

    backward_run: str | None = Field(
        default=None,
        description="Folder of a run trained with train.reverse_turns; default: no reranking.",
    )
    candidates: Positive = Field(default=8, description="Number of replies to choose from.")
    backward_weight: Rate = Field(
        default=0.5,
        description="Weight w of log p(history | reply); log p(reply | history) has 1 - w.",
    )


class ChatSettings(Settings):
    """Settings of a run that holds conversations, about a database if the data has one."""

    task: Literal["chat"] = Field(default="chat", description="Task of the run.")
    data: ChatDataConfig = Field(
        default=PublicDialoguesDataConfig(), description="Data set: dialogues or public."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="byte_bpe", size=2000, lower=True), description=TEXT_HELP
    )
    model: LanguageModelConfig = Field(
        default=Gpt2Config(dim=128, heads=4, layers=4, max_positions=512), description=MODEL_HELP
    )
    train: ChatTrainConfig = Field(default=ChatTrainConfig(), description=TRAIN_HELP)
    decode: DecodeConfig = Field(
        default=SampleConfig(max_length=60), description="Search: greedy, beam or sample."
    )
    rerank: RerankConfig = Field(
        default=RerankConfig(), description="Choice among several replies."
    )

    def unused_settings(self) -> Mapping[str, str]:
        unused = dict(super().unused_settings())
        if self.rerank.backward_run is None:
            reason = "replies are reranked only with rerank.backward_run"
            unused |= {"rerank.candidates": reason, "rerank.backward_weight": reason}
        return unused

    @model_validator(mode="after")
    def _check_settings(self) -> "ChatSettings":
        if self.model.kind == "gpt2" and self.train.max_tokens > self.model.max_positions:
            limit = f"train.max_tokens = {self.train.max_tokens} is more than model.max_positions"
            raise InputError(f"{limit} = {self.model.max_positions}: make one of them fit")
        return self
