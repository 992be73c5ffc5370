"""The [decode] of the settings -> a search, its rules, and a second look at what it found."""

from dataclasses import replace

import torch

from regard.config.decode import BeamConfig, DecodeConfig, GreedyConfig, SampleConfig
from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.decoding.penalties import rerank
from regard.decoding.sampling import SamplingOptions, sample
from regard.decoding.stepper import Hypothesis
from regard.tasks.translate import RerankFunction, SearchFunction


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
