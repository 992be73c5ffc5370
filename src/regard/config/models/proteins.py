"""TODO regard.config.models.proteins."""

from typing import Literal

from pydantic import Field

from regard.config.base import Config, Count, Positive, Rate


class MsaConfig(Config):
    """Sequences and pairs side by side, with triangles (Jumper et al. 2021: the Evoformer)."""

    kind: Literal["msa"] = "msa"
    dim: Positive = Field(default=64, description="Width of a residue's state.")
    pair_dim: Positive = Field(default=32, description="Width of a pair's state.")
    heads: Positive = Field(default=4, description="Attentions of residues, side by side.")
    pair_heads: Positive = Field(default=4, description="Attentions of pairs, side by side.")
    head_dim: Positive = Field(default=16, description="Width of each of them.")
    layers: Positive = Field(default=4, description="Blocks, one on the other.")
    max_relative_position: Count = Field(
        default=32, description="How far apart places still differ; 0: order is not seen."
    )
    triangles: Literal["both", "product", "attention", "axial", "none"] = Field(
        default="both",
        description="What pairs ask each other by; all but none cost the cube of the length, and "
        "product the least of these.",
    )
    dropout: Rate = Field(default=0.15, description="Of what rows add; one mask for all of them.")
    pair_dropout: Rate = Field(default=0.25, description="Of what triangles add, by rows.")
