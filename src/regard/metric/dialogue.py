"""How varied replies are, and whether what was wished for was found."""

from collections.abc import Sequence


def distinct(texts: Sequence[str], size: int) -> float:
    """Different n-grams as a share of all, 0 to 1 (Li et al. 2016); words are between spaces."""
    if size < 1:
        raise ValueError(f"size must be 1 or more, not {size}")
    seen, total = set[tuple[str, ...]](), 0
    for text in texts:
        words = text.split()
        grams = [tuple(words[at : at + size]) for at in range(len(words) - size + 1)]
        seen.update(grams)
        total += len(grams)
    return len(seen) / total if total else 0.0


def matched(offered: Sequence[dict[str, str] | None], wanted: Sequence[dict[str, str]]) -> float:
    """Share of conversations whose last offer is as the goal says, 0 to 1 (Wen et al. 2017).

    A conversation without an offer is not matched; a goal has "any" where all is welcome.
    """
    if len(offered) != len(wanted):
        raise ValueError(f"{len(offered)} offers for {len(wanted)} goals: give one for each")
    right = [
        row is not None
        and all(v == "any" or row.get(n, "").casefold() == v.casefold() for n, v in goal.items())
        for row, goal in zip(offered, wanted, strict=True)
    ]
    return sum(right) / len(right) if right else 0.0
