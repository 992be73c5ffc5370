"""Tests of returns: the optimum, simple policies against theory, and standard errors."""

import math
from itertools import product

import numpy as np
import pytest

from regard.data.synthetic.environments import BanditSpec, MdpSpec
from regard.metrics.bandit import (
    greedy_policy,
    mean_return,
    optimal_return,
    policy_returns,
    random_policy,
    thompson_policy,
)


@pytest.mark.parametrize(
    ("arms", "steps", "expected"),
    [(5, 10, 6.6600), (10, 10, 6.7140), (50, 10, 6.7140), (3, 15, 9.9125)],
)
def test_known_optimal_returns(arms, steps, expected):
    assert optimal_return(arms, steps) == pytest.approx(expected, abs=5e-5)


def expected_return(arms, steps, choose):
    """Return the expected return of a policy by enumeration of all outcomes."""
    total = 0.0
    for paid in product((0, 1), repeat=steps):
        tried, chance = [[0, 0] for _ in range(arms)], 1.0
        for reward in paid:
            arm = choose(tried, steps - sum(map(sum, tried)))
            won, lost = tried[arm]
            p = (won + 1) / (won + lost + 2)
            chance *= p if reward else 1 - p
            tried[arm][1 - reward] += 1
        total += chance * sum(paid)
    return total


def test_optimal_returns_of_two_arms():
    """Two pulls: stay with the first arm if it paid, else try the other."""
    assert optimal_return(2, 1) == pytest.approx(1 / 2)
    assert optimal_return(2, 2) == pytest.approx(1 / 2 + 1 / 2 * 2 / 3 + 1 / 2 * 1 / 2)
    assert optimal_return(1, 4) == pytest.approx(2)  # one arm leaves no choice
    assert optimal_return(50, 500) is None


def choose_best_mean(tried, pulls_left):
    means = [(won + 1) / (won + lost + 2) for won, lost in tried]
    return means.index(max(means))


def test_greedy_return_matches_enumeration():
    arms, steps = 3, 6
    expected = expected_return(arms, steps, choose_best_mean)
    environments = BanditSpec(arms, steps).sample(np.random.default_rng(1), 20_000)
    value, error = mean_return(policy_returns(greedy_policy, environments))
    assert abs(value - expected) < 4 * error
    most = optimal_return(arms, steps)
    assert most is not None
    assert steps / 2 < expected < most


def test_order_of_policies():
    environments = BanditSpec(5, 10).sample(np.random.default_rng(2), 10_000)
    chance, guesses, means = (
        mean_return(policy_returns(one, environments))
        for one in (random_policy, thompson_policy, greedy_policy)
    )
    assert abs(chance.value - 5.0) < 4 * chance.standard_error
    assert abs(guesses.value - 5.85) < 0.08
    assert guesses.value < means.value < 6.66 + 4 * means.standard_error


def test_random_policy_in_an_mdp():
    environments = MdpSpec(3, 2, horizon=5, episodes=2).sample(np.random.default_rng(3), 4000)
    value, error = mean_return(policy_returns(random_policy, environments))
    assert abs(value - 10) < 4 * error
    assert environments.optimal_returns().mean() > value


def test_standard_error():
    result = mean_return([1.0, 2.0, 3.0, 4.0])
    assert result.value == 2.5
    assert result.standard_error == pytest.approx(math.sqrt(5 / 3) / 2)
    assert mean_return([1.0]).standard_error == math.inf
    with pytest.raises(ValueError, match="no returns; give at least one"):
        mean_return([])
