"""Worlds to be found out while one lives in them: bandits, and small Markov decision processes.

    bandit   K arms; the k-th pays 1 with probability p_k, else 0; p_k ~ U[0, 1]
    mdp      in state s action a pays r ~ N(m_sa, 1), m_sa ~ N(1, 1), and leads to s' ~ P_sa, drawn
             from a flat Dirichlet; each episode begins in state 1 and has `horizon` steps

Duan et al. 2016 (1611.02779), sec. 3.1 and 3.2, which Mishra et al. 2018 take over. Chance is drawn
with a world: whoever acts in it has the same luck, and two players can be compared with less noise.

w: worlds   s: states   a: actions   t: steps
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.corpus import Record, check_split

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SPLIT_SEEDS = {"dev": 1, "test": 2}
ARRAY_FIELDS = ("mean_rewards", "cumulative_transitions", "noise")


@dataclass(frozen=True)
class Environments:
    """Many of one form, side by side."""

    spec: "EnvironmentSpec"
    mean_rewards: Floats  # [w s a] what an action pays in the mean
    cumulative_transitions: (
        Floats  # [w s a s] how likely it leads to this state, or to one before it
    )
    noise: Floats  # [w t 2] of the pay, and of the way

    @classmethod
    def from_records(cls, spec: "EnvironmentSpec", records: Sequence[Record]) -> "Environments":
        return cls(spec, *(np.stack([record[name] for record in records]) for name in ARRAY_FIELDS))

    def __len__(self) -> int:
        return len(self.mean_rewards)

    def act(self, step: int, states: Ints, actions: Ints) -> tuple[Floats, Ints]:
        """What each is paid, and the states after it: the first one, where an episode ends."""
        indices = np.arange(len(self))
        rewards = self.spec.sample_rewards(
            self.mean_rewards[indices, states, actions], self.noise[:, step, 0]
        )
        if (step + 1) % self.spec.horizon == 0:
            return rewards, np.zeros_like(states)
        is_passed = (
            self.cumulative_transitions[indices, states, actions] < self.noise[:, step, 1, None]
        )
        return rewards, np.minimum(is_passed.sum(-1), self.spec.states - 1)

    def optimal_returns(self) -> Floats:
        """What those get in the mean who know their world: by value iteration, [w]."""
        transitions = np.diff(self.cumulative_transitions, axis=-1, prepend=0.0)
        value = np.zeros(self.mean_rewards.shape[:2])
        for _ in range(self.spec.horizon):
            value = (self.mean_rewards + (transitions @ value[:, None, :, None])[..., 0]).max(-1)
        return value[:, 0] * (self.spec.steps // self.spec.horizon)


class EnvironmentSpec(ABC):
    """What all worlds of a kind share: their sizes, and how a life in them is written."""

    name: str
    actions: int
    states: int
    horizon: int  # steps of an episode, after which one is in the first state again
    steps: int  # of all episodes in a world

    @abstractmethod
    def sample(self, rng: np.random.Generator, count: int) -> Environments: ...

    @abstractmethod
    def sample_rewards(self, mean_rewards: Floats, noise: Floats) -> Floats: ...

    @abstractmethod
    def parse_history(self, text: str, location: str) -> tuple[list[int], list[float], list[int]]:
        """Actions (from 0), what they paid, and states: one more than actions."""

    @abstractmethod
    def parse_reward(self, word: str, location: str) -> float: ...

    def parse_action(self, word: str, location: str) -> tuple[int, float]:
        """`2:1`: the second action, and what it paid."""
        number, colon, reward = word.partition(":")
        if not colon or not number.isdecimal() or not 1 <= int(number) <= self.actions:
            expected = f"an action from 1 to {self.actions} and what it paid, as 2:1"
            raise ValueError(f"{location}: {word[:40]!r} is not {expected}")
        return int(number) - 1, self.parse_reward(reward, f"{location}: {word[:40]!r}")

    def check_length(self, count: int, location: str) -> None:
        if count >= self.steps:
            problem = f"{count} actions, but {self.steps} are a whole life"
            raise ValueError(f"{location}: {problem}; give at most {self.steps - 1}")


class BanditSpec(EnvironmentSpec):
    """One state, in which each arm pays 1 or nothing."""

    name = "bandit"

    def __init__(self, arms: int, steps: int):
        if arms < 2:
            raise ValueError(f"arms must be at least 2, not {arms}: there is nothing to choose")
        self.actions, self.states, self.horizon, self.steps = arms, 1, steps, steps

    def sample(self, rng: np.random.Generator, count: int) -> Environments:
        mean_rewards = rng.random((count, 1, self.actions))
        noise = rng.random((count, self.steps, 2))
        return Environments(self, mean_rewards, np.ones((count, 1, self.actions, 1)), noise)

    def sample_rewards(self, mean_rewards: Floats, noise: Floats) -> Floats:
        return (noise < mean_rewards).astype(np.float64)

    def parse_history(self, text: str, location: str) -> tuple[list[int], list[float], list[int]]:
        pulls = [self.parse_action(word, location) for word in text.split()]
        self.check_length(len(pulls), location)
        return [arm for arm, _ in pulls], [reward for _, reward in pulls], [0] * (len(pulls) + 1)

    def parse_reward(self, word: str, location: str) -> float:
        if word not in ("0", "1"):
            raise ValueError(f"{location}: an arm pays 0 or 1, not {word!r}")
        return float(word)


class MdpSpec(EnvironmentSpec):
    """Some states; what an action pays is a mean of its own, with noise around it."""

    name = "mdp"

    def __init__(self, states: int, actions: int, horizon: int, episodes: int):
        for name, count in {"states": states, "actions": actions}.items():
            if count < 2:
                raise ValueError(f"{name} must be at least 2, not {count}")
        self.actions, self.states, self.horizon = actions, states, horizon
        self.steps = horizon * episodes

    def sample(self, rng: np.random.Generator, count: int) -> Environments:
        mean_rewards = rng.normal(1.0, 1.0, (count, self.states, self.actions))
        weights = rng.standard_exponential((count, self.states, self.actions, self.states))
        transitions = (weights / weights.sum(-1, keepdims=True)).cumsum(-1)
        shape = count, self.steps
        noise = np.stack([rng.standard_normal(shape), rng.random(shape)], -1)
        return Environments(self, mean_rewards, transitions, noise)

    def sample_rewards(self, mean_rewards: Floats, noise: Floats) -> Floats:
        return mean_rewards + noise

    def parse_history(self, text: str, location: str) -> tuple[list[int], list[float], list[int]]:
        words = text.split() or ["1"]
        if len(words) % 2 == 0:
            raise ValueError(f"{location}: it must end with the state one is in, as 1 2:0.7 4")
        states = [self.parse_state(word, location) for word in words[::2]]
        moves = [self.parse_action(word, location) for word in words[1::2]]
        self.check_length(len(moves), location)
        for step, state in enumerate(states):
            if step % self.horizon == 0 and state:
                problem = f"step {step + 1} begins an episode, which is in state 1"
                raise ValueError(f"{location}: {problem}, not {state + 1}")
        return [action for action, _ in moves], [reward for _, reward in moves], states

    def parse_state(self, word: str, location: str) -> int:
        if not word.isdecimal() or not 1 <= int(word) <= self.states:
            expected = f"a state from 1 to {self.states}; write it as 1 2:0.7 4"
            raise ValueError(f"{location}: {word[:40]!r} is not {expected}")
        return int(word) - 1

    def parse_reward(self, word: str, location: str) -> float:
        try:
            reward = float(word)
        except ValueError:
            reward = np.nan
        if not np.isfinite(reward):
            raise ValueError(f"{location}: an action pays a number, not {word!r}")
        return reward


class EnvironmentCorpus:
    """A corpus of `held_out` worlds in dev, and as many in the test; to train on, any number.

    Records are {"mean_rewards", "cumulative_transitions", "noise"}. The n-th of a split depends on
    the settings and n alone.
    """

    splits = tuple(SPLIT_SEEDS)

    def __init__(self, spec: EnvironmentSpec, seed: int, held_out: int):
        self.spec, self.seed, self.held_out = spec, seed, held_out

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        for index in range(self.held_out):
            rng = np.random.default_rng([self.seed, SPLIT_SEEDS[split], index])
            environment = self.spec.sample(rng, 1)
            yield {name: getattr(environment, name)[0] for name in ARRAY_FIELDS}

    def describe(self) -> str:
        spec = self.spec
        sizes = f"{spec.actions} actions, {spec.steps} steps"
        if spec.states > 1:
            sizes = f"{spec.states} states, {sizes} in episodes of {spec.horizon}"
        return f"{spec.name}: {sizes}; worlds are drawn while training; made here"


class Bandits(EnvironmentCorpus):
    """Arms that pay 1 or nothing."""

    def __init__(
        self, arms: int = 5, steps: int = 10, *, seed: int = 0, held_out: int = 10_000
    ) -> None:
        super().__init__(BanditSpec(arms, steps), seed, held_out)


class Mdps(EnvironmentCorpus):
    """Random tabular ones."""

    def __init__(
        self,
        states: int = 10,
        actions: int = 5,
        *,
        horizon: int = 10,
        episodes: int = 10,
        seed: int = 0,
        held_out: int = 1000,
    ) -> None:
        super().__init__(MdpSpec(states, actions, horizon, episodes), seed, held_out)
