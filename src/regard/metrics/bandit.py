"""Returns in bandits: the mean return, the returns of simple policies, and the optimum.

    V(n, arms) = max over arms (s, f) of p (1 + V(n-1, arms with s+1)) + (1-p) V(n-1, with f+1)

where p = (s + 1) / (s + f + 2), n is the number of remaining pulls, and s and f count successes and
failures of an arm (Bellman 1956; Gittins 1979). No policy has a higher expected return.
"""

import math
from bisect import bisect
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from regard.data.synthetic.environments import Environments, EnvironmentSpec, Floats, Ints
from regard.errors import InputError

MAX_ARM_STATES = 300_000  # visited by `optimal_return`: some seconds
Policy = Callable[[EnvironmentSpec, Ints, Floats, np.random.Generator], Ints]


class MeanReturn(NamedTuple):
    """The mean of returns, and its standard error: their deviation / sqrt(their number)."""

    value: float
    standard_error: float


def mean_return(returns: Sequence[float] | Floats) -> MeanReturn:
    values = np.asarray(returns, np.float64)
    if values.size < 1:
        raise InputError("no returns; give at least one")
    deviation = float(values.std(ddof=1)) if values.size > 1 else math.inf
    return MeanReturn(float(values.mean()), deviation / math.sqrt(values.size))


def optimal_return(arms: int, steps: int) -> float | None:
    """Return the highest expected return of arms with p ~ U[0, 1]; None if it takes too long."""
    usable_arms = min(arms, steps)  # more arms than pulls bring no advantage
    if (
        math.comb(steps + 2 * usable_arms, 2 * usable_arms) / math.factorial(usable_arms)
        > MAX_ARM_STATES
    ):
        return None

    arm_records = [
        (paid, pulled - paid) for pulled in range(steps + 1) for paid in range(pulled + 1)
    ]
    record_index = {arm_record: index for index, arm_record in enumerate(arm_records)}
    success_probability = [(paid + 1) / (paid + not_paid + 2) for paid, not_paid in arm_records]
    after_success = [record_index.get((paid + 1, not_paid), 0) for paid, not_paid in arm_records]
    after_failure = [record_index.get((paid, not_paid + 1), 0) for paid, not_paid in arm_records]

    @cache
    def value(pulls_left: int, arms: tuple[int, ...]) -> float:
        """Return V; `arms` are sorted records of pulled arms, as their order does not matter."""
        if not pulls_left:
            return 0.0
        best = 0.0
        for position in range(len(arms) + (len(arms) < usable_arms)):
            if 0 < position < len(arms) and arms[position] == arms[position - 1]:
                continue
            arm = arms[position] if position < len(arms) else 0
            others, p = arms[:position] + arms[position + 1 :], success_probability[arm]
            success_position, failure_position = (
                bisect(others, after_success[arm]),
                bisect(others, after_failure[arm]),
            )
            value_after_success = value(
                pulls_left - 1,
                (*others[:success_position], after_success[arm], *others[success_position:]),
            )
            value_after_failure = value(
                pulls_left - 1,
                (*others[:failure_position], after_failure[arm], *others[failure_position:]),
            )
            best = max(best, p * (1 + value_after_success) + (1 - p) * value_after_failure)
        return best

    return value(steps, ())


def policy_returns(policy: Policy, environments: Environments, seed: int = 0) -> Floats:
    """Return the return of a policy in each environment; it sees the outcome counts of all arms."""
    rng = np.random.default_rng(seed)
    rows = np.arange(len(environments))
    states, outcome_counts = (
        np.zeros(len(environments), np.int64),
        np.zeros((len(environments), environments.spec.actions, 2)),
    )
    returns = np.zeros(len(environments))
    for step in range(environments.spec.steps):
        actions = policy(environments.spec, states, outcome_counts, rng)
        rewards, states = environments.act(step, states, actions)
        outcome_counts[rows, actions, 0] += rewards
        outcome_counts[rows, actions, 1] += 1 - rewards
        returns += rewards
    return returns


def random_policy(
    form: EnvironmentSpec,
    states: Ints,
    outcome_counts: Floats,  # noqa: ARG001 - all policies have one signature
    rng: np.random.Generator,
) -> Ints:
    return rng.integers(form.actions, size=len(states))


def greedy_policy(
    form: EnvironmentSpec,  # noqa: ARG001
    states: Ints,  # noqa: ARG001
    outcome_counts: Floats,
    rng: np.random.Generator,  # noqa: ARG001
) -> Ints:
    """Choose the arm with the highest posterior mean under a prior of U[0, 1]; never explore."""
    successes, failures = outcome_counts[..., 0], outcome_counts[..., 1]
    return ((successes + 1) / (successes + failures + 2)).argmax(-1)


def thompson_policy(
    form: EnvironmentSpec,  # noqa: ARG001
    states: Ints,  # noqa: ARG001
    outcome_counts: Floats,
    rng: np.random.Generator,
) -> Ints:
    """Choose the arm with the highest sample from its posterior (Thompson 1933)."""
    return rng.beta(outcome_counts[..., 0] + 1, outcome_counts[..., 1] + 1).argmax(-1)
