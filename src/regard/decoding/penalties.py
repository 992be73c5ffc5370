"""How hypotheses of different lengths are compared, and those that leave out some of the source.

    s(Y, X) = log P(Y | X) / lp(Y) + cp(X; Y)                   Wu et al. 2016, eq. 14
    lp(Y)   = ((5 + |Y|) / (5 + 1))^alpha
    cp(X;Y) = beta * sum_i log(min(sum_j p_ij, 1))

p_ij: the weight of source position i when target token j was said.   t: target   s: source
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.decoding.stepper import Hypothesis

MIN_COVERAGE = 1e-9  # differs: a position never looked at (sparsemax) costs log 1e-9, not infinity


def length_penalty(length: int, alpha: float) -> float:
    """lp(Y). The length counts the end too: it has a log-probability like any other token."""
    return ((5 + length) / 6) ** alpha


def coverage_penalty(weights: Float[Tensor, "t s"], beta: float) -> float:
    """cp(X; Y), at most 0; `weights` are of real source positions only."""
    coverage = weights.double().sum(0).clamp(MIN_COVERAGE, 1.0)
    return beta * float(coverage.log().sum())


def rerank(
    hypotheses: Sequence[Sequence[Hypothesis]],
    weights: Sequence[Sequence[Tensor]],
    *,
    alpha: float = 0.0,
    beta: float = 0.2,
) -> list[list[Hypothesis]]:
    """The n-best outputs of each input, ranked anew with the coverage of the source.

    `weights` [t s] are those of each output, from one teacher-forced pass under `observe`; a row
    for the end, if there is one, counts. Search itself knows nothing of attention.
    """
    # differs: Wu et al. also prune unfinished hypotheses by this score; here it ranks finished ones
    check_penalty("alpha", alpha)
    check_penalty("beta", beta)
    if [len(group) for group in hypotheses] != [len(group) for group in weights]:
        raise ValueError("weights must be as many as the outputs that were found, input by input")
    return [
        sorted(
            (with_coverage_penalty(*pair, alpha, beta) for pair in zip(outputs, maps, strict=True)),
            key=lambda output: -output.score,
        )
        for outputs, maps in zip(hypotheses, weights, strict=True)
    ]


def with_coverage_penalty(
    output: Hypothesis, weights: Tensor, alpha: float, beta: float
) -> Hypothesis:
    penalty = length_penalty(len(output.ids) + 1, alpha)
    return output._replace(score=output.log_prob / penalty + coverage_penalty(weights, beta))


def check_penalty(name: str, number: float) -> None:
    if not 0 <= number < torch.inf:
        raise ValueError(f"{name} must be 0 or more, not {number}")
