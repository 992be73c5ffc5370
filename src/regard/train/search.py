"""The [decode] of the settings -> a search, its rules, and a second look at what it found."""

from dataclasses import replace

import torch

from regard.config.decode import Beam, Decode, Greedy, Sample
from regard.decode.beam import beam
from regard.decode.greedy import greedy
from regard.decode.penalty import rerank
from regard.decode.rules import Rules
from regard.decode.sample import Draw, sample
from regard.decode.stepper import Hypothesis
from regard.tasks.translate import Ranking, Search


def search_of(decode: Decode, count: int = 1) -> Search:
    """A search as the settings describe it; each input draws with a seed of its own.

    `count`: outputs for each input, at least, where a search finds more than one.
    """
    match decode:
        case Greedy():
            return lambda model, memory, seeds, rules: greedy(model, memory, len(seeds), rules)
        case Beam():
            options = {
                "width": max(decode.width, count),
                "n_best": decode.width if decode.coverage_penalty else max(decode.n_best, count),
                "alpha": decode.length_penalty,
                "patience": decode.patience,
            }
            return lambda model, memory, seeds, rules: beam(
                model, memory, len(seeds), **options, rules=rules
            )
        case Sample():
            draw = Draw(decode.temperature, decode.top_k, decode.top_p, decode.min_p)
            first = decode.seed * 1_000_003
            return lambda model, memory, seeds, rules: sample(
                model, memory, [first + seed for seed in seeds], draw, copies=count, rules=rules
            )


def ranking_of(decode: Decode) -> Ranking | None:
    """Of all that a beam found, the n best by how much of the source was looked at, too."""
    if not isinstance(decode, Beam) or not decode.coverage_penalty:
        return None

    def ranked(
        found: list[list[Hypothesis]], weights: list[list[torch.Tensor]]
    ) -> list[list[Hypothesis]]:
        alpha, beta = decode.length_penalty, decode.coverage_penalty
        return [best[: decode.n_best] for best in rerank(found, weights, alpha=alpha, beta=beta)]

    return ranked


def rules_of(decode: Decode, most: int, forbidden: tuple[int, ...] = ()) -> Rules:
    """`forbidden` are ids that are never said, beside those that no output has."""
    rules = Rules(most, min(decode.min_length, most), decode.no_repeat_ngram)
    return replace(rules, forbidden=(*rules.forbidden, *forbidden)) if forbidden else rules
