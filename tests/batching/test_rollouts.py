"""Rounds: every episode once a pass, played anew after the last, and taken up anywhere."""

from itertools import chain

import pytest
import torch

from regard.batching.rollouts import RolloutBatches


def numbers(episodes=7):
    """Episodes are numbered through, round by round."""
    return lambda number: {"a": torch.arange(episodes) + 100 * number}


def test_every_episode_is_there_once_in_a_pass():
    source = RolloutBatches(numbers(), episodes_per_batch=3, passes=2)
    seen = [next(source)["a"].tolist() for _ in range(6)]
    assert [len(one) for one in seen] == [3, 3, 1] * 2
    first, second = [*chain(*seen[:3])], [*chain(*seen[3:])]
    assert sorted(first) == sorted(second) == list(range(7))
    assert first != second
    assert source.epoch == 0
    later = chain.from_iterable(next(source)["a"].tolist() for _ in range(3))
    assert sorted(later) == list(range(100, 107))
    assert source.epoch == 1


@pytest.mark.parametrize("done", [0, 1, 4, 6, 7, 9])
def test_it_goes_on_exactly(done):
    source = RolloutBatches(numbers(), episodes_per_batch=3, passes=2)
    for _ in range(done):
        next(source)
    facts, carried, chance = source.state_dict(), dict(source.carried), torch.get_rng_state()
    wanted = [next(source)["a"].tolist() for _ in range(9)]
    other = RolloutBatches(numbers(), episodes_per_batch=3, passes=2)
    other.load_state_dict(facts)
    other.carried = carried
    torch.set_rng_state(chance)
    assert [next(other)["a"].tolist() for _ in range(9)] == wanted


def test_bad_sizes():
    with pytest.raises(ValueError, match="episodes_per_batch must be positive, not 0"):
        RolloutBatches(numbers(), episodes_per_batch=0, passes=1)
    with pytest.raises(ValueError, match="passes must be positive, not 0"):
        RolloutBatches(numbers(), episodes_per_batch=1, passes=0)
