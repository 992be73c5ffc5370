"""TODO regard.config.data.proteins."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, DataConfig, Fraction, Positive, Rate
from regard.config.data.common import HELD_OUT_HELP, PUBLIC_NAME_HELP, FilePaths

VISIBLE_FRACTION_HELP = "Share of the distances that are shown; the others are to be told."


class ProteinsDataConfig(DataConfig):
    """Your own proteins, with a state for each residue."""

    corpus_class: ClassVar = "regard.data.formats.proteins:ProteinFiles"
    record_fields: ClassVar = (("sequence", "states"),)
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


class PublicProteinsDataConfig(DataConfig):
    """Public proteins with their secondary structure, fetched when they are first needed."""

    corpus_class: ClassVar = "regard.data.public.proteins:PublicProteins"
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


class PointsDataConfig(DataConfig):
    """Points in space, by some of their distances: made here."""

    corpus_class: ClassVar = "regard.data.synthetic.points:Points"
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


class DistancesDataConfig(DataConfig):
    """Your own points or distances."""

    corpus_class: ClassVar = "regard.data.synthetic.points:DistanceFiles"
    record_fields: ClassVar = (("points",), ("distances",))
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


def is_distance_data(data: Config) -> bool:
    """Whether distances of pairs are told, and not states of residues."""
    return isinstance(data, PointsDataConfig | DistancesDataConfig)
