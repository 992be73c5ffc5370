"""Windows on a long text: nothing is wanted twice, nothing is left out, any place can be kept."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.batching.text_windows import (
    ContiguousWindows,
    RandomWindows,
    all_windows,
    lane_windows,
    overlapping_windows,
)

sizes = st.integers(1, 6)


def text(length: int) -> torch.Tensor:
    return torch.arange(length, dtype=torch.int32)


def wanted(windows) -> list[int]:
    return sorted(int(n) for one in windows for n in one.targets[one.valid])


@given(st.integers(2, 60), sizes, sizes)
def test_every_token_but_the_first_is_wanted_once(length, rows, context):
    for windows in (
        list(all_windows(text(length), rows=rows, context=context)),
        list(lane_windows(text(length), rows=min(rows, length - 1), context=context)),
    ):
        assert wanted(windows) == list(range(1, length))
        for one in windows:
            assert (one.targets == one.inputs + 1)[one.valid].all()
            assert one.inputs.shape[1] <= context


@given(st.integers(2, 40), st.integers(1, 4), st.integers(1, 9), st.integers(1, 9))
def test_overlapping_windows_count_every_token_once(length, rows, context, stride):
    windows = overlapping_windows(
        text(length), rows=rows, context=context, stride=min(stride, context)
    )
    assert wanted(windows) == list(range(1, length))


def test_lanes_go_on_where_they_ended():
    lanes = ContiguousWindows(text(11), rows=2, context=3)
    seen = [next(lanes) for _ in range(3)]
    assert [one.inputs.tolist() for one in seen] == [
        [[0, 1, 2], [5, 6, 7]],
        [[3, 4], [8, 9]],
        [[0, 1, 2], [5, 6, 7]],
    ]
    assert [one.is_start for one in seen] == [True, False, True]
    assert lanes.epoch == 1


@pytest.mark.parametrize("made", [ContiguousWindows, RandomWindows])
def test_a_kept_place_is_found_again(made):
    one, other = (made(text(40), rows=3, context=4) for _ in range(2))
    for _ in range(5):
        next(one)
    other.load_state_dict(one.state_dict())
    assert other.epoch == one.epoch
    for _ in range(7):
        assert torch.equal(next(one).targets, next(other).targets)


def test_crops_are_anywhere_and_their_seed_says_where():
    crops = RandomWindows(text(50), rows=4, context=5, seed=3)
    starts = torch.cat([next(crops).inputs[:, 0] for _ in range(300)])
    assert set(starts.tolist()) == set(range(45))  # 0 ... 44: the last wanted token is 49
    again, other = (RandomWindows(text(50), rows=4, context=5, seed=s) for s in (3, 4))
    first = next(RandomWindows(text(50), rows=4, context=5, seed=3)).inputs
    assert torch.equal(next(again).inputs, first)
    assert not torch.equal(next(other).inputs, first)
    assert crops.epoch == 300 * 4 * 5 // 50


def test_too_short():
    with pytest.raises(ValueError, match="the text has 5 tokens, too few for 2 rows and windows o"):
        RandomWindows(text(5), rows=2, context=5)
    with pytest.raises(ValueError, match="rows must be positive, not 0"):
        ContiguousWindows(text(5), rows=0, context=5)
