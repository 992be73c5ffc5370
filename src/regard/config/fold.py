"""[data], [model], [head] and [train] for proteins: states of residues, distances of pairs."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, Fraction, Positive, Rate
from regard.config.data import HELD_OUT_HELP, PUBLIC_NAME_HELP, FilePaths
from regard.config.encoder import BertConfig, BiRnnConfig

VISIBLE_FRACTION_HELP = "Share of the distances that are shown; the others are to be told."


class ProteinsDataConfig(Config):
    """Your own proteins, with a state for each residue."""

    kind: Literal["proteins"] = "proteins"
    train: FilePaths = Field(
        description="FASTA-like text (>name, residues, states), CSV or TSV with a header, or JSON "
        "lines; .gz is unpacked."
    )
    dev: FilePaths | None = Field(
        default=None, description="The same, for validation while training."
    )
    test: FilePaths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["fasta", "csv", "tsv", "jsonl"] | None = Field(
        default=None, description="fasta, csv, tsv or jsonl; not set, the names of the files tell."
    )
    fields: dict[str, str] = Field(
        default={"sequence": "sequence", "states": "states"},
        description="What our fields are called in JSON lines, or in the header of a CSV or TSV.",
    )
    held_out: Fraction = Field(default=0.1, description=HELD_OUT_HELP)


class PublicProteinsDataConfig(Config):
    """Public proteins with their secondary structure, fetched when they are first needed."""

    kind: Literal["public"] = "public"
    name: Literal["cb513", "uci_structure"] = Field(default="cb513", description=PUBLIC_NAME_HELP)
    states: Literal[3, 8] = Field(
        default=3, description="3 (helix, strand, coil) or 8, those of DSSP (cb513)."
    )

    @model_validator(mode="after")
    def _check_states(self) -> "PublicProteinsDataConfig":
        if self.name == "uci_structure" and self.states != 3:
            raise ValueError(f"states = {self.states}: uci_structure has 3 of them")
        return self


class PointsDataConfig(Config):
    """Points in space, by some of their distances: made here."""

    kind: Literal["points"] = "points"
    size: Positive = Field(default=20_000, description="Sets of points to train on.")
    seed: Count = Field(default=0, description="Another seed, other points.")
    held_out: Positive = Field(default=500, description="Sets in dev, and in the test.")
    shape: Literal["cloud", "chain"] = Field(
        default="cloud", description="Drawn from a cube (cloud), or one after another (chain)."
    )
    min_points: Positive = Field(default=12, description="Points of a set, at least.")
    max_points: Positive = Field(default=12, description="Points of a set, at most.")
    visible_fraction: Rate = Field(default=0.35, description=VISIBLE_FRACTION_HELP)


class DistancesDataConfig(Config):
    """Your own points or distances."""

    kind: Literal["distances"] = "distances"
    train: FilePaths = Field(
        description='JSON lines: {"points": [[x, y, z], …]} or {"distances": [[0, 3.8, null], …]}, '
        'and "sequence", if there is one; .gz is unpacked.'
    )
    dev: FilePaths | None = Field(
        default=None, description="The same, for validation while training."
    )
    test: FilePaths | None = Field(default=None, description="The same, for `regard score`.")
    visible_fraction: Rate = Field(default=0.35, description=VISIBLE_FRACTION_HELP)
    held_out: Fraction = Field(default=0.1, description=HELD_OUT_HELP)


FoldDataConfig = Annotated[
    ProteinsDataConfig | PublicProteinsDataConfig | PointsDataConfig | DistancesDataConfig,
    Field(discriminator="kind"),
]


def is_distance_data(data: Config) -> bool:
    """Whether distances of pairs are told, and not states of residues."""
    return isinstance(data, PointsDataConfig | DistancesDataConfig)


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


FoldModelConfig = Annotated[MsaConfig | BiRnnConfig | BertConfig, Field(discriminator="kind")]
