"""Sample which keys sound: each independently, or exactly `count` of them.

    p(S | count) = prod_{k in S} w_k / e_count(w),  w_k = p_k / (1 - p_k)

This is the conditional Bernoulli distribution (Chen & Liu 1997, procedure 2). w are the odds of
independent keys, e is the elementary symmetric polynomial. Keys are sampled one after another; the
sums over all later keys are computed first.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.errors import InputError


def sample_keys(
    logits: Float[Tensor, " k"], generator: torch.Generator, count: int | None = None
) -> Bool[Tensor, " k"]:
    """Return which keys sound: each independently, or exactly `count` of them."""
    uniform = torch.rand(len(logits), generator=generator, dtype=torch.float64)
    if count is None:
        return uniform < logits.double().sigmoid()
    if not 0 <= count <= len(logits):
        raise InputError(f"count must be from 0 to {len(logits)}, the number of keys, not {count}")
    odds = (logits.double() - logits.double().amax()).exp().tolist()
    sums = symmetric_sums(odds, count)
    is_on, remaining = list[bool](), count
    for key, (key_odds, threshold) in enumerate(zip(odds, uniform.tolist(), strict=True)):
        probability = (
            key_odds * sums[key + 1][remaining - 1] / sums[key][remaining] if remaining else 0.0
        )
        is_on.append(threshold < probability)
        remaining -= is_on[-1]
    return torch.tensor(is_on)


def symmetric_sums(odds: list[float], count: int) -> list[list[float]]:
    """Return a table [k][m]: e_m of the odds of keys k, k + 1, ..."""
    table = [[1.0] + [0.0] * count]
    for key_odds in reversed(odds):
        next_row = table[-1]
        later_sums = (next_row[m] + key_odds * next_row[m - 1] for m in range(1, count + 1))
        table.append([1.0, *later_sums])
    return table[::-1]
