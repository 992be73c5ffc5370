"""Metrics of bit sequences: the negative log-likelihood in bits, and the number of wrong bits."""

import math
from collections.abc import Sequence

from regard.errors import InputError
from regard.metrics.language import check_sums

# The cost in the figures of Graves et al. 2014, "bits per sequence"
BITS_SIGNATURE = "bits|steps:target,sum|columns:sum|sequences:mean|log:2|v:1"


def bits_per_sequence(loss: float, sequences: int) -> float:
    """loss / (n ln 2), from a negative log-likelihood in nats, summed over all target bits.

    It is a sum over each sequence, not a mean, so it grows with the length.
    """
    check_sums(loss, "sequences", sequences)
    return loss / (sequences * math.log(2))


def wrong_bits(predicted: Sequence[int], target: Sequence[int]) -> int:
    """Return the number of bits in which two sequences of vectors differ; vectors are numbers."""
    if len(predicted) != len(target):
        raise InputError(
            f"predicted has {len(predicted)} vectors, but target has {len(target)}; "
            "give equally many"
        )
    return sum(
        (predicted_vector ^ target_vector).bit_count()
        for predicted_vector, target_vector in zip(predicted, target, strict=True)
    )
