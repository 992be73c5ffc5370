"""Roles of heads: positions that a head attends to wherever it is, such as the previous token."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.view.attention_map import AttentionLayer, AttentionMap, is_special

ROLES = ("previous", "same", "next", "first", "last", "separator")  # the first wins a tie
MIN_ROLE_SHARE = 0.4  # smallest share of a head's weight that makes a role


class HeadRole(NamedTuple):
    """A role, and the share of the head's weight that supports it; no role is an empty name."""

    name: str
    share: float


NO_ROLE = HeadRole("", 0.0)


def head_roles(map_: AttentionMap) -> list[list[HeadRole]]:
    """Return the role of each head, by layer; heads that attend to another side have none."""
    if map_.layers[0].kind != "self":
        return [[NO_ROLE] * layer.heads for layer in map_.layers]
    is_separator = np.array([n > 0 and is_special(t) for n, t in enumerate(map_.keys.tokens)])
    return [layer_roles(layer, is_separator.astype(np.float32)) for layer in map_.layers]


def layer_roles(layer: AttentionLayer, is_separator: NDArray[np.float32]) -> list[HeadRole]:
    count = layer.weights.shape[-1]
    if not count:
        return [NO_ROLE] * layer.heads
    columns = [np.eye(count, k=offset, dtype=np.float32) for offset in (-1, 0, 1)]
    first, last = np.eye(count, dtype=np.float32)[[0, -1]]
    shares = [
        (layer.weights * wanted).sum(-1).mean(-1)
        for wanted in (*columns, first, last, is_separator)
    ]
    return [
        dominant_role(dict(zip(ROLES, map(float, row), strict=True)))
        for row in zip(*shares, strict=True)
    ]


def dominant_role(shares: dict[str, float]) -> HeadRole:
    """Return the role with the greatest share.

    >>> dominant_role({"previous": 0.7, "same": 0.1})
    HeadRole(name='previous', share=0.7)
    >>> dominant_role({"previous": 0.3, "same": 0.3}).name
    ''
    """
    best = max(shares, key=shares.__getitem__)
    return HeadRole(best, shares[best]) if shares[best] >= MIN_ROLE_SHARE else NO_ROLE
