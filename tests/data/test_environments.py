"""Tests of environments: their distributions, actions, optimal returns and text format."""

import numpy as np
import pytest

from regard.data.synthetic.environments import Bandits, BanditSpec, Environments, Mdps, MdpSpec


def test_arms_pay_with_their_probability():
    spec = BanditSpec(3, 4000)
    environments = spec.sample(np.random.default_rng(1), 2)
    for arm in range(3):
        arms = np.full(2, arm)
        rewards = [environments.act(t, np.zeros(2, np.int64), arms)[0] for t in range(4000)]
        assert set(np.unique(rewards)) <= {0.0, 1.0}
        np.testing.assert_allclose(
            np.mean(rewards, 0), environments.mean_rewards[:, 0, arm], atol=0.035
        )


def test_arm_probabilities_are_uniform():
    means = BanditSpec(5, 1).sample(np.random.default_rng(2), 4000).mean_rewards.ravel()
    assert 0 <= means.min() <= means.max() <= 1
    np.testing.assert_allclose(np.quantile(means, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.02)


def test_mdp_transitions_and_rewards_follow_their_distributions():
    spec = MdpSpec(3, 2, horizon=3000, episodes=1)
    environments = spec.sample(np.random.default_rng(3), 1)
    transitions = np.diff(environments.cumulative_transitions, axis=-1, prepend=0.0)
    np.testing.assert_allclose(transitions.sum(-1), 1)
    assert transitions.min() >= 0
    state, action = np.array([2]), np.array([1])
    outcomes = [environments.act(t, state, action) for t in range(2999)]
    frequencies = (
        np.bincount([int(next_state[0]) for _, next_state in outcomes], minlength=3) / 2999
    )
    np.testing.assert_allclose(frequencies, transitions[0, 2, 1], atol=0.035)
    rewards = np.array([reward[0] for reward, _ in outcomes])
    assert rewards.mean() == pytest.approx(environments.mean_rewards[0, 2, 1], abs=0.08)
    assert rewards.std() == pytest.approx(1, abs=0.06)


def test_episodes_begin_in_the_first_state():
    spec = MdpSpec(4, 2, horizon=3, episodes=2)
    assert spec.steps == 6
    environments = spec.sample(np.random.default_rng(4), 200)
    states = np.zeros(200, np.int64)
    for step in range(6):
        _, states = environments.act(step, states, np.ones(200, np.int64))
        assert (states == 0).all() == (step in (2, 5))


def test_optimal_returns_match_brute_force():
    """Compare value iteration with a recursion over all actions, in small MDPs."""
    spec = MdpSpec(2, 2, horizon=3, episodes=2)
    environments = spec.sample(np.random.default_rng(5), 3)
    transitions = np.diff(environments.cumulative_transitions, axis=-1, prepend=0.0)

    def best_return(environment, state, steps_left):
        if not steps_left:
            return 0.0
        return max(
            environments.mean_rewards[environment, state, a]
            + sum(
                transitions[environment, state, a, s] * best_return(environment, s, steps_left - 1)
                for s in range(2)
            )
            for a in range(2)
        )

    expected = [2 * best_return(environment, 0, 3) for environment in range(3)]
    np.testing.assert_allclose(environments.optimal_returns(), expected)
    bandits = BanditSpec(4, 7).sample(np.random.default_rng(5), 3)
    np.testing.assert_allclose(bandits.optimal_returns(), 7 * bandits.mean_rewards[:, 0].max(-1))


@pytest.mark.parametrize("corpus", [Bandits(3, 4, held_out=5), Mdps(2, 3, held_out=5)])
def test_records_are_reproducible(corpus):
    records, repeated = (list(corpus.read("test")) for _ in range(2))
    assert len(records) == 5
    for first, second in zip(records, repeated, strict=True):
        assert all(np.array_equal(first[name], second[name]) for name in first)
    assert not np.array_equal(records[0]["mean_rewards"], next(corpus.read("dev"))["mean_rewards"])
    assert not np.array_equal(records[0]["noise"], records[1]["noise"])
    assert len(Environments.from_records(corpus.spec, records)) == 5
    with pytest.raises(ValueError, match="split must be one of dev, test, not 'train'"):
        next(corpus.read("train"))
    assert "synthetic" in corpus.describe()


def test_parse_history():
    spec = BanditSpec(3, 4)
    assert spec.parse_history("1:1 3:0", "here") == ([0, 2], [1.0, 0.0], [0, 0, 0])
    assert spec.parse_history("", "here") == ([], [], [0])
    spec = MdpSpec(3, 2, horizon=2, episodes=2)
    assert spec.parse_history("", "here") == ([], [], [0])
    assert spec.parse_history("1 2:-0.5 3 1:2 1", "here") == ([1, 0], [-0.5, 2.0], [0, 2, 0])


@pytest.mark.parametrize(
    ("spec", "text", "message"),
    [
        (BanditSpec(3, 4), "4:1", "here: '4:1' is not an action from 1 to 3 and its reward"),
        (BanditSpec(3, 4), "0:1", "is not an action from 1 to 3"),
        (BanditSpec(3, 4), "1", "'1' is not an action from 1 to 3 and its reward, as 2:1"),
        (BanditSpec(3, 4), "1:0.5", "here: '1:0.5': the reward of an arm must be 0 or 1"),
        (
            BanditSpec(3, 4),
            "1:1 " * 4,
            "4 actions, but an environment ends after 4; give at most 3",
        ),
        (MdpSpec(3, 2, 2, 2), "1 2:1", "here: no current state at the end"),
        (MdpSpec(3, 2, 2, 2), "1 2:1 4", "here: '4' is not a state from 1 to 3; write it as"),
        (MdpSpec(3, 2, 2, 2), "2", "step 1 begins an episode, so its state must be 1, not 2"),
        (MdpSpec(3, 2, 2, 2), "1 1:0 2 1:0 3", "step 3 begins an episode, so its state must be 1"),
        (MdpSpec(3, 2, 2, 2), "1 2:nan 1", "a reward must be a finite number, not 'nan'"),
        (MdpSpec(3, 2, 2, 2), "1 2:x 1", "a reward must be a finite number, not 'x'"),
    ],
)
def test_bad_histories(spec, text, message):
    with pytest.raises(ValueError) as error:
        spec.parse_history(text, "here")
    assert message in str(error.value)


def test_bad_sizes():
    with pytest.raises(ValueError, match="arms must be at least 2, not 1"):
        Bandits(1, 4)
    with pytest.raises(ValueError, match="states must be at least 2, not 1"):
        Mdps(1, 4)
