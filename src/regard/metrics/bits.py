"""How much of a sequence of bits was not known: in bits a sequence, and by bits that are wrong."""

import math
from collections.abc import Sequence

from regard.metrics.language import check_sums

# Graves et al. 2014 plot this cost, "bits per sequence"
BITS_SIGNATURE = "bits|steps:told,sum|columns:sum|sequences:mean|log:2|v:1"


def bits_per_sequence(loss: float, sequences: int) -> float:
    """Of a negative log-likelihood in nats, summed over all bits that are told: loss / (n ln 2).

    A sum over a sequence, not a mean: one twice as long has twice as much to tell.
    """
    check_sums(loss, "sequences", sequences)
    return loss / (sequences * math.log(2))


def wrong_bits(predicted: Sequence[int], target: Sequence[int]) -> int:
    """In how many bits two rows of vectors differ, each vector a number."""
    if len(predicted) != len(target):
        raise ValueError(f"said has {len(predicted)} vectors, but wanted has {len(target)}")
    return sum(
        (predicted_vector ^ target_vector).bit_count()
        for predicted_vector, target_vector in zip(predicted, target, strict=True)
    )
