"""What may stand beside a map: links that people made, what else might have been said, a search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from regard.metric.links import Gold


class Choice(NamedTuple):
    """What could come at a step, and how likely it was."""

    token: str
    share: float


class Node(NamedTuple):
    """A token that a search went on with: after which one (-1: none), and log p until here."""

    parent: int
    token: str
    log_prob: float
    best: bool  # on the way to what was said in the end


@dataclass(frozen=True)
class More:
    """`gold`: (key, query), by words without specials; `choices`: for each query, best first."""

    gold: Gold | None = None
    choices: tuple[tuple[Choice, ...], ...] = ()
    tree: tuple[Node, ...] = ()

    def __post_init__(self) -> None:
        for number, node in enumerate(self.tree):
            if not -1 <= node.parent < number:
                raise ValueError(f"tree: node {number} comes before its parent {node.parent}")

    def head(self) -> dict[str, Any]:
        """For a file."""
        gold = self.gold and [sorted(self.gold.sure), sorted(self.gold.possible)]
        return {"gold": gold, "choices": self.choices, "tree": self.tree}


NOTHING = More()


def more_of(head: Mapping[str, Any] | None) -> More:
    """What `head` wrote."""
    if not head:
        return NOTHING
    gold = head["gold"] and Gold(*(links(one) for one in head["gold"]))
    choices = tuple(tuple(Choice(*one) for one in row) for row in head["choices"])
    return More(gold or None, choices, tuple(Node(*one) for one in head["tree"]))


def links(pairs: Sequence[Sequence[int]]) -> frozenset[tuple[int, int]]:
    return frozenset((key, query) for key, query in pairs)
