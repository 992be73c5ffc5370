"""[data], [model], [head] and [train] for proteins: states of residues, distances of pairs."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.data import HELD_OUT, WHICH, Paths
from regard.config.encoder import Bert, BiRnn
from regard.config.table import Count, Part, Positive, Share, Table
from regard.config.train import Train

SHOWN = "Share of the distances that are shown; the others are to be told."


class ProteinsData(Table):
    """Your own proteins, with a state for each residue."""

    kind: Literal["proteins"] = "proteins"
    train: Paths = Field(
        description="FASTA-like text (>name, residues, states), CSV or TSV with a header, or JSON "
        "lines; .gz is unpacked."
    )
    dev: Paths | None = Field(default=None, description="The same, for validation while training.")
    test: Paths | None = Field(default=None, description="The same, for `regard score`.")
    format: Literal["fasta", "csv", "tsv", "jsonl"] | None = Field(
        default=None, description="fasta, csv, tsv or jsonl; not set, the names of the files tell."
    )
    fields: dict[str, str] = Field(
        default={"sequence": "sequence", "states": "states"},
        description="What our fields are called in JSON lines, or in the header of a CSV or TSV.",
    )
    held_out: Share = Field(default=0.1, description=HELD_OUT)


class NamedProteins(Table):
    """Public proteins with their secondary structure, fetched when they are first needed."""

    kind: Literal["named"] = "named"
    name: Literal["cb513", "uci_structure"] = Field(default="cb513", description=WHICH)
    states: Literal[3, 8] = Field(
        default=3, description="3 (helix, strand, coil) or 8, those of DSSP (cb513)."
    )

    @model_validator(mode="after")
    def _has_them(self) -> "NamedProteins":
        if self.name == "uci_structure" and self.states != 3:
            raise ValueError(f"states = {self.states}: uci_structure has 3 of them")
        return self


class PointsData(Table):
    """Points in space, by some of their distances: made here."""

    kind: Literal["points"] = "points"
    size: Positive = Field(default=20_000, description="Sets of points to train on.")
    seed: Count = Field(default=0, description="Another seed, other points.")
    held_out: Positive = Field(default=500, description="Sets in dev, and in the test.")
    shape: Literal["cloud", "chain"] = Field(
        default="cloud", description="Drawn from a cube (cloud), or one after another (chain)."
    )
    shortest: Positive = Field(default=12, description="Points of a set, at least.")
    longest: Positive = Field(default=12, description="Points of a set, at most.")
    shown: Part = Field(default=0.35, description=SHOWN)


class DistancesData(Table):
    """Your own points or distances."""

    kind: Literal["distances"] = "distances"
    train: Paths = Field(
        description='JSON lines: {"points": [[x, y, z], …]} or {"distances": [[0, 3.8, null], …]}, '
        'and "sequence", if there is one; .gz is unpacked.'
    )
    dev: Paths | None = Field(default=None, description="The same, for validation while training.")
    test: Paths | None = Field(default=None, description="The same, for `regard score`.")
    shown: Part = Field(default=0.35, description=SHOWN)
    held_out: Share = Field(default=0.1, description=HELD_OUT)


FoldData = Annotated[
    ProteinsData | NamedProteins | PointsData | DistancesData, Field(discriminator="kind")
]


def is_distance(data: Table) -> bool:
    """Whether distances of pairs are told, and not states of residues."""
    return isinstance(data, PointsData | DistancesData)


class Msa(Table):
    """Sequences and pairs side by side, with triangles (Jumper et al. 2021: the Evoformer)."""

    kind: Literal["msa"] = "msa"
    dim: Positive = Field(default=64, description="Width of a residue's state.")
    pair_dim: Positive = Field(default=32, description="Width of a pair's state.")
    heads: Positive = Field(default=4, description="Attentions of residues, side by side.")
    pair_heads: Positive = Field(default=4, description="Attentions of pairs, side by side.")
    head_dim: Positive = Field(default=16, description="Width of each of them.")
    layers: Positive = Field(default=4, description="Blocks, one on the other.")
    relative: Count = Field(
        default=32, description="How far apart places still differ; 0: order is not seen."
    )
    triangles: Literal["both", "product", "attention", "axial", "none"] = Field(
        default="both",
        description="What pairs ask each other by; all but none cost the cube of the length, and "
        "product the least of these.",
    )
    dropout: Part = Field(default=0.15, description="Of what rows add; one mask for all of them.")
    pair_dropout: Part = Field(default=0.25, description="Of what triangles add, by rows.")


Folder = Annotated[Msa | BiRnn | Bert, Field(discriminator="kind")]


class FoldHead(Table):
    """From states to states of residues, or from pairs to distances."""

    hidden_dim: Positive | None = Field(
        default=None, description="Width of a layer before the classes; none where not set."
    )
    dropout: Part = Field(default=0.1, description="Share of values set to zero in training.")
    bins: Positive = Field(default=64, description="Of distances: classes that they fall into,")
    nearest: float = Field(default=2.0, ge=0, description="from here,")
    farthest: float = Field(default=22.0, gt=0, description="to there; the last has all beyond.")
    contact: float = Field(default=8.0, gt=0, description="Nearer than this is a contact.")

    @model_validator(mode="after")
    def _agrees(self) -> "FoldHead":
        if self.bins < 2 or not self.nearest < self.contact <= self.farthest:
            raise ValueError(
                f"nearest = {self.nearest}, contact = {self.contact} and farthest = "
                f"{self.farthest} must rise, and bins be 2 or more"
            )
        return self


class FoldTrain(Train):
    """Training to fold."""

    longest: Positive = Field(
        default=128,
        description="Residues that are read at once; longer proteins are read in windows that "
        "overlap by half. Sets of more points are left out.",
    )
    sentences_per_batch: Positive | None = Field(default=8, description="Windows of a batch.")
    tokens_per_batch: Positive | None = Field(
        default=None, description="Size of a batch, padding included. Or give sentences_per_batch."
    )
    metric: Literal["loss", "accuracy", "mae"] = Field(
        default="loss",
        description="What is better, on dev: loss, accuracy (of states) or mae (of distances).",
    )
