"""Metrics of dialogues: the diversity of replies, and whether offers fit the goal."""

from collections.abc import Sequence

from regard.errors import InputError


def distinct_ngrams(texts: Sequence[str], size: int) -> float:
    """Return the share of different n-grams among all, 0 to 1 (Li et al. 2016)."""
    if size < 1:
        raise InputError(f"size must be at least 1, not {size}")
    unique, total = set[tuple[str, ...]](), 0
    for text in texts:
        words = text.split()
        ngrams = [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]
        unique.update(ngrams)
        total += len(ngrams)
    return len(unique) / total if total else 0.0


def entity_match(offers: Sequence[dict[str, str] | None], goals: Sequence[dict[str, str]]) -> float:
    """Return the share of dialogues whose last offer fits the goal, 0 to 1 (Wen et al. 2017).

    A dialogue without an offer is no match. A slot of the goal with the value "any" fits all.
    """
    if len(offers) != len(goals):
        raise InputError(f"{len(offers)} offers for {len(goals)} goals; give one for each")
    matches = [
        row is not None
        and all(v == "any" or row.get(n, "").casefold() == v.casefold() for n, v in goal.items())
        for row, goal in zip(offers, goals, strict=True)
    ]
    return sum(matches) / len(matches) if matches else 0.0
