"""What tasks that write text share: searches, constraints and predictions."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.config.decode import BeamConfig, DecodeConfig, GreedyConfig, SampleConfig
from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.decoding.penalties import rerank
from regard.decoding.sampling import SamplingOptions, sample
from regard.decoding.stepper import Hypothesis
from regard.tasks.base import Prediction

RECORDS_PER_CHUNK = 10_000  # records that are tokenized together
TOKENS_PER_BATCH = 2000  # in prediction and evaluation

SearchFunction = Callable[[Any, Any, list[int], Constraints], list[list[Hypothesis]]]
"""(model, its memory, a seed for each input, constraints) -> hypotheses of each input."""
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

    def as_dict(self) -> dict[str, Any]:
        outputs = [{"text": o.text, "score": o.score, "log_prob": o.log_prob} for o in self.outputs]
        return {"text": self.text, "outputs": outputs}


@dataclass(frozen=True)
class Decoding:
    """How outputs are found: a search, its constraints, and perhaps a reranking."""

    search: SearchFunction
    constraints: Constraints
    rerank: RerankFunction | None = None

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
    return Decoding(build_search(config), constraints, build_reranker(config))


def sampling_seeds(sources: Sequence[Sequence[Any]]) -> list[int]:
    """Return a seed for each source, made of its content; a repeated source gets another one."""
    occurrences, seeds = Counter[tuple[Any, ...]](), list[int]()
    for source in sources:
        ids = tuple(source)
        occurrences[ids] += 1
        key = " ".join(map(str, (*ids, -occurrences[ids])))
        seeds.append(int.from_bytes(blake2b(key.encode(), digest_size=7).digest()))
    return seeds


def build_search(decode: DecodeConfig, count: int = 1) -> SearchFunction:
    """A search as the settings describe it; each input draws with a seed of its own.

    `count`: outputs for each input, at least, where a search finds more than one.
    """
    match decode:
        case GreedyConfig():
            return lambda model, memory, seeds, rules: greedy_search(
                model, memory, len(seeds), rules
            )
        case BeamConfig():
            options = {
                "width": max(decode.width, count),
                "n_best": decode.width if decode.coverage_penalty else max(decode.n_best, count),
                "alpha": decode.length_penalty,
                "patience": decode.patience,
            }
            return lambda model, memory, seeds, rules: beam_search(
                model, memory, len(seeds), **options, constraints=rules
            )
        case SampleConfig():
            draw = SamplingOptions(decode.temperature, decode.top_k, decode.top_p, decode.min_p)
            first_seed = decode.seed * 1_000_003
            return lambda model, memory, seeds, rules: sample(
                model,
                memory,
                [first_seed + seed for seed in seeds],
                draw,
                copies=count,
                constraints=rules,
            )


def build_reranker(decode: DecodeConfig) -> RerankFunction | None:
    """Of all that a beam found, the n best by how much of the source was looked at, too."""
    if not isinstance(decode, BeamConfig) or not decode.coverage_penalty:
        return None

    def rerank_hypotheses(
        hypotheses: list[list[Hypothesis]], weights: list[list[torch.Tensor]]
    ) -> list[list[Hypothesis]]:
        alpha, beta = decode.length_penalty, decode.coverage_penalty
        return [
            best[: decode.n_best] for best in rerank(hypotheses, weights, alpha=alpha, beta=beta)
        ]

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
