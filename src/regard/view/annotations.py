"""What may stand beside a map: links that people made, what else might have been said, a search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from regard.metrics.alignment_files import GoldAlignment


class TokenChoice(NamedTuple):
    """What could come at a step, and how likely it was."""

    token: str
    probability: float


class SearchTreeNode(NamedTuple):
    """A token that a search went on with: after which one (-1: none), and log p until here."""

    parent: int
    token: str
    log_prob: float
    is_on_best_path: bool  # on the way to what was said in the end


@dataclass(frozen=True)
class MapAnnotations:
    """`gold`: (key, query), by words without specials; `choices`: for each query, best first."""

    gold: GoldAlignment | None = None
    choices: tuple[tuple[TokenChoice, ...], ...] = ()
    tree: tuple[SearchTreeNode, ...] = ()

    def __post_init__(self) -> None:
        for number, node in enumerate(self.tree):
            if not -1 <= node.parent < number:
                raise ValueError(f"tree: node {number} comes before its parent {node.parent}")

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        gold = self.gold and [sorted(self.gold.sure), sorted(self.gold.possible)]
        return {"gold": gold, "choices": self.choices, "tree": self.tree}


NO_ANNOTATIONS = MapAnnotations()


def annotations_from_dict(data: Mapping[str, Any] | None) -> MapAnnotations:
    """What `head` wrote."""
    if not data:
        return NO_ANNOTATIONS
    gold = data["gold"] and GoldAlignment(*(link_set(one) for one in data["gold"]))
    choices = tuple(tuple(TokenChoice(*one) for one in row) for row in data["choices"])
    return MapAnnotations(
        gold or None, choices, tuple(SearchTreeNode(*one) for one in data["tree"])
    )


def link_set(pairs: Sequence[Sequence[int]]) -> frozenset[tuple[int, int]]:
    return frozenset((key, query) for key, query in pairs)
