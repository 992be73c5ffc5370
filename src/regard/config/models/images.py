"""[model] of images: classifiers and captioners."""

from typing import Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, Fraction, Positive, Rate
from regard.config.models.model_fields import (
    ACTIVATION_HELP,
    DIM_HELP,
    DROPOUT_HELP,
    HEADS_HELP,
    HIDDEN_DIM_HELP,
    NORMALIZE_HELP,
    SCORE_HELP,
    ActivationName,
    SampledNormalizerName,
    ScoreName,
)
from regard.errors import InputError


class VitConfig(Config):
    """ViT: a transformer over the patches of an image (Dosovitskiy et al. 2021)."""

    kind: Literal["vit"] = "vit"
    patch_size: Positive = Field(default=16, description="Height and width of a patch, in pixels.")
    dim: Positive = Field(default=768, description="Width of the hidden states.")
    heads: Positive = Field(default=12, description=HEADS_HELP)
    layers: Positive = Field(default=12, description="Number of layers.")
    stem: Literal["patch", "convolution"] = Field(
        default="patch",
        description="Embedding of patches: patch (linear, as published) or convolution (needs fewer"
        " images; patch_size must be 2, 4, 8, …).",
    )
    hidden_dim: Positive | None = Field(
        default=None,
        description="Width inside the feed-forward layers. Default: four times dim.",
    )
    activation: ActivationName = Field(default="gelu", description=ACTIVATION_HELP)
    norm_eps: float = Field(
        default=1e-6, gt=0, description="Epsilon of layer normalization, more than 0."
    )
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
    attention_dropout: Rate | None = Field(
        default=None, description="Dropout of the attention weights, 0 to 1. Default: dropout."
    )

    @model_validator(mode="after")
    def _check_heads_and_patch_size(self) -> "VitConfig":
        if self.dim % self.heads:
            raise InputError(f"dim = {self.dim} cannot be divided among heads = {self.heads}")
        if self.stem == "convolution" and (
            self.patch_size < 2 or self.patch_size & (self.patch_size - 1)
        ):
            raise InputError(
                f"stem = 'convolution' needs patch_size = 2, 4, 8, …, not {self.patch_size}"
            )
        return self


IMAGE_DIM_HELP = "Width of the convolutions and of the feature of each image position."

IMAGE_LAYERS_HELP = "Number of convolutions."

POOLING_LAYERS_HELP = "Number of convolutions that halve the image; more leave fewer positions."


class ShowTellConfig(Config):
    """Show and Tell: the decoder reads the image once, before the first word (Vinyals et al.
    2015).
    """

    kind: Literal["show_tell"] = "show_tell"
    dim: Positive = Field(default=128, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    image_dim: Positive = Field(default=64, description=IMAGE_DIM_HELP)
    image_layers: Positive = Field(default=3, description=IMAGE_LAYERS_HELP)
    pooling_layers: Count = Field(default=2, description=POOLING_LAYERS_HELP)
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)


class ShowAttendConfig(Config):
    """Show, Attend and Tell: each word attends to positions of the image (Xu et al. 2015)."""

    kind: Literal["show_attend"] = "show_attend"
    dim: Positive = Field(default=128, description=DIM_HELP)
    hidden_dim: Positive | None = Field(default=None, description=HIDDEN_DIM_HELP)
    align_dim: Positive | None = Field(
        default=None, description="Width inside the additive score. Default: hidden_dim."
    )
    image_dim: Positive = Field(default=64, description=IMAGE_DIM_HELP)
    image_layers: Positive = Field(default=3, description=IMAGE_LAYERS_HELP)
    pooling_layers: Count = Field(default=2, description=POOLING_LAYERS_HELP)
    score: ScoreName = Field(default="additive", description=SCORE_HELP)
    normalize: SampledNormalizerName = Field(
        default="softmax",
        description=f"{NORMALIZE_HELP} softmax is soft attention, reinforce hard.",
    )
    reward_weight: float = Field(
        default=1.0,
        gt=0,
        description="Weight of the REINFORCE reward, more than 0; hard attention only.",
    )
    entropy_weight: float = Field(
        default=0.01,
        ge=0,
        description="Weight of the entropy of the attention, 0 or more; hard attention only.",
    )
    expectation_rate: Fraction = Field(
        default=0.5,
        description="Probability, 0 to 1, of soft attention in a training step; hard attention "
        "only.",
    )
    dropout: Rate = Field(default=0.0, description=DROPOUT_HELP)
