"""Metrics of protein structure: states of residues, distances and contacts of pairs."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.errors import InputError

UNKNOWN_STATE = "?"  # excluded from all metrics
DistanceMatrix = NDArray[np.float64]


def residue_accuracy(predictions: Sequence[str], targets: Sequence[str]) -> float:
    """Return the share of residues with the right state over all proteins, 0 to 1: Q3, or Q8."""
    correct = total = 0
    for predicted_states, target_states in zip(predictions, targets, strict=True):
        for predicted_state, target_state in zip(predicted_states, target_states, strict=True):
            correct += predicted_state == target_state
            total += target_state != UNKNOWN_STATE
    if not total:
        raise InputError("no known target states; give at least one")
    return correct / total


def majority_accuracy(targets: Sequence[str]) -> float:
    """Return the residue accuracy of always predicting the most frequent state."""
    counts = Counter(state for states in targets for state in states if state != UNKNOWN_STATE)
    return max(counts.values()) / counts.total()


def segment_overlap(predictions: Sequence[str], targets: Sequence[str]) -> float:
    """SOV = sum over s1 of [sum over s2 of (i + allowance) / u * len(s1)] / N, 0 to 1.

    s1 are true segments, s2 the predicted segments of the same state that overlap it; i and u are
    the lengths of their intersection and union. The allowance is the minimum of u - i, i, and half
    the length of each. N sums len(s1) once for each s2, or once if there is none (Zemla et al.
    1999).
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
        raise InputError("no known target states; give at least one")
    return weighted_overlap / total


def state_segments(states: str) -> list[tuple[str, int, int]]:
    """Return runs of one state as (state, start, end), without unknown states."""
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
    """Return lower and upper bounds of all distances, by the triangle inequality.

    The upper bound is the shortest path over known distances, inf without a path. The lower bound
    of i, j is the maximum over known pairs k, l of d(k, l) minus the paths from i to k and l to j.
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
    """Return the share of contacts among the `count` pairs with the highest scores, 0 to 1."""
    if not scores:
        raise InputError("no pairs; give at least one")
    top_pairs = sorted(range(len(scores)), key=lambda pair: -scores[pair])[: max(1, count)]
    return sum(is_contact[pair] for pair in top_pairs) / len(top_pairs)
