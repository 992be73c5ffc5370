"""[decode]: how outputs are found."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, Positive


class SearchConfig(Config):
    """What every search obeys."""

    max_length: Positive = Field(default=256, description="Tokens of an output, at most.")
    min_length: Count = Field(default=0, description="Tokens of an output, at least.")
    no_repeat_ngram: Count = Field(
        default=0, description="No n tokens in a row occur twice; 0: they may."
    )

    @model_validator(mode="after")
    def _check_lengths(self) -> "SearchConfig":
        if self.min_length > self.max_length:
            conflict = f"min_length = {self.min_length} is more than max_length = {self.max_length}"
            raise ValueError(f"{conflict}: no length is left")
        return self


class GreedyConfig(SearchConfig):
    """The likeliest token each time."""

    kind: Literal["greedy"] = "greedy"


class BeamConfig(SearchConfig):
    """The likeliest sequences, several at a time."""

    kind: Literal["beam"] = "beam"
    width: Positive = Field(default=5, description="Beginnings that go on side by side.")
    n_best: Positive = Field(default=1, description="Outputs for each input.")
    length_penalty: float = Field(
        default=0.0, ge=0, description="Alpha of Wu et al. 2016; 0: none."
    )
    coverage_penalty: float = Field(
        default=0.0,
        ge=0,
        description="Beta of Wu et al. 2016, to rank finished outputs; 0: none.",
    )
    patience: float = Field(
        default=1.0,
        gt=0,
        description="Stop at this times width finished outputs (Kasai et al. 2022).",
    )

    @model_validator(mode="after")
    def _check_n_best(self) -> "BeamConfig":
        if self.n_best > self.width:
            raise ValueError(f"n_best = {self.n_best} is more than width = {self.width}")
        return self


class SampleConfig(SearchConfig):
    """Drawn by chance."""

    kind: Literal["sample"] = "sample"
    temperature: float = Field(default=1.0, gt=0, description="Below 1 likely tokens gain.")
    top_k: Positive | None = Field(default=None, description="Only the k likeliest.")
    top_p: float | None = Field(
        default=None, gt=0, le=1, description="Only the likeliest, of this mass."
    )
    min_p: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Only what is at least this share as likely as the likeliest.",
    )
    seed: Count = Field(default=0, description="Another seed, other outputs.")


DecodeConfig = Annotated[GreedyConfig | BeamConfig | SampleConfig, Field(discriminator="kind")]
