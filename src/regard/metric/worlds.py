"""What an episode brings: the mean return, what simple players get, and the most there is.

    V(n, arms) = max over arms (s, f) of p (1 + V(n-1, arms with s+1)) + (1-p) V(n-1, with f+1)

where p = (s + 1) / (s + f + 2): of n pulls that are left, when each arm has paid s times and not
paid f times (Bellman 1956; Gittins 1979). No player of any kind gets more in the mean.
"""

import math
from bisect import bisect
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from regard.corpora.worlds import Floats, Form, Ints, Worlds

MOST = 300_000  # states of arms that are gone through: some seconds
Player = Callable[[Form, Ints, Floats, np.random.Generator], Ints]


class Mean(NamedTuple):
    value: float
    error: float  # of the mean: the deviation of one, over the root of their number


def mean_return(returns: Sequence[float] | Floats) -> Mean:
    """Of whole lives, and how sure it is."""
    held = np.asarray(returns, np.float64)
    if held.size < 1:
        raise ValueError("returns must be 1 or more, not 0: there is nothing to average over")
    spread = float(held.std(ddof=1)) if held.size > 1 else math.inf
    return Mean(float(held.mean()), spread / math.sqrt(held.size))


def optimal(arms: int, steps: int) -> float | None:
    """The most that any player can get of arms with p ~ U[0, 1]; None if it takes too long."""
    used = min(arms, steps)  # more arms than pulls are as good as that many
    if math.comb(steps + 2 * used, 2 * used) / math.factorial(used) > MOST:
        return None

    kinds = [(paid, pulled - paid) for pulled in range(steps + 1) for paid in range(pulled + 1)]
    number = {kind: place for place, kind in enumerate(kinds)}
    chance = [(paid + 1) / (paid + not_paid + 2) for paid, not_paid in kinds]
    more = [number.get((paid + 1, not_paid), 0) for paid, not_paid in kinds]
    less = [number.get((paid, not_paid + 1), 0) for paid, not_paid in kinds]

    @cache
    def value(left: int, tried: tuple[int, ...]) -> float:
        """`tried` are kinds of arms, in order: which arm is which does not matter."""
        if not left:
            return 0.0
        best = 0.0
        for place in range(len(tried) + (len(tried) < used)):
            if 0 < place < len(tried) and tried[place] == tried[place - 1]:
                continue
            kind = tried[place] if place < len(tried) else 0
            others, p = tried[:place] + tried[place + 1 :], chance[kind]
            at, other = bisect(others, more[kind]), bisect(others, less[kind])
            won = value(left - 1, (*others[:at], more[kind], *others[at:]))
            lost = value(left - 1, (*others[:other], less[kind], *others[other:]))
            best = max(best, p * (1 + won) + (1 - p) * lost)
        return best

    return value(steps, ())


def play(player: Player, worlds: Worlds, seed: int = 0) -> Floats:
    """What a player gets in each world. It is told how often each arm paid, and how often not."""
    chance = np.random.default_rng(seed)
    rows = np.arange(len(worlds))
    states, tried = np.zeros(len(worlds), np.int64), np.zeros((len(worlds), worlds.form.actions, 2))
    got = np.zeros(len(worlds))
    for step in range(worlds.form.steps):
        actions = player(worlds.form, states, tried, chance)
        paid, states = worlds.act(step, states, actions)
        tried[rows, actions, 0] += paid
        tried[rows, actions, 1] += 1 - paid
        got += paid
    return got


def at_random(form: Form, states: Ints, tried: Floats, chance: np.random.Generator) -> Ints:  # noqa: ARG001
    return chance.integers(form.actions, size=len(states))


def greedy(form: Form, states: Ints, tried: Floats, chance: np.random.Generator) -> Ints:  # noqa: ARG001
    """The arm whose mean is likely the best, after a prior of U[0, 1]: no more is explored."""
    paid, not_paid = tried[..., 0], tried[..., 1]
    return ((paid + 1) / (paid + not_paid + 2)).argmax(-1)


def thompson(form: Form, states: Ints, tried: Floats, chance: np.random.Generator) -> Ints:  # noqa: ARG001
    """The best of one guess at each arm, drawn from what is known of it (Thompson 1933)."""
    return chance.beta(tried[..., 0] + 1, tried[..., 1] + 1).argmax(-1)
