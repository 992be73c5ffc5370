"""How well named stretches of words were found: a stretch is right if its words and its name are.

As conlleval and seqeval (in its default mode) count; shares are 0 to 1, and 0 / 0 counts as 0.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from regard.metric.classes import Scores, scores

SIGNATURE = "entities|micro|conlleval|v:1"
Found = tuple[str, int, int]  # a name, the first word, the word behind the last


class Entities(NamedTuple):
    """All stretches together, and by their names."""

    whole: Scores
    by_name: dict[str, Scores]


def entities(guessed: Sequence[Iterable[Found]], true: Sequence[Iterable[Found]]) -> Entities:
    """From the stretches of each sentence; each counts once, however long it is."""
    if len(guessed) != len(true):
        raise ValueError(f"{len(guessed)} guesses for {len(true)} sentences: give one for each")
    right, said, there = Counter[str](), Counter[str](), Counter[str]()
    for mine, theirs in zip(guessed, true, strict=True):
        one, other = set(mine), set(theirs)
        right.update(name for name, *_ in one & other)
        said.update(name for name, *_ in one)
        there.update(name for name, *_ in other)
    names = sorted({*said, *there})
    return Entities(
        scores(right.total(), said.total(), there.total()),
        {name: scores(right[name], said[name], there[name]) for name in names},
    )
