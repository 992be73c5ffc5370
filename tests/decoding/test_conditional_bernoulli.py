"""Keys by chance: each by itself, or a given number, as every set is likely."""

import math
from collections import Counter
from itertools import combinations

import pytest
import torch

from regard.decoding.conditional_bernoulli import sample_keys, symmetric_sums

LOGITS = torch.tensor([-1.0, 0.5, -3.0, 1.2, 0.0])


def test_exactly_so_many_by_their_odds():
    draw, times = torch.Generator().manual_seed(1), 4000
    seen = Counter(
        tuple(sample_keys(LOGITS, draw, 2).nonzero()[:, 0].tolist()) for _ in range(times)
    )
    odds = LOGITS.double().exp().tolist()
    mass = {pair: math.prod(odds[k] for k in pair) for pair in combinations(range(5), 2)}
    for pair, one in mass.items():
        p = one / sum(mass.values())
        assert abs(seen[pair] / times - p) < 5 * math.sqrt(p * (1 - p) / times)


def test_each_by_itself():
    draw, times = torch.Generator().manual_seed(2), 2000
    seen = sum(sample_keys(LOGITS, draw).double() for _ in range(times)) / times
    assert (seen - LOGITS.double().sigmoid()).abs().max() < 5 * math.sqrt(0.25 / times)


def test_sums_are_those_of_all_sets():
    odds = [0.5, 2.0, 1.5, 0.1]
    table = symmetric_sums(odds, 3)
    for k in range(5):
        for m in range(4):
            want = sum(math.prod(some) for some in combinations(odds[k:], m))
            assert table[k][m] == pytest.approx(want)


def test_edges():
    draw = torch.Generator().manual_seed(3)
    assert not sample_keys(LOGITS, draw, 0).any()
    assert sample_keys(LOGITS, draw, 5).all()
    assert sample_keys(1000 * LOGITS, draw, 1).nonzero().tolist() == [[3]]
    with pytest.raises(ValueError, match="count must be from 0 to 5, the number of keys, not 6"):
        sample_keys(LOGITS, draw, 6)
