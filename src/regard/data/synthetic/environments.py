"""Unknown environments for meta-reinforcement learning: bandits and small tabular MDPs.

    bandit   K arms; arm k pays 1 with probability p_k, else 0; p_k ~ U[0, 1]
    mdp      action a in state s pays r ~ N(m_sa, 1), m_sa ~ N(1, 1), and leads to s' ~ P_sa, drawn
             from a flat Dirichlet; each episode begins in state 1 and has `horizon` steps

Duan et al. 2016 (1611.02779), sec. 3.1 and 3.2; also used by Mishra et al. 2018. The noise is
drawn with the environment. All policies meet the same noise, which reduces the variance of their
comparison.

w: environments   s: states   a: actions   t: steps
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.corpus import Record, check_split
from regard.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SPLIT_SEEDS = {"dev": 1, "test": 2}
ARRAY_FIELDS = ("mean_rewards", "cumulative_transitions", "noise")


@dataclass(frozen=True)
class Environments:
    """A batch of environments of one spec."""

    spec: "EnvironmentSpec"
    mean_rewards: Floats  # [w s a]
    cumulative_transitions: Floats  # [w s a s'] probability of a next state up to s'
    noise: Floats  # [w t 2] of the reward and of the transition

    @classmethod
    def from_records(cls, spec: "EnvironmentSpec", records: Sequence[Record]) -> "Environments":
        return cls(spec, *(np.stack([record[name] for record in records]) for name in ARRAY_FIELDS))

    def __len__(self) -> int:
        return len(self.mean_rewards)

    def act(self, step: int, states: Ints, actions: Ints) -> tuple[Floats, Ints]:
        """Return rewards and next states; after the last step of an episode, the first state."""
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
        """Return the expected return of the optimal policy of each environment, [w].

        It is computed by value iteration over the true rewards and transitions.
        """
        transitions = np.diff(self.cumulative_transitions, axis=-1, prepend=0.0)
        value = np.zeros(self.mean_rewards.shape[:2])
        for _ in range(self.spec.horizon):
            value = (self.mean_rewards + (transitions @ value[:, None, :, None])[..., 0]).max(-1)
        return value[:, 0] * (self.spec.steps // self.spec.horizon)


class EnvironmentSpec(ABC):
    """The sizes of a family of environments, and the text format of a history."""

    name: str
    actions: int
    states: int
    horizon: int  # steps of an episode; the next one begins in the first state
    steps: int  # of all episodes in an environment

    @abstractmethod
    def sample(self, rng: np.random.Generator, count: int) -> Environments: ...

    @abstractmethod
    def sample_rewards(self, mean_rewards: Floats, noise: Floats) -> Floats: ...

    @abstractmethod
    def parse_history(self, text: str, location: str) -> tuple[list[int], list[float], list[int]]:
        """Return actions (from 0), rewards, and states, of which there is one more."""

    @abstractmethod
    def parse_reward(self, word: str, location: str) -> float: ...

    def parse_action(self, word: str, location: str) -> tuple[int, float]:
        """Parse `2:1` as the second action with the reward 1."""
        number, colon, reward = word.partition(":")
        if not colon or not number.isdecimal() or not 1 <= int(number) <= self.actions:
            expected = f"an action from 1 to {self.actions} and its reward, as 2:1"
            raise InputError(f"{location}: {word[:40]!r} is not {expected}")
        return int(number) - 1, self.parse_reward(reward, f"{location}: {word[:40]!r}")

    def check_length(self, count: int, location: str) -> None:
        if count >= self.steps:
            problem = f"{count} actions, but an environment ends after {self.steps}"
            raise InputError(f"{location}: {problem}; give at most {self.steps - 1}")


class BanditSpec(EnvironmentSpec):
    """Bandits: one state, and arms with rewards of 0 or 1."""

    name = "bandit"

    def __init__(self, arms: int, steps: int):
        if arms < 2:
            raise InputError(f"arms must be at least 2, not {arms}")
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
            raise InputError(f"{location}: the reward of an arm must be 0 or 1, not {word!r}")
        return float(word)


class MdpSpec(EnvironmentSpec):
    """Tabular MDPs, with Gaussian noise around the mean reward of each state and action."""

    name = "mdp"

    def __init__(self, states: int, actions: int, horizon: int, episodes: int):
        for name, count in {"states": states, "actions": actions}.items():
            if count < 2:
                raise InputError(f"{name} must be at least 2, not {count}")
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
            raise InputError(
                f"{location}: no current state at the end; end with a state, as 1 2:0.7 4"
            )
        states = [self.parse_state(word, location) for word in words[::2]]
        moves = [self.parse_action(word, location) for word in words[1::2]]
        self.check_length(len(moves), location)
        for step, state in enumerate(states):
            if step % self.horizon == 0 and state:
                problem = f"step {step + 1} begins an episode, so its state must be 1"
                raise InputError(f"{location}: {problem}, not {state + 1}")
        return [action for action, _ in moves], [reward for _, reward in moves], states

    def parse_state(self, word: str, location: str) -> int:
        if not word.isdecimal() or not 1 <= int(word) <= self.states:
            expected = f"a state from 1 to {self.states}; write it as 1 2:0.7 4"
            raise InputError(f"{location}: {word[:40]!r} is not {expected}")
        return int(word) - 1

    def parse_reward(self, word: str, location: str) -> float:
        try:
            reward = float(word)
        except ValueError:
            reward = np.nan
        if not np.isfinite(reward):
            raise InputError(f"{location}: a reward must be a finite number, not {word!r}")
        return reward


class EnvironmentCorpus:
    """A corpus of `held_out` environments in dev and as many in test.

    Training draws new environments instead of reading records. Records are {"mean_rewards",
    "cumulative_transitions", "noise"} and depend on the settings and their index alone.
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
        return f"{spec.name}: {sizes}; training draws new environments; synthetic"


class Bandits(EnvironmentCorpus):
    """Bernoulli bandits."""

    def __init__(
        self, arms: int = 5, steps: int = 10, *, seed: int = 0, held_out: int = 10_000
    ) -> None:
        super().__init__(BanditSpec(arms, steps), seed, held_out)


class Mdps(EnvironmentCorpus):
    """Random tabular MDPs."""

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
