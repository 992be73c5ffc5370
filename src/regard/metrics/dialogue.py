"""How varied replies are, and whether what was wished for was found."""

from collections.abc import Sequence


def distinct_ngrams(texts: Sequence[str], size: int) -> float:
    """Different n-grams as a share of all, 0 to 1 (Li et al. 2016); words are between spaces."""
    if size < 1:
        raise ValueError(f"size must be 1 or more, not {size}")
    unique, total = set[tuple[str, ...]](), 0
    for text in texts:
        words = text.split()
        ngrams = [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]
        unique.update(ngrams)
        total += len(ngrams)
    return len(unique) / total if total else 0.0


def entity_match(offers: Sequence[dict[str, str] | None], goals: Sequence[dict[str, str]]) -> float:
    """Share of conversations whose last offer is as the goal says, 0 to 1 (Wen et al. 2017).

    A conversation without an offer is not matched; a goal has "any" where all is welcome.
    """
    if len(offers) != len(goals):
        raise ValueError(f"{len(offers)} offers for {len(goals)} goals: give one for each")
    matches = [
        row is not None
        and all(v == "any" or row.get(n, "").casefold() == v.casefold() for n, v in goal.items())
        for row, goal in zip(offers, goals, strict=True)
    ]
    return sum(matches) / len(matches) if matches else 0.0
