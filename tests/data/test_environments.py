"""Worlds: what they are drawn from, what an action does, and how a life is written."""

import numpy as np
import pytest

from regard.data.synthetic.environments import Bandits, BanditSpec, Environments, Mdps, MdpSpec


def test_a_bandit_s_arms_pay_as_often_as_they_say():
    form = BanditSpec(3, 4000)
    worlds = form.sample(np.random.default_rng(1), 2)
    for arm in range(3):
        pulled = np.full(2, arm)
        paid = [worlds.act(t, np.zeros(2, np.int64), pulled)[0] for t in range(4000)]
        assert set(np.unique(paid)) <= {0.0, 1.0}
        np.testing.assert_allclose(np.mean(paid, 0), worlds.mean_rewards[:, 0, arm], atol=0.035)


def test_arms_are_uniform():
    means = BanditSpec(5, 1).sample(np.random.default_rng(2), 4000).mean_rewards.ravel()
    assert 0 <= means.min() <= means.max() <= 1
    np.testing.assert_allclose(np.quantile(means, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.02)


def test_an_mdp_leads_where_it_says():
    form = MdpSpec(3, 2, horizon=3000, episodes=1)
    worlds = form.sample(np.random.default_rng(3), 1)
    shares = np.diff(worlds.cumulative_transitions, axis=-1, prepend=0.0)
    np.testing.assert_allclose(shares.sum(-1), 1)
    assert shares.min() >= 0
    state, action = np.array([2]), np.array([1])
    found = [worlds.act(t, state, action) for t in range(2999)]
    led = np.bincount([int(after[0]) for _, after in found], minlength=3) / 2999
    np.testing.assert_allclose(led, shares[0, 2, 1], atol=0.035)
    paid = np.array([one[0] for one, _ in found])
    assert paid.mean() == pytest.approx(worlds.mean_rewards[0, 2, 1], abs=0.08)
    assert paid.std() == pytest.approx(1, abs=0.06)


def test_episodes_begin_in_the_first_state():
    form = MdpSpec(4, 2, horizon=3, episodes=2)
    assert form.steps == 6
    worlds = form.sample(np.random.default_rng(4), 200)
    states = np.zeros(200, np.int64)
    for step in range(6):
        _, states = worlds.act(step, states, np.ones(200, np.int64))
        assert (states == 0).all() == (step in (2, 5))


def test_what_is_known_is_the_best_by_trying_all():
    """Value iteration against a walk through every plan, in a small world."""
    form = MdpSpec(2, 2, horizon=3, episodes=2)
    worlds = form.sample(np.random.default_rng(5), 3)
    shares = np.diff(worlds.cumulative_transitions, axis=-1, prepend=0.0)

    def best(world, state, left):
        if not left:
            return 0.0
        return max(
            worlds.mean_rewards[world, state, a]
            + sum(shares[world, state, a, s] * best(world, s, left - 1) for s in range(2))
            for a in range(2)
        )

    wanted = [2 * best(world, 0, 3) for world in range(3)]
    np.testing.assert_allclose(worlds.optimal_returns(), wanted)
    arms = BanditSpec(4, 7).sample(np.random.default_rng(5), 3)
    np.testing.assert_allclose(arms.optimal_returns(), 7 * arms.mean_rewards[:, 0].max(-1))


@pytest.mark.parametrize("corpus", [Bandits(3, 4, held_out=5), Mdps(2, 3, held_out=5)])
def test_a_world_is_always_the_same(corpus):
    one, other = (list(corpus.read("test")) for _ in range(2))
    assert len(one) == 5
    for left, right in zip(one, other, strict=True):
        assert all(np.array_equal(left[name], right[name]) for name in left)
    assert not np.array_equal(one[0]["mean_rewards"], next(corpus.read("dev"))["mean_rewards"])
    assert not np.array_equal(one[0]["noise"], one[1]["noise"])
    assert len(Environments.from_records(corpus.spec, one)) == 5
    with pytest.raises(ValueError, match="split must be one of dev, test, not 'train'"):
        next(corpus.read("train"))
    assert "made here" in corpus.describe()


def test_a_life_is_read():
    form = BanditSpec(3, 4)
    assert form.parse_history("1:1 3:0", "here") == ([0, 2], [1.0, 0.0], [0, 0, 0])
    assert form.parse_history("", "here") == ([], [], [0])
    form = MdpSpec(3, 2, horizon=2, episodes=2)
    assert form.parse_history("", "here") == ([], [], [0])
    assert form.parse_history("1 2:-0.5 3 1:2 1", "here") == ([1, 0], [-0.5, 2.0], [0, 2, 0])


@pytest.mark.parametrize(
    ("form", "text", "why"),
    [
        (BanditSpec(3, 4), "4:1", "here: '4:1' is not an action from 1 to 3 and what it paid"),
        (BanditSpec(3, 4), "0:1", "is not an action from 1 to 3"),
        (BanditSpec(3, 4), "1", "'1' is not an action from 1 to 3 and what it paid, as 2:1"),
        (BanditSpec(3, 4), "1:0.5", "here: '1:0.5': an arm pays 0 or 1, not '0.5'"),
        (BanditSpec(3, 4), "1:1 " * 4, "here: 4 actions, but 4 are a whole life; give at most 3"),
        (MdpSpec(3, 2, 2, 2), "1 2:1", "here: it must end with the state one is in"),
        (MdpSpec(3, 2, 2, 2), "1 2:1 4", "here: '4' is not a state from 1 to 3; write it as"),
        (MdpSpec(3, 2, 2, 2), "2", "step 1 begins an episode, which is in state 1, not 2"),
        (MdpSpec(3, 2, 2, 2), "1 1:0 2 1:0 3", "step 3 begins an episode, which is in state 1"),
        (MdpSpec(3, 2, 2, 2), "1 2:nan 1", "an action pays a number, not 'nan'"),
        (MdpSpec(3, 2, 2, 2), "1 2:x 1", "an action pays a number, not 'x'"),
    ],
)
def test_what_is_no_life(form, text, why):
    with pytest.raises(ValueError) as error:
        form.parse_history(text, "here")
    assert why in str(error.value)


def test_sizes_that_are_none():
    with pytest.raises(ValueError, match="arms must be at least 2, not 1: there is nothing to ch"):
        Bandits(1, 4)
    with pytest.raises(ValueError, match="states must be at least 2, not 1"):
        Mdps(1, 4)
