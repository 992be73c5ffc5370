"""Shared parts of tasks that write text: searches, constraints and predictions."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from regard.config.decode import BeamConfig, DecodeConfig, GreedyConfig, SampleConfig
from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.decoding.penalties import rerank
from regard.decoding.sampling import SamplingOptions, sample
from regard.decoding.stepper import Hypothesis
from regard.files import JsonObject
from regard.tasks.base import Prediction

RECORDS_PER_CHUNK = 10_000  # records that are tokenized together
TOKENS_PER_BATCH = 2000  # in prediction and evaluation


class BatchSearch(Protocol):
    """A search over the inputs of one memory; it returns the hypotheses of each input."""

    def __call__(
        self, stepper: Any, memory: Any, *, constraints: Constraints
    ) -> list[list[Hypothesis]]: ...


SearchFunction = Callable[[list[int]], BatchSearch]
"""A seed for each input of a batch -> the search of this batch."""
RerankFunction = Callable[[list[list[Hypothesis]], list[list[Tensor]]], list[list[Hypothesis]]]
"""(hypotheses of each input, their attention weights [t s]) -> hypotheses in another order."""


class TextOutput(NamedTuple):
    """One finished hypothesis."""

    text: str
    score: float  # by which it was ranked
    log_prob: float
    ids: list[int]


@dataclass(frozen=True)
class TextPrediction(Prediction):
    """The hypotheses for one input, best first; `text` is that of the best."""

    outputs: tuple[TextOutput, ...] = ()

    @property
    def best(self) -> TextOutput:
        return self.outputs[0]

    def as_dict(self) -> JsonObject:
        outputs = [{"text": o.text, "score": o.score, "log_prob": o.log_prob} for o in self.outputs]
        return {"text": self.text, "outputs": outputs}


@dataclass(frozen=True)
class Decoding:
    """A search, its constraints, and perhaps a reranking."""

    search: SearchFunction
    constraints: Constraints
    rerank: RerankFunction | None = None
    config: DecodeConfig | None = None  # what was asked for, if the search is as in the settings

    @property
    def max_length(self) -> int:
        length = self.constraints.max_length
        return length if isinstance(length, int) else max(length)


def build_decoding(
    config: DecodeConfig, max_positions: float, forbidden_ids: tuple[int, ...] = ()
) -> Decoding:
    """Return the decoding that the settings describe, within the positions of the model."""
    max_length = int(min(config.max_length, max_positions))
    constraints = build_constraints(config, max_length, forbidden_ids)
    return Decoding(build_search(config), constraints, build_reranker(config), config)


def sampling_seeds(sources: Sequence[Sequence[object]]) -> list[int]:
    """Return a seed for each source, made of its content; a repeated source gets another one."""
    occurrences, seeds = Counter[tuple[object, ...]](), list[int]()
    for source in sources:
        ids = tuple(source)
        occurrences[ids] += 1
        key = " ".join(map(str, (*ids, -occurrences[ids])))
        seeds.append(int.from_bytes(blake2b(key.encode(), digest_size=7).digest()))
    return seeds


def build_search(decode: DecodeConfig, count: int = 1) -> SearchFunction:
    """Return the search that the settings describe; each input has its own random seed.

    `count` is the minimum number of outputs for each input, if the search can return several.
    """
    match decode:
        case GreedyConfig():
            return lambda seeds: partial(greedy_search, count=len(seeds))
        case BeamConfig():
            search = partial(
                beam_search,
                width=max(decode.width, count),
                n_best=decode.width if decode.coverage_penalty else max(decode.n_best, count),
                alpha=decode.length_penalty,
                normalization=decode.length_normalization,
                patience=decode.patience,
            )
            return lambda seeds: partial(search, count=len(seeds))
        case SampleConfig():
            draw = SamplingOptions(decode.temperature, decode.top_k, decode.top_p, decode.min_p)
            first_seed = decode.seed * 1_000_003
            return lambda seeds: partial(
                sample, seeds=[first_seed + seed for seed in seeds], options=draw, copies=count
            )


def build_reranker(decode: DecodeConfig) -> RerankFunction | None:
    """Return a function that ranks hypotheses by score and coverage of the source, or None."""
    if not isinstance(decode, BeamConfig) or not decode.coverage_penalty:
        return None

    def rerank_hypotheses(
        hypotheses: list[list[Hypothesis]], weights: list[list[torch.Tensor]]
    ) -> list[list[Hypothesis]]:
        ranked = rerank(
            hypotheses,
            weights,
            alpha=decode.length_penalty,
            beta=decode.coverage_penalty,
            normalization=decode.length_normalization,
        )
        return [outputs[: decode.n_best] for outputs in ranked]

    return rerank_hypotheses


def build_constraints(
    decode: DecodeConfig, max_length: int, forbidden_ids: tuple[int, ...] = ()
) -> Constraints:
    """`forbidden` are ids that are never said, beside those that no output has."""
    constraints = Constraints(
        max_length, min(decode.min_length, max_length), decode.no_repeat_ngram
    )
    return (
        replace(constraints, forbidden=(*constraints.forbidden, *forbidden_ids))
        if forbidden_ids
        else constraints
    )
