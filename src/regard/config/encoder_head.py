"""[head], [start] and [vectors] of tasks with an encoder."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, Positive, Rate
from regard.errors import InputError


class HeadConfig(Config):
    """The layers between the encoder and the classes."""

    pooling: Literal["first", "last", "mean", "max", "attention"] | None = Field(
        default=None,
        description="Pooling of the states into one vector. Default: that of the encoder.",
    )
    hidden_dim: Positive | None = Field(
        default=None,
        description="Width of a hidden layer before the classes. Default: no such layer.",
    )
    dropout: Rate = Field(
        default=0.1, description="Probability, 0 to 1, of setting a value to zero in training."
    )


class TextVectorsConfig(Config):
    """Vectors of texts, as `regard embed` prints them."""

    pooling: Literal["mean", "first", "max"] = Field(
        default="mean", description="Pooling of the states of all positions into one vector."
    )
    normalize: bool = Field(default=True, description="Whether vectors have length 1.")
    max_tokens: Positive | None = Field(
        default=None,
        description="Maximum length of a text in tokens; the rest is cut off. Default: all "
        "positions of the model, or train.max_tokens.",
    )


VECTORS_HELP = "Vectors of texts (regard embed)."


class StartConfig(Config):
    """Pretrained weights to start from."""

    run: str | None = Field(
        default=None,
        description="Folder of a run whose encoder and vocabulary to start from; it also decides "
        "[model] and [text].",
    )
    freeze: bool = Field(default=False, description="Keep the weights of the encoder fixed.")
    lora_rank: Count = Field(
        default=0,
        description="Rank of the LoRA weights in an encoder that is otherwise fixed; 0: no LoRA.",
    )
    layer_decay: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Learning rate of each transformer layer as a share of that of the layer above,"
        " 0 to 1.",
    )

    @model_validator(mode="after")
    def _check_start(self) -> "StartConfig":
        if self.freeze and self.lora_rank:
            raise InputError(
                "freeze and lora_rank are both set: with LoRA the encoder rests anyway"
            )
        return self
