"""The conditional random field against all rows of tags, written out."""

from itertools import pairwise, product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.layers.crf import CRF


def made(tags: int, seed: int, ruled: bool) -> tuple[CRF, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    rules = {}
    if ruled:  # tag 0 may do anything, so that some row is always allowed
        allowed = torch.rand(tags, tags, generator=draw) < 0.6
        allowed[0], allowed[:, 0] = True, True
        begins, ends = (torch.rand(2, tags, generator=draw) < 0.6).unbind()
        begins[0] = ends[0] = True
        rules = {"allowed_transitions": allowed, "allowed_starts": begins, "allowed_ends": ends}
    crf = CRF(tags, **rules).double()
    for weight in crf.parameters():
        torch.nn.init.normal_(weight, generator=draw)
    return crf, torch.randn(3, 5, tags, generator=draw, dtype=torch.float64)


def every_row(crf: CRF, energy: torch.Tensor) -> dict[tuple[int, ...], float]:
    """Scores of all allowed rows of tags for one sentence, straight from the equation."""
    found = {}
    for row in product(range(crf.tags), repeat=len(energy)):
        pairs = list(pairwise(row))
        if not (crf.may_begin[row[0]] and crf.may_end[row[-1]]):
            continue
        if not all(crf.may[pair] for pair in pairs):
            continue
        score = crf.first[row[0]] + crf.last[row[-1]]
        score = score + sum(energy[t, tag] for t, tag in enumerate(row))
        found[row] = (score + sum(crf.between[pair] for pair in pairs)).item()
    return found


@given(tags=st.integers(1, 4), seed=st.integers(0, 10**6), ruled=st.booleans())
def test_against_all_rows(tags, seed, ruled):
    crf, energy = made(tags, seed, ruled)
    lengths = [5, 3, 1]
    valid = torch.arange(5) < torch.tensor(lengths)[:, None]
    best = crf.best_tags(energy, valid)
    for row, length in enumerate(lengths):
        rows = every_row(crf, energy[row, :length])
        total = torch.tensor(list(rows.values()), dtype=torch.float64).logsumexp(0).item()
        assert crf.log_partition(energy, valid)[row].item() == pytest.approx(total, rel=1e-9)
        highest = max(rows, key=rows.__getitem__)
        assert best[row, :length].tolist() == list(highest)
        assert not best[row, length:].any()
        for tags_of, score in list(rows.items())[:20]:
            given_tags = torch.tensor([[*tags_of, *[tags - 1] * (5 - length)]]).expand(3, -1)
            found = crf(energy, given_tags, valid)[row].item()
            assert found == pytest.approx(score - total, rel=1e-9, abs=1e-9)


def test_probabilities_sum_to_one():
    crf, energy = made(3, 0, ruled=True)
    valid = torch.ones(3, 5, dtype=torch.bool)
    rows = torch.tensor(list(every_row(crf, energy[0])))
    shares = crf(energy[:1].expand(len(rows), -1, -1), rows, valid[:1].expand(len(rows), -1))
    assert shares.exp().sum().item() == pytest.approx(1, rel=1e-9)


def test_gradients():
    crf, energy = made(3, 1, ruled=True)
    valid = torch.arange(5) < torch.tensor([5, 2, 1])[:, None]
    tags = torch.zeros(3, 5, dtype=torch.long)
    energy.requires_grad_(True)
    assert torch.autograd.gradcheck(lambda e: crf(e, tags, valid), energy)


def test_what_is_not_allowed_is_never_best():
    """However much the energies want it."""
    allowed = torch.tensor([[True, True], [True, False]])
    crf = CRF(2, allowed, allowed_starts=torch.tensor([True, False]))
    energy = torch.tensor([[[0.0, 1e6]] * 6])
    best = crf.best_tags(energy, torch.ones(1, 6, dtype=torch.bool))
    assert best.tolist() == [[0, 1, 0, 1, 0, 1]]


def test_a_row_without_words_says_nothing():
    crf, energy = made(3, 2, ruled=False)
    valid = torch.zeros(3, 5, dtype=torch.bool)
    assert crf(energy, torch.zeros(3, 5, dtype=torch.long), valid).tolist() == [0.0] * 3


def test_rules_of_another_shape():
    with pytest.raises(ValueError, match=r"constraints of 3 tags must have shape \(3, 3\), not \(2, 2\)"):
        CRF(3, torch.ones(2, 2, dtype=torch.bool))
