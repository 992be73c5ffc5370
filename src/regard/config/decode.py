"""[decode]: the search for outputs."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, Positive
from regard.errors import InputError


class SearchConfig(Config):
    """The limits of every search."""

    max_length: Positive = Field(default=256, description="Maximum length of an output, in tokens.")
    min_length: Count = Field(default=0, description="Minimum length of an output, in tokens.")
    no_repeat_ngram: Count = Field(
        default=0,
        description="Length n of n-grams that may not occur twice in an output; 0: no limit.",
    )

    @model_validator(mode="after")
    def _check_lengths(self) -> "SearchConfig":
        if self.min_length > self.max_length:
            conflict = f"min_length = {self.min_length} is more than max_length = {self.max_length}"
            raise InputError(f"{conflict}: no length is left")
        return self


class GreedyConfig(SearchConfig):
    """Greedy search: the likeliest token at each position."""

    kind: Literal["greedy"] = "greedy"


class BeamConfig(SearchConfig):
    """Beam search: several hypotheses side by side."""

    kind: Literal["beam"] = "beam"
    width: Positive = Field(default=5, description="Number of hypotheses kept at each position.")
    n_best: Positive = Field(default=1, description="Number of outputs for each input.")
    length_penalty: float = Field(
        default=0.0,
        ge=0,
        le=100,
        description="Length penalty alpha (Wu et al. 2016), 0 to 100; 0: none.",
    )
    length_normalization: Literal["gnmt", "length"] = Field(
        default="gnmt",
        description="Divisor of the log-probability: gnmt, ((5 + length) / 6)^alpha, or length, "
        "length^alpha.",
    )
    coverage_penalty: float = Field(
        default=0.0,
        ge=0,
        description="Coverage penalty beta (Wu et al. 2016) for finished outputs, 0 or more; 0: "
        "none.",
    )
    patience: float = Field(
        default=1.0,
        gt=0,
        description="Factor p: the search ends after p times width finished hypotheses (Kasai et "
        "al. 2022).",
    )

    @model_validator(mode="after")
    def _check_n_best(self) -> "BeamConfig":
        if self.n_best > self.width:
            raise InputError(f"n_best = {self.n_best} is more than width = {self.width}")
        return self


class SampleConfig(SearchConfig):
    """Sampling from the distribution of the model."""

    kind: Literal["sample"] = "sample"
    temperature: float = Field(
        default=1.0,
        gt=0,
        description="Divisor of the logits, more than 0; below 1, likely tokens become likelier.",
    )
    top_k: Positive | None = Field(
        default=None, description="Number of the likeliest tokens to sample from. Default: all."
    )
    top_p: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Probability mass of the likeliest tokens to sample from, 0 to 1. Default: "
        "all.",
    )
    min_p: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Minimum probability of a token, as a share of that of the likeliest, 0 to 1. "
        "Default: none.",
    )
    seed: Count = Field(default=0, description="Random seed of the samples.")


DecodeConfig = Annotated[GreedyConfig | BeamConfig | SampleConfig, Field(discriminator="kind")]
