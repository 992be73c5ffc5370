"""TODO regard.config.encoder_head."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, Positive, Rate


class HeadConfig(Config):
    """What stands between the encoder and the classes."""

    pooling: Literal["first", "last", "mean", "max", "attention"] | None = Field(
        default=None, description="One vector of all states; the encoder's own where not set."
    )
    hidden_dim: Positive | None = Field(
        default=None, description="Width of a layer before the classes; none where not set."
    )
    dropout: Rate = Field(default=0.1, description="Share of values set to zero in training.")


class StartConfig(Config):
    """What to begin with, other than chance."""

    run: str | None = Field(
        default=None,
        description="The folder of a run (pretrain, classify or imported) whose encoder and "
        "vocabulary are taken over; [model] and [text] are then as there.",
    )
    freeze: bool = Field(default=False, description="The encoder stays as it is.")
    lora_rank: Count = Field(
        default=0, description="Rank of LoRA in the encoder, which else stays as it is; 0: none."
    )
    layer_decay: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Learning rate of each layer of a transformer, as a share of the layer above.",
    )

    @model_validator(mode="after")
    def _check_start(self) -> "StartConfig":
        if self.freeze and self.lora_rank:
            raise ValueError(
                "freeze and lora_rank are both set: with LoRA the encoder rests anyway"
            )
        return self
