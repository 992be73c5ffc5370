"""Structure of the heads of a map, and the weight from which a cell looks like a peak."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.view.attention_map import AttentionLayer, AttentionMap, attention_rows

MIN_PEAK_RATIO = 4  # the strongest shade is at least this multiple of an even weight


class ClearestHead(NamedTuple):
    """The head that tells most about which query attends to which key; both count from 0."""

    layer: int
    head: int
    bits: float


def clearest_head(map_: AttentionMap) -> ClearestHead:
    """Return the head with the most structure, see `structure_bits`; the first of equal ones."""
    heads = [
        ClearestHead(number, head, float(bits))
        for number, layer in enumerate(map_.layers)
        for head, bits in enumerate(structure_bits(layer))
    ]
    return max(heads, key=lambda head: round(head.bits, 6))


def structure_bits(layer: AttentionLayer) -> NDArray[np.float32]:
    """Return H(mean row) - mean H(row) of each head, in bits.

    This mutual information of queries and keys is 0 if all rows are equal. A map with one row, such
    as a grid, has log2(keys) - H(row): 0 if all weights are equal.
    """
    rows = attention_rows(layer)
    if rows.size == 0:
        return np.zeros(layer.heads, np.float32)
    rows = rows / np.maximum(rows.sum(-1, keepdims=True), 1e-9)
    row_entropy = entropy_bits(rows).mean(-1)
    if rows.shape[1] == 1:
        return np.log2(np.float32(rows.shape[-1])) - row_entropy
    return entropy_bits(rows.mean(1)) - row_entropy


def entropy_bits(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return -(rows * np.log2(rows, where=rows > 0, out=np.zeros_like(rows))).sum(-1)


def scale_top(max_weight: float, even_weight: float) -> float:
    """Return the weight of the strongest shade: the greatest one, or a multiple of an even one.

    So nearly equal weights stay pale, instead of looking like peaks.

    >>> scale_top(0.11, even_weight=0.1)
    0.4
    >>> scale_top(0.7, even_weight=0.1)
    0.7
    """
    return max(max_weight, min(1.0, MIN_PEAK_RATIO * even_weight)) or 1.0
