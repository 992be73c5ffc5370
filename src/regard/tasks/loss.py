"""Cross-entropy over the tokens that are real, with smoothed labels."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

ROWS = 256  # predictions at a time: 256 x 10,000 logits are 10 MB, which a cache still holds


class Loss(NamedTuple):
    """Summed over the tokens that were predicted, and how many those were."""

    total: Tensor
    tokens: int


def cross_entropy(
    logits_of: Callable[[Tensor], Tensor],
    states: Float[Tensor, "b t d"],
    target: Int[Tensor, "b t"],
    valid: Bool[Tensor, "b t"],
    *,
    smoothing: float = 0.0,
    pad: int = 0,
) -> Loss:
    """-sum log p(target), where `logits_of` (the output layer) sees the real positions only.

    With `smoothing` e, the label is 1 - e at the target and e spread evenly over the vocabulary
    (Szegedy et al. 2016, sec. 7), padding excepted: no mass goes to what is never said.
    """
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing must be in [0, 1), not {smoothing}")
    rows, labels = states[valid], target[valid]
    total = rows.new_zeros((), dtype=torch.float32 if rows.dtype != torch.float64 else rows.dtype)
    for some, label in zip(rows.split(ROWS), labels.split(ROWS), strict=True):
        logits = logits_of(some).to(total.dtype)
        if not smoothing:
            total = total + F.cross_entropy(logits, label, reduction="sum")
            continue
        log_sum = logits.logsumexp(-1)
        at_label = logits.gather(-1, label[:, None]).squeeze(-1)
        mean = (logits.sum(-1) - logits[:, pad]) / (logits.shape[-1] - 1)
        total = total + (log_sum - (1 - smoothing) * at_label - smoothing * mean).sum()
    return Loss(total, len(labels))
