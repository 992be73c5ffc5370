"""[model] of proteins."""

from typing import Literal

from pydantic import Field

from regard.config.base import Config, Count, Positive, Rate


class MsaConfig(Config):
    """The Evoformer: states of residues and of pairs, with triangle updates (Jumper et al.
    2021).
    """

    kind: Literal["msa"] = "msa"
    dim: Positive = Field(default=64, description="Width of the states of residues.")
    pair_dim: Positive = Field(default=32, description="Width of the states of pairs.")
    heads: Positive = Field(default=4, description="Number of attention heads over residues.")
    pair_heads: Positive = Field(default=4, description="Number of attention heads over pairs.")
    head_dim: Positive = Field(default=16, description="Width of each head.")
    layers: Positive = Field(default=4, description="Number of blocks.")
    max_relative_position: Count = Field(
        default=32,
        description="Maximum relative position, in residues; 0: no positions.",
    )
    triangles: Literal["both", "product", "attention", "axial", "none"] = Field(
        default="both",
        description="Updates of pairs: both, product, attention, axial or none. All but none take "
        "cubic time; product is the fastest of them.",
    )
    dropout: Rate = Field(
        default=0.15,
        description="Dropout of the updates of residues, 0 to 1, with one mask for all rows.",
    )
    pair_dropout: Rate = Field(
        default=0.25, description="Dropout of the updates of pairs, 0 to 1, by rows."
    )
