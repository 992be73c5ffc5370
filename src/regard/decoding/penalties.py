"""Penalties on the score of a hypothesis: length normalization and coverage of the source.

    s(Y, X) = log P(Y | X) / lp(Y) + cp(X; Y)                   Wu et al. 2016, eq. 14
    lp(Y)   = ((5 + |Y|) / (5 + 1))^alpha                       "gnmt"
            = |Y|^alpha                                         "length", as in fairseq
    cp(X;Y) = beta * sum_i log(min(sum_j p_ij, 1))

p_ij: the weight of source position i at target token j.   t: target   s: source
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.decoding.stepper import Hypothesis
from regard.errors import InputError

MIN_COVERAGE = 1e-9  # differs: a position without weight (sparsemax) costs log 1e-9, not infinity

LengthNormalization = Literal["gnmt", "length"]


def length_penalty(length: int, alpha: float, normalization: LengthNormalization = "gnmt") -> float:
    """lp(Y); the length includes the end token, which has a log-probability too."""
    return (length if normalization == "length" else (5 + length) / 6) ** alpha


def coverage_penalty(weights: Float[Tensor, "t s"], beta: float) -> float:
    """cp(X; Y), at most 0; `weights` has real source positions only."""
    coverage = weights.double().sum(0).clamp(MIN_COVERAGE, 1.0)
    return beta * float(coverage.log().sum())


def rerank(
    hypotheses: Sequence[Sequence[Hypothesis]],
    weights: Sequence[Sequence[Tensor]],
    *,
    alpha: float = 0.0,
    beta: float = 0.2,
    normalization: LengthNormalization = "gnmt",
) -> list[list[Hypothesis]]:
    """Rank the n-best outputs of each input again, with the coverage penalty.

    `weights` has the attention [t s] of each output, from a teacher-forced pass under `observe`,
    with or without a row for the end token. A search itself does not record attention.
    """
    # differs: Wu et al. also prune unfinished hypotheses by this score; here it ranks finished ones
    check_penalty("alpha", alpha)
    check_penalty("beta", beta)
    if [len(group) for group in hypotheses] != [len(group) for group in weights]:
        raise InputError("weights must hold one attention map for each output of each input")
    return [
        sorted(
            (
                with_coverage_penalty(
                    output,
                    attention,
                    length_penalty(len(output.ids) + 1, alpha, normalization),
                    beta,
                )
                for output, attention in zip(outputs, maps, strict=True)
            ),
            key=lambda output: -output.score,
        )
        for outputs, maps in zip(hypotheses, weights, strict=True)
    ]


def with_coverage_penalty(
    output: Hypothesis, weights: Tensor, penalty: float, beta: float
) -> Hypothesis:
    return output._replace(score=output.log_prob / penalty + coverage_penalty(weights, beta))


def check_penalty(name: str, number: float) -> None:
    if not 0 <= number < torch.inf:
        raise InputError(f"{name} must be 0 or more, not {number}")
