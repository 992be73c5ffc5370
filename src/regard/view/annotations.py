"""Annotations of an attention map: gold links, alternative tokens, the tree of a search."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regard.errors import InputError
from regard.files import JsonObject
from regard.metrics.alignment_files import GoldAlignment


class TokenChoice(NamedTuple):
    """A possible token at a step, and its probability."""

    token: str
    probability: float


class SearchTreeNode(NamedTuple):
    """A token that a search has extended a hypothesis with."""

    parent: int  # index of the previous token's node; -1 for none
    token: str
    log_prob: float  # of all tokens up to this one
    is_on_best_path: bool  # part of the final output


@dataclass(frozen=True)
class MapAnnotations:
    """Annotations of a map.

    `gold` links (key, query), which count words without special tokens. `choices` has the
    alternatives at each query, best first; in a map of kind "grid", at each layer.
    `output_start` is the first query that writes a token of the output.
    """

    gold: GoldAlignment | None = None
    choices: tuple[tuple[TokenChoice, ...], ...] = ()
    tree: tuple[SearchTreeNode, ...] = ()
    output_start: int = 0

    def __post_init__(self) -> None:
        for number, node in enumerate(self.tree):
            if not -1 <= node.parent < number:
                raise InputError(
                    f"tree: node {number} comes before its parent {node.parent}; put it after"
                )

    def as_dict(self) -> JsonObject:
        gold = self.gold and [sorted(self.gold.sure), sorted(self.gold.possible)]
        return {
            "gold": gold,
            "choices": self.choices,
            "tree": self.tree,
            "output_start": self.output_start,
        }


NO_ANNOTATIONS = MapAnnotations()


def annotations_from_dict(data: JsonObject | None) -> MapAnnotations:
    """Return the annotations that `as_dict` has converted."""
    if not data:
        return NO_ANNOTATIONS
    gold = data["gold"] and GoldAlignment(*(link_set(pairs) for pairs in data["gold"]))
    choices = tuple(tuple(TokenChoice(*choice) for choice in row) for row in data["choices"])
    tree = tuple(SearchTreeNode(*node) for node in data["tree"])
    return MapAnnotations(gold or None, choices, tree, data.get("output_start", 0))


def link_set(pairs: Sequence[Sequence[int]]) -> frozenset[tuple[int, int]]:
    return frozenset((key, query) for key, query in pairs)
