"""TODO regard.config.models.images."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, Fraction, Positive, Rate
from regard.config.models.common import (
    ACTIVATION_HELP,
    DIM_HELP,
    DROPOUT_HELP,
    HEADS_HELP,
    HIDDEN_DIM_HELP,
    NORMALIZE_HELP,
    SCORE_HELP,
    ActivationName,
    NormalizerName,
    ScoreName,
)


class VitConfig(Config):
    """A transformer over the patches of an image (Dosovitskiy et al. 2021)."""

    kind: Literal["vit"] = "vit"
    patch_size: Positive = Field(default=16, description="Height and width of a patch, in pixels.")
    dim: Positive = Field(default=768, description="Width of a state.")
    heads: Positive = Field(default=12, description=HEADS_HELP)
    layers: Positive = Field(default=12, description="Layers, one on the other.")
    stem: Literal["patch", "convolution"] = Field(
        default="patch",
        description="A patch by one product, as in the paper, or by small convolutions, which "
        "learn from fewer images (patch_size is then 2, 4, 8, …).",
    )
    hidden_dim: Positive | None = Field(
        default=None,
        description="Width inside the feed-forward layers; four times dim where not set.",
    )
    activation: ActivationName = Field(default="gelu", description=ACTIVATION_HELP)
    norm_eps: float = Field(default=1e-6, gt=0, description="Added to a variance.")
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    attention_dropout: Rate | None = Field(
        default=None, description="The same, of attention weights; as dropout where not set."
    )

    @model_validator(mode="after")
    def _check_heads_and_patch_size(self) -> "VitConfig":
        if self.dim % self.heads:
            raise ValueError(f"dim = {self.dim} cannot be divided among heads = {self.heads}")
        if self.stem == "convolution" and (
            self.patch_size < 2 or self.patch_size & (self.patch_size - 1)
        ):
            raise ValueError(
                f"stem = 'convolution' needs patch_size = 2, 4, 8, …, not {self.patch_size}"
            )
        return self


IMAGE_DIM_HELP = "Width of the convolutions, and of what is known of a place."

IMAGE_LAYERS_HELP = "Convolutions, one on the other."

POOLING_LAYERS_HELP = "How many of them halve the image: more leave fewer places."


class ShowTellConfig(Config):
    """The image is read once, before the first word (Vinyals et al. 2015)."""

    kind: Literal["show_tell"] = "show_tell"
    dim: Positive = Field(default=128, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    image_dim: Positive = Field(default=64, description=IMAGE_DIM_HELP)
    image_layers: Positive = Field(default=3, description=IMAGE_LAYERS_HELP)
    pooling_layers: Count = Field(default=2, description=POOLING_LAYERS_HELP)
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)


class ShowAttendConfig(Config):
    """Each word looks at a place of the image (Xu et al. 2015)."""

    kind: Literal["show_attend"] = "show_attend"
    dim: Positive = Field(default=128, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    align_dim: Positive | None = Field(
        default=None, description="Width inside the score; as hidden_dim where not set."
    )
    image_dim: Positive = Field(default=64, description=IMAGE_DIM_HELP)
    image_layers: Positive = Field(default=3, description=IMAGE_LAYERS_HELP)
    pooling_layers: Count = Field(default=2, description=POOLING_LAYERS_HELP)
    score: ScoreName = Field(default="additive", description=SCORE_HELP)
    normalize: NormalizerName = Field(
        default="softmax",
        description=f"{NORMALIZE_HELP} softmax is soft attention, reinforce hard.",
    )
    reward_weight: float = Field(
        default=1.0, gt=0, description="Weight of what a place was good for (reinforce)."
    )
    entropy_weight: float = Field(
        default=0.01, ge=0, description="Weight of looking around (reinforce)."
    )
    expectation_rate: Fraction = Field(
        default=0.5, description="How often all places are read after all (reinforce)."
    )
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
