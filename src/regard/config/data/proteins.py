"""[data] of proteins, and of points in space."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, DataConfig, Positive, Rate
from regard.config.data.data_fields import (
    AUTOMATIC_HELD_OUT_HELP,
    PUBLIC_NAME_HELP,
    SKIP_BAD_HELP,
    FilePaths,
    HeldOutShare,
)
from regard.errors import InputError

VISIBLE_FRACTION_HELP = (
    "Share of the distances, 0 to 1, that the model sees; it predicts the others."
)


class ProteinsDataConfig(DataConfig):
    """Your own proteins, with a state for each residue."""

    corpus_class: ClassVar = "regard.data.formats.proteins:ProteinFiles"
    record_fields: ClassVar = (("sequence", "states"),)
    kind: Literal["proteins"] = "proteins"
    train: FilePaths = Field(
        description="Text like FASTA (>name, residues, states), CSV or TSV with a header, or JSON "
        "lines. Files may be gzipped."
    )
    dev: FilePaths | None = Field(
        default=None, description="Files for validation, in the format of train."
    )
    test: FilePaths | None = Field(
        default=None, description="Files for `regard score`, in the format of train."
    )
    format: Literal["fasta", "csv", "tsv", "jsonl"] | None = Field(
        default=None, description="Format: fasta, csv, tsv or jsonl. Default: by file name."
    )
    fields: dict[str, str] = Field(
        default={"sequence": "sequence", "states": "states"},
        description="Names of the fields in JSON lines, or in the header of a CSV or TSV.",
    )
    held_out: HeldOutShare | None = Field(default=None, description=AUTOMATIC_HELD_OUT_HELP)
    skip_bad: bool = Field(default=False, description=SKIP_BAD_HELP)


class PublicProteinsDataConfig(DataConfig):
    """Public proteins with their secondary structure, downloaded at first use."""

    corpus_class: ClassVar = "regard.data.public.proteins:PublicProteins"
    kind: Literal["public"] = "public"
    name: Literal["cb513", "uci_structure"] = Field(default="cb513", description=PUBLIC_NAME_HELP)
    states: Literal[3, 8] = Field(
        default=3, description="Number of states: 3 (helix, strand, coil) or 8 (DSSP; cb513 only)."
    )

    @model_validator(mode="after")
    def _check_states(self) -> "PublicProteinsDataConfig":
        if self.name == "uci_structure" and self.states != 3:
            raise InputError(f"states = {self.states}: uci_structure has 3 of them")
        return self


class PointsDataConfig(DataConfig):
    """Synthetic points in space, of which some distances are known."""

    corpus_class: ClassVar = "regard.data.synthetic.points:Points"
    kind: Literal["points"] = "points"
    size: Positive = Field(default=20_000, description="Number of training sets of points.")
    seed: Count = Field(default=0, description="Random seed of the points.")
    held_out: Positive = Field(default=500, description="Number of sets in dev, and in test.")
    shape: Literal["cloud", "chain"] = Field(
        default="cloud",
        description="Arrangement of the points: cloud (uniform in a cube) or chain (a random "
        "walk).",
    )
    min_points: Positive = Field(default=12, description="Minimum number of points in a set.")
    max_points: Positive = Field(default=12, description="Maximum number of points in a set.")
    visible_fraction: Rate = Field(default=0.35, description=VISIBLE_FRACTION_HELP)


class DistancesDataConfig(DataConfig):
    """Points or distances in your own files."""

    corpus_class: ClassVar = "regard.data.synthetic.points:DistanceFiles"
    record_fields: ClassVar = (("points",), ("distances",))
    kind: Literal["distances"] = "distances"
    train: FilePaths = Field(
        description='JSON lines of {"points": [[x, y, z], …]} or {"distances": [[0, 3.8, null], '
        '…]}, optionally with "sequence". Files may be gzipped.'
    )
    dev: FilePaths | None = Field(
        default=None, description="Files for validation, in the format of train."
    )
    test: FilePaths | None = Field(
        default=None, description="Files for `regard score`, in the format of train."
    )
    visible_fraction: Rate = Field(default=0.35, description=VISIBLE_FRACTION_HELP)
    held_out: HeldOutShare | None = Field(default=None, description=AUTOMATIC_HELD_OUT_HELP)
    skip_bad: bool = Field(default=False, description=SKIP_BAD_HELP)


def is_distance_data(data: Config) -> bool:
    """Return whether the targets are distances of pairs rather than states of residues."""
    return isinstance(data, PointsDataConfig | DistancesDataConfig)
