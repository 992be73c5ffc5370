"""Draw keys that sound or not: each by itself, or exactly so many together.

Of independent keys with odds w_k = p_k / (1 - p_k), given that `count` of them sound, a set S has
the probability prod_{k in S} w_k / e_count(w), where e is the elementary symmetric polynomial (the
conditional Bernoulli distribution; Chen & Liu 1997, procedure 2). Keys are decided one after the
other, and what all later ones can add up to is summed before.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def draw_keys(
    logits: Float[Tensor, " k"], draw: torch.Generator, count: int | None = None
) -> Bool[Tensor, " k"]:
    """Which keys sound: each by its own chance, or `count` of them."""
    chance = torch.rand(len(logits), generator=draw, dtype=torch.float64)
    if count is None:
        return chance < logits.double().sigmoid()
    if not 0 <= count <= len(logits):
        raise ValueError(f"count must be from 0 to the {len(logits)} keys, not {count}")
    odds = (logits.double() - logits.double().amax()).exp().tolist()
    sums = totals(odds, count)
    sounds, left = list[bool](), count
    for key, (odd, luck) in enumerate(zip(odds, chance.tolist(), strict=True)):
        share = odd * sums[key + 1][left - 1] / sums[key][left] if left else 0.0
        sounds.append(luck < share)
        left -= sounds[-1]
    return torch.tensor(sounds)


def totals(odds: list[float], count: int) -> list[list[float]]:
    """[k][m]: over all sets of m keys from the k-th on, the sum of the products of their odds."""
    table = [[1.0] + [0.0] * count]
    for odd in reversed(odds):
        after = table[-1]
        added = (after[m] + odd * after[m - 1] for m in range(1, count + 1))
        table.append([1.0, *added])
    return table[::-1]
