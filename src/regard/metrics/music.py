"""How well the keys of a step are told by those before: the likelihood of piano rolls.

    nll = mean over steps of - sum over keys of (x log p + (1 - x) log(1 - p))     in nats

As Boulanger-Lewandowski et al. 2012 and all after them report it. The mean is over all steps of all
pieces, and not of the means of pieces.
"""

import math
from collections.abc import Iterable, Sequence

from regard.metrics.language import check_sums

SIGNATURE_TEMPLATE = "nll|keys:88,sum|steps:mean|log:e|first:{}|v:1"
FIRST_STEP_GIVEN_SIGNATURE = SIGNATURE_TEMPLATE.format(
    "given"
)  # Bai et al. 2018: told are the second step and those after it
FIRST_STEP_PREDICTED_SIGNATURE = SIGNATURE_TEMPLATE.format(
    "told"
)  # the first one too, from nothing


def frame_nll(loss: float, steps: int) -> float:
    """Of a summed negative log-likelihood, for one step."""
    check_sums(loss, "steps", steps)
    return loss / steps


def step_nll(probabilities: Sequence[float], sounding: Iterable[int]) -> float:
    """-log p of one step: each key's probability, and the numbers (from 0) of those that sound."""
    sounding_keys = set(sounding)
    if sounding_keys and not 0 <= min(sounding_keys) <= max(sounding_keys) < len(probabilities):
        raise ValueError(f"sounding has keys that are not among the {len(probabilities)}")
    key_probabilities = [
        p if key in sounding_keys else 1 - p for key, p in enumerate(probabilities)
    ]
    return (
        math.inf
        if min(key_probabilities, default=1.0) <= 0
        else -math.fsum(map(math.log, key_probabilities))
    )
