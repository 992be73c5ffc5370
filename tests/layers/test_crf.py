"""The conditional random field against an enumeration of all paths."""

from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.layers.crf import CRF


def random_crf(tags: int, seed: int, ruled: bool) -> tuple[CRF, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    rules = {}
    if ruled:  # everything is allowed for tag 0, so that at least one path is allowed
        allowed = torch.rand(tags, tags, generator=draw) < 0.6
        allowed[0], allowed[:, 0] = True, True
        begins, ends = (torch.rand(2, tags, generator=draw) < 0.6).unbind()
        begins[0] = ends[0] = True
        rules = {"allowed_transitions": allowed, "allowed_starts": begins, "allowed_ends": ends}
    crf = CRF(tags, **rules).double()
    for weight in crf.parameters():
        torch.nn.init.normal_(weight, generator=draw)
    return crf, torch.randn(3, 5, tags, generator=draw, dtype=torch.float64)


def all_scores(crf: CRF, energy: torch.Tensor) -> dict[tuple[int, ...], float]:
    """Return the scores of all allowed paths for one sentence."""
    first, between, last = (w.tolist() for w in (crf.first, crf.between, crf.last))
    may_begin, may, may_end = (w.tolist() for w in (crf.may_begin, crf.may, crf.may_end))
    emissions, scores = energy.tolist(), {}
    for path in product(range(crf.tags), repeat=len(emissions)):
        pairs = list(pairwise(path))
        if not (may_begin[path[0]] and may_end[path[-1]] and all(may[i][j] for i, j in pairs)):
            continue
        score = first[path[0]] + last[path[-1]] + sum(between[i][j] for i, j in pairs)
        scores[path] = score + sum(emissions[t][tag] for t, tag in enumerate(path))
    return scores


@settings(max_examples=60)
@given(tags=st.integers(1, 4), seed=st.integers(0, 10**6), ruled=st.booleans())
def test_against_all_paths(tags, seed, ruled):
    crf, energy = random_crf(tags, seed, ruled)
    lengths = [5, 3, 1]
    valid = torch.arange(5) < torch.tensor(lengths)[:, None]
    best, log_partition = crf.best_tags(energy, valid), crf.log_partition(energy, valid)
    for row, length in enumerate(lengths):
        scores = all_scores(crf, energy[row, :length])
        total = torch.tensor(list(scores.values()), dtype=torch.float64).logsumexp(0).item()
        assert log_partition[row].item() == pytest.approx(total, rel=1e-9)
        highest = max(scores, key=scores.__getitem__)
        assert best[row, :length].tolist() == list(highest)
        assert not best[row, length:].any()
        paths = list(scores)[:20]
        padded = torch.tensor([[*path, *[tags - 1] * (5 - length)] for path in paths])
        rows = [row] * len(paths)
        log_probs = crf(energy[rows], padded, valid[rows]).tolist()
        expected = [scores[path] - total for path in paths]
        assert log_probs == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_probabilities_sum_to_one():
    crf, energy = random_crf(3, 0, ruled=True)
    valid = torch.ones(3, 5, dtype=torch.bool)
    rows = torch.tensor(list(all_scores(crf, energy[0])))
    log_probs = crf(energy[:1].expand(len(rows), -1, -1), rows, valid[:1].expand(len(rows), -1))
    assert log_probs.exp().sum().item() == pytest.approx(1, rel=1e-9)


def test_gradients():
    crf, energy = random_crf(3, 1, ruled=True)
    valid = torch.arange(5) < torch.tensor([5, 2, 1])[:, None]
    tags = torch.zeros(3, 5, dtype=torch.long)
    energy.requires_grad_(True)
    assert torch.autograd.gradcheck(lambda e: crf(e, tags, valid), energy)


def test_forbidden_transitions_are_never_best():
    """Even if the energies favor them."""
    allowed = torch.tensor([[True, True], [True, False]])
    crf = CRF(2, allowed, allowed_starts=torch.tensor([True, False]))
    energy = torch.tensor([[[0.0, 1e6]] * 6])
    best = crf.best_tags(energy, torch.ones(1, 6, dtype=torch.bool))
    assert best.tolist() == [[0, 1, 0, 1, 0, 1]]


def test_a_row_without_words_has_log_prob_zero():
    crf, energy = random_crf(3, 2, ruled=False)
    valid = torch.zeros(3, 5, dtype=torch.bool)
    assert crf(energy, torch.zeros(3, 5, dtype=torch.long), valid).tolist() == [0.0] * 3


def test_constraints_of_another_shape():
    with pytest.raises(
        ValueError, match=r"constraints of 3 tags must have shape \(3, 3\), not \(2, 2\)"
    ):
        CRF(3, torch.ones(2, 2, dtype=torch.bool))


@pytest.mark.parametrize("ruled", [False, True])
def test_scores_of_any_size_against_all_paths(ruled):
    """A tag that was 2000 below the likeliest may still be part of the only likely path."""
    crf, energy = random_crf(3, 11, ruled)
    energy *= 1000
    energy[0, 1, 0], energy[0, 2, 0] = -3000.0, 4000.0
    with torch.no_grad():
        crf.between.mul_(100)
    energy.requires_grad_()
    log_partition = crf.log_partition(energy, torch.ones(3, 5, dtype=torch.bool))
    totals = [
        torch.tensor(list(all_scores(crf, row).values()), dtype=torch.float64).logsumexp(0).item()
        for row in energy
    ]
    assert log_partition.tolist() == pytest.approx(totals, rel=1e-9)
    (gradient,) = torch.autograd.grad(log_partition.sum(), energy)
    torch.testing.assert_close(gradient.sum(-1), torch.ones(3, 5, dtype=torch.float64))
