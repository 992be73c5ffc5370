"""The most there is, by another way; simple players by theory; a mean with its error."""

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
    ("arms", "steps", "wanted"),
    [(5, 10, 6.6600), (10, 10, 6.7140), (50, 10, 6.7140), (5, 20, 14.2873)],
)
def test_the_most_there_is(arms, steps, wanted):
    assert optimal_return(arms, steps) == pytest.approx(wanted, abs=5e-5)


def expected(arms, steps, choose):
    """By going through every history of which arm paid: what a player gets who has a rule."""
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


def test_two_arms_by_hand():
    """Three pulls: try one; if it paid, stay; else go to the other, and stay if that pays."""
    assert optimal_return(2, 1) == pytest.approx(1 / 2)
    assert optimal_return(2, 2) == pytest.approx(1 / 2 + 1 / 2 * 2 / 3 + 1 / 2 * 1 / 2)
    assert optimal_return(1, 4) == pytest.approx(2)  # nothing can be chosen
    assert optimal_return(50, 500) is None


def by_mean(tried, left):
    means = [(won + 1) / (won + lost + 2) for won, lost in tried]
    return means.index(max(means))


def test_greedy_gets_what_theory_says():
    arms, steps = 3, 6
    wanted = expected(arms, steps, by_mean)
    worlds = BanditSpec(arms, steps).sample(np.random.default_rng(1), 20_000)
    value, error = mean_return(policy_returns(greedy_policy, worlds))
    assert abs(value - wanted) < 4 * error
    most = optimal_return(arms, steps)
    assert most is not None
    assert steps / 2 < wanted < most


def test_players_stand_in_this_order():
    worlds = BanditSpec(5, 10).sample(np.random.default_rng(2), 10_000)
    chance, guesses, means = (
        mean_return(policy_returns(one, worlds))
        for one in (random_policy, thompson_policy, greedy_policy)
    )
    assert abs(chance.value - 5.0) < 4 * chance.standard_error
    assert abs(guesses.value - 5.85) < 0.08
    assert guesses.value < means.value < 6.66 + 4 * means.standard_error


def test_chance_in_an_mdp_gets_one_a_step():
    worlds = MdpSpec(3, 2, horizon=5, episodes=2).sample(np.random.default_rng(3), 4000)
    value, error = mean_return(policy_returns(random_policy, worlds))
    assert abs(value - 10) < 4 * error
    assert worlds.optimal_returns().mean() > value


def test_a_mean_has_an_error():
    found = mean_return([1.0, 2.0, 3.0, 4.0])
    assert found.value == 2.5
    assert found.standard_error == pytest.approx(math.sqrt(5 / 3) / 2)
    assert mean_return([1.0]).standard_error == math.inf
    with pytest.raises(ValueError, match="returns must be 1 or more, not 0"):
        mean_return([])
