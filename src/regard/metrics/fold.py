"""How well a fold was told: states of residues, distances and contacts of pairs."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

UNKNOWN_STATE = "?"  # a state that nobody knows: it counts in nothing
DistanceMatrix = NDArray[np.float64]


def residue_accuracy(predictions: Sequence[str], targets: Sequence[str]) -> float:
    """The share of all residues of all proteins whose state is right, 0 to 1: Q3, or Q8."""
    correct = total = 0
    for predicted_states, target_states in zip(predictions, targets, strict=True):
        for predicted_state, target_state in zip(predicted_states, target_states, strict=True):
            correct += predicted_state == target_state
            total += target_state != UNKNOWN_STATE
    if not total:
        raise ValueError("true states are missing: there is nothing to average over")
    return correct / total


def majority_accuracy(targets: Sequence[str]) -> float:
    """The same, of who always says the commonest state."""
    counts = Counter(state for states in targets for state in states if state != UNKNOWN_STATE)
    return max(counts.values()) / counts.total()


def segment_overlap(predictions: Sequence[str], targets: Sequence[str]) -> float:
    """SOV, 0 to 1 (Zemla et al. 1999): overlaps of stretches of one state, by their length.

        sum over s1 of [sum over s2 of (both + allowance) / either * len(s1)] / N

    s1 are true stretches, s2 those guessed of the same state that meet it; `both` is what they
    share, `either` what one of them covers, and the allowance is the least of either - both, both,
    and half the length of each. N counts a true stretch once for each s2, and once without any.
    """
    weighted_overlap, total = 0.0, 0
    for predicted_states, target_states in zip(predictions, targets, strict=True):
        for state, start, end in state_segments(target_states):
            overlapping = [
                (a, b)
                for s, a, b in state_segments(predicted_states)
                if s == state and a < end and start < b
            ]
            total += (end - start) * max(1, len(overlapping))
            for a, b in overlapping:
                intersection, union = min(end, b) - max(start, a), max(end, b) - min(start, a)
                allowance = min(
                    union - intersection, intersection, (end - start) // 2, (b - a) // 2
                )
                weighted_overlap += (intersection + allowance) / union * (end - start)
    if not total:
        raise ValueError("true states are missing: there is nothing to average over")
    return weighted_overlap / total


def state_segments(states: str) -> list[tuple[str, int, int]]:
    """Runs of one state, with where they start and end; unknown ones are none."""
    segments, start = list[tuple[str, int, int]](), 0
    for end in range(1, len(states) + 1):
        if end == len(states) or states[end] != states[start]:
            if states[start] != UNKNOWN_STATE:
                segments.append((states[start], start, end))
            start = end
    return segments


def triangle_bounds(
    distances: DistanceMatrix, is_known: NDArray[np.bool_]
) -> tuple[DistanceMatrix, DistanceMatrix]:
    """What triangles allow: least and greatest distances of all pairs, from those known.

    The greatest is the shortest way over known ones. The least is d(k, l) minus the ways from i to
    k and from l to j, for the known pair k, l that leaves most. Where no way leads, it is inf.
    """
    upper = np.where(is_known, distances, np.inf)
    np.fill_diagonal(upper, 0.0)
    for k in range(len(upper)):
        upper = np.minimum(upper, upper[:, k, None] + upper[None, k])
    lower = np.zeros_like(upper)
    for i, j in zip(*np.nonzero(is_known), strict=True):
        detours = upper[:, i, None] + upper[None, j]
        slack = np.where(np.isfinite(detours), distances[i, j] - detours, 0.0)
        lower = np.maximum(lower, slack)
    return np.maximum(lower, lower.T), upper


def top_precision(scores: Sequence[float], is_contact: Sequence[bool], count: int) -> float:
    """The share of contacts among the `count` pairs that are likeliest to be some, 0 to 1."""
    if not scores:
        raise ValueError("pairs are missing: there is nothing to average over")
    top_pairs = sorted(range(len(scores)), key=lambda pair: -scores[pair])[: max(1, count)]
    return sum(is_contact[pair] for pair in top_pairs) / len(top_pairs)
