"""The fast way to the best of a row, beside a stable sort."""

from contextlib import contextmanager

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.decoding import topk as top
from regard.decoding.topk import PIECE_SIZE, fast_argmax, topk_candidates
from regard.kernels import compiled

SIZES = [
    1,
    5,
    PIECE_SIZE,
    2 * PIECE_SIZE,
    2 * PIECE_SIZE + 1,
    10 * PIECE_SIZE + 7,
    41 * PIECE_SIZE - 1,
    41 * PIECE_SIZE,
]
KERNELS = None  # instead of a limit: the kernels in C++, if regard has them
small = st.sampled_from([0, top.MAX_NUMBERS_FOR_DIRECT_TOPK, KERNELS])


@contextmanager
def worth_cutting(numbers: int | None):
    """Rows are cut into pieces when there are more numbers than this."""
    if numbers is KERNELS:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "native", None)
        patch.setattr(top, "MAX_NUMBERS_FOR_DIRECT_TOPK", numbers)
        patch.setattr(top, "MIN_PIECES_PER_RESULT", 2)
        yield


def numbers(seed: int, shape: tuple[int, ...], distinct: int) -> torch.Tensor:
    """Few distinct numbers make many ties; some are -inf."""
    chance = torch.Generator().manual_seed(seed)
    drawn = torch.randint(-distinct, 0, shape, generator=chance).float() / 8
    return drawn.masked_fill(torch.rand(shape, generator=chance) < 0.1, -torch.inf)


@given(st.integers(0, 2**31), st.sampled_from(SIZES), st.sampled_from([1, 3, 1000]), small)
def test_first_is_argmax(seed, size, distinct, limit):
    rows = numbers(seed, (3, size), distinct)
    with worth_cutting(limit):
        assert torch.equal(fast_argmax(rows), rows.argmax(1))


@given(
    st.integers(0, 2**31),
    st.sampled_from(SIZES),
    st.integers(1, 4),
    st.integers(1, 12),
    st.sampled_from([1, 3, 50, 10**6]),
    small,
)
def test_best_is_a_stable_sort(seed, size, beams, wanted, distinct, limit):
    log_probs = numbers(seed, (2 * beams, size), distinct)
    scores = numbers(seed + 1, (2, beams), 4).double()
    sums = (log_probs.view(2, beams, size) + scores[..., None]).flatten(1)
    expected, flat = sums.sort(dim=1, descending=True, stable=True)
    with worth_cutting(limit):
        values, parents, ids = topk_candidates(log_probs, scores, wanted)
    count = min(wanted, beams * size)
    assert torch.equal(values, expected[:, :count])
    real = values > -torch.inf  # empty places may come from anywhere
    assert torch.equal((parents * size + ids)[real], flat[:, :count][real])
    assert parents.max() < beams
    assert ids.max() < size


@pytest.mark.parametrize("size", [40, 5000])
def test_nan_comes_first(size):
    """So that a search sees it."""
    log_probs = torch.full((2, size), -1.0)
    log_probs[1, size - 2] = torch.nan
    for limit in (0, top.MAX_NUMBERS_FOR_DIRECT_TOPK, KERNELS):
        with worth_cutting(limit):
            values, _, _ = topk_candidates(log_probs, torch.zeros(1, 2).double(), 3)
            assert values[0, 0].isnan()
            assert fast_argmax(log_probs).tolist() == [0, size - 2]


def test_sums_are_in_float64():
    log_probs = torch.tensor([[-1e-9, -2e-9]])
    values, _, ids = topk_candidates(log_probs, torch.tensor([[-1000.0]]).double(), 2)
    assert values[0, 0] > values[0, 1]
    assert ids.tolist() == [[0, 1]]


@pytest.mark.parametrize("limit", [0, KERNELS])
def test_the_last_column_counts_once(limit):
    """The last piece is shorter than the others, and is read as if it were not."""
    log_probs = -torch.rand(4, 41 * PIECE_SIZE - 1) - 1
    log_probs[:, -1] = -0.5
    with worth_cutting(limit):
        values, parents, ids = topk_candidates(log_probs, torch.zeros(2, 2).double(), 4)
        assert fast_argmax(log_probs).tolist() == [41 * PIECE_SIZE - 2] * 4
    assert parents[:, :2].tolist() == [[0, 1]] * 2
    assert ids[:, :2].tolist() == [[41 * PIECE_SIZE - 2] * 2] * 2
    assert (values[:, 2:] < -1).all()
