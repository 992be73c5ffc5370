"""Settings of conversation."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Positive, Rate
from regard.config.data import (
    ChatDataConfig,
    PublicDialoguesDataConfig,
)
from regard.config.decode import DecodeConfig, SampleConfig
from regard.config.language import Gpt2Config, LanguageModelConfig
from regard.config.settings import MODEL_HELP, TEXT_HELP, TRAIN_HELP, Settings
from regard.config.text import TextConfig
from regard.config.train import TrainConfig


class ChatTrainConfig(TrainConfig):
    """Training to converse."""

    max_tokens: Positive = Field(
        default=256, description="Tokens of a row; longer conversations go on in a further row."
    )
    replies_only: bool = Field(
        default=False, description="Only replies count in the loss, and not what people say."
    )
    reverse_turns: bool = Field(
        default=False,
        description="Read turns in reverse, for a run that reranks replies (rerank.backward_run).",
    )
    metric: Literal["loss", "bleu", "wishes", "entity_match"] = Field(
        default="loss", description="What is better, on dev: loss, bleu, wishes or entity_match."
    )


class RerankConfig(Config):
    """Of several replies, the one that fits best (Li et al. 2016: MMI)."""

    backward_run: str | None = Field(
        default=None, description="The folder of a run that was trained with train.reverse_turns."
    )
    candidates: Positive = Field(default=8, description="Replies to choose from.")
    backward_weight: Rate = Field(
        default=0.5, description="Of log p(history | reply); the rest is that of log p(reply)."
    )


class ChatSettings(Settings):
    """A conversation, turn by turn; about a database, if the data have one."""

    task: Literal["chat"] = Field(default="chat", description="What the model is to do.")
    data: ChatDataConfig = Field(
        default=PublicDialoguesDataConfig(), description="dialogues or public."
    )
    text: TextConfig = Field(
        default=TextConfig(kind="byte_bpe", size=2000, lower=True), description=TEXT_HELP
    )
    model: LanguageModelConfig = Field(
        default=Gpt2Config(dim=128, heads=4, layers=4, max_positions=512), description=MODEL_HELP
    )
    train: ChatTrainConfig = Field(default=ChatTrainConfig(), description=TRAIN_HELP)
    decode: DecodeConfig = Field(
        default=SampleConfig(max_length=60), description="greedy, beam or sample."
    )
    rerank: RerankConfig = Field(
        default=RerankConfig(), description="Which of several replies is given."
    )

    @model_validator(mode="after")
    def _check_settings(self) -> "ChatSettings":
        if self.model.kind == "gpt2" and self.train.max_tokens > self.model.max_positions:
            limit = f"train.max_tokens = {self.train.max_tokens} is more than model.max_positions"
            raise ValueError(f"{limit} = {self.model.max_positions}: make one of them fit")
        return self
