"""The negative log-likelihood of piano rolls, as reported since Boulanger-Lewandowski et al. 2012.

    nll = mean over steps of - sum over keys of (x log p + (1 - x) log(1 - p))     in nats

The mean is over all steps of all pieces, not over the means of pieces.
"""

import math
from collections.abc import Iterable, Sequence

from regard.errors import InputError
from regard.metrics.language import check_sums

SIGNATURE_TEMPLATE = "nll|keys:88,sum|steps:mean|log:e|first:{}|v:1"
# Bai et al. 2018: the first step of a piece is given, and not scored
FIRST_STEP_GIVEN_SIGNATURE = SIGNATURE_TEMPLATE.format("given")
# The first step is predicted and scored, too
FIRST_STEP_PREDICTED_SIGNATURE = SIGNATURE_TEMPLATE.format("predicted")


def frame_nll(loss: float, steps: int) -> float:
    """loss / steps, from a summed negative log-likelihood."""
    check_sums(loss, "steps", steps)
    return loss / steps


def step_nll(probabilities: Sequence[float], sounding: Iterable[int]) -> float:
    """-log p of one step, from the probabilities of all keys and the indices of sounding keys."""
    sounding_keys = set(sounding)
    if sounding_keys and not 0 <= min(sounding_keys) <= max(sounding_keys) < len(probabilities):
        raise InputError(
            f"sounding must be keys from 0 to {len(probabilities) - 1}, not {sounding_keys}"
        )
    key_probabilities = [
        p if key in sounding_keys else 1 - p for key, p in enumerate(probabilities)
    ]
    return (
        math.inf
        if min(key_probabilities, default=1.0) <= 0
        else -math.fsum(map(math.log, key_probabilities))
    )
