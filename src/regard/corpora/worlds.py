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

from regard.corpora.corpus import Record, check_split

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SPLITS = {"dev": 1, "test": 2}
FIELDS = ("means", "paths", "luck")


@dataclass(frozen=True)
class Worlds:
    """Many of one form, side by side."""

    form: "Form"
    means: Floats  # [w s a] what an action pays in the mean
    paths: Floats  # [w s a s] how likely it leads to this state, or to one before it
    luck: Floats  # [w t 2] of the pay, and of the way

    @classmethod
    def of(cls, form: "Form", records: Sequence[Record]) -> "Worlds":
        return cls(form, *(np.stack([record[name] for record in records]) for name in FIELDS))

    def __len__(self) -> int:
        return len(self.means)

    def act(self, step: int, states: Ints, actions: Ints) -> tuple[Floats, Ints]:
        """What each is paid, and the states after it: the first one, where an episode ends."""
        each = np.arange(len(self))
        paid = self.form.pay(self.means[each, states, actions], self.luck[:, step, 0])
        if (step + 1) % self.form.horizon == 0:
            return paid, np.zeros_like(states)
        led = self.paths[each, states, actions] < self.luck[:, step, 1, None]
        return paid, np.minimum(led.sum(-1), self.form.states - 1)

    def known(self) -> Floats:
        """What those get in the mean who know their world: by value iteration, [w]."""
        moves = np.diff(self.paths, axis=-1, prepend=0.0)
        value = np.zeros(self.means.shape[:2])
        for _ in range(self.form.horizon):
            value = (self.means + (moves @ value[:, None, :, None])[..., 0]).max(-1)
        return value[:, 0] * (self.form.steps // self.form.horizon)


class Form(ABC):
    """What all worlds of a kind share: their sizes, and how a life in them is written."""

    name: str
    actions: int
    states: int
    horizon: int  # steps of an episode, after which one is in the first state again
    steps: int  # of all episodes in a world

    @abstractmethod
    def draw(self, chance: np.random.Generator, many: int) -> Worlds: ...

    @abstractmethod
    def pay(self, means: Floats, luck: Floats) -> Floats: ...

    @abstractmethod
    def read(self, text: str, place: str) -> tuple[list[int], list[float], list[int]]:
        """Actions (from 0), what they paid, and states: one more than actions."""

    @abstractmethod
    def reward(self, word: str, place: str) -> float: ...

    def action(self, word: str, place: str) -> tuple[int, float]:
        """`2:1`: the second action, and what it paid."""
        number, colon, paid = word.partition(":")
        if not colon or not number.isdecimal() or not 1 <= int(number) <= self.actions:
            wanted = f"an action from 1 to {self.actions} and what it paid, as 2:1"
            raise ValueError(f"{place}: {word[:40]!r} is not {wanted}")
        return int(number) - 1, self.reward(paid, f"{place}: {word[:40]!r}")

    def check_length(self, count: int, place: str) -> None:
        if count >= self.steps:
            whole = f"{count} actions, but {self.steps} are a whole life"
            raise ValueError(f"{place}: {whole}; give at most {self.steps - 1}")


class BanditForm(Form):
    """One state, in which each arm pays 1 or nothing."""

    name = "bandit"

    def __init__(self, arms: int, steps: int):
        if arms < 2:
            raise ValueError(f"arms must be at least 2, not {arms}: there is nothing to choose")
        self.actions, self.states, self.horizon, self.steps = arms, 1, steps, steps

    def draw(self, chance: np.random.Generator, many: int) -> Worlds:
        means = chance.random((many, 1, self.actions))
        luck = chance.random((many, self.steps, 2))
        return Worlds(self, means, np.ones((many, 1, self.actions, 1)), luck)

    def pay(self, means: Floats, luck: Floats) -> Floats:
        return (luck < means).astype(np.float64)

    def read(self, text: str, place: str) -> tuple[list[int], list[float], list[int]]:
        found = [self.action(word, place) for word in text.split()]
        self.check_length(len(found), place)
        return [arm for arm, _ in found], [paid for _, paid in found], [0] * (len(found) + 1)

    def reward(self, word: str, place: str) -> float:
        if word not in ("0", "1"):
            raise ValueError(f"{place}: an arm pays 0 or 1, not {word!r}")
        return float(word)


class MdpForm(Form):
    """Some states; what an action pays is a mean of its own, with noise around it."""

    name = "mdp"

    def __init__(self, states: int, actions: int, horizon: int, episodes: int):
        for what, number in {"states": states, "actions": actions}.items():
            if number < 2:
                raise ValueError(f"{what} must be at least 2, not {number}")
        self.actions, self.states, self.horizon = actions, states, horizon
        self.steps = horizon * episodes

    def draw(self, chance: np.random.Generator, many: int) -> Worlds:
        means = chance.normal(1.0, 1.0, (many, self.states, self.actions))
        shares = chance.standard_exponential((many, self.states, self.actions, self.states))
        paths = (shares / shares.sum(-1, keepdims=True)).cumsum(-1)
        size = many, self.steps
        luck = np.stack([chance.standard_normal(size), chance.random(size)], -1)
        return Worlds(self, means, paths, luck)

    def pay(self, means: Floats, luck: Floats) -> Floats:
        return means + luck

    def read(self, text: str, place: str) -> tuple[list[int], list[float], list[int]]:
        words = text.split() or ["1"]
        if len(words) % 2 == 0:
            raise ValueError(f"{place}: it must end with the state one is in, as 1 2:0.7 4")
        states = [self.state(word, place) for word in words[::2]]
        found = [self.action(word, place) for word in words[1::2]]
        self.check_length(len(found), place)
        for step, state in enumerate(states):
            if step % self.horizon == 0 and state:
                begins = f"step {step + 1} begins an episode, which is in state 1"
                raise ValueError(f"{place}: {begins}, not {state + 1}")
        return [action for action, _ in found], [paid for _, paid in found], states

    def state(self, word: str, place: str) -> int:
        if not word.isdecimal() or not 1 <= int(word) <= self.states:
            wanted = f"a state from 1 to {self.states}; write it as 1 2:0.7 4"
            raise ValueError(f"{place}: {word[:40]!r} is not {wanted}")
        return int(word) - 1

    def reward(self, word: str, place: str) -> float:
        try:
            paid = float(word)
        except ValueError:
            paid = np.nan
        if not np.isfinite(paid):
            raise ValueError(f"{place}: an action pays a number, not {word!r}")
        return paid


class Drawn:
    """A corpus of `held_out` worlds in dev, and as many in the test; to train on, any number.

    Records are {"means", "paths", "luck"}. The n-th of a split depends on the settings and n alone.
    """

    splits = tuple(SPLITS)

    def __init__(self, form: Form, seed: int, held_out: int):
        self.form, self.seed, self.held_out = form, seed, held_out

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        for number in range(self.held_out):
            chance = np.random.default_rng([self.seed, SPLITS[split], number])
            one = self.form.draw(chance, 1)
            yield {name: getattr(one, name)[0] for name in FIELDS}

    def describe(self) -> str:
        form = self.form
        sizes = f"{form.actions} actions, {form.steps} steps"
        if form.states > 1:
            sizes = f"{form.states} states, {sizes} in episodes of {form.horizon}"
        return f"{form.name}: {sizes}; worlds are drawn while training; made here"


class Bandits(Drawn):
    """Arms that pay 1 or nothing."""

    def __init__(
        self, arms: int = 5, steps: int = 10, *, seed: int = 0, held_out: int = 10_000
    ) -> None:
        super().__init__(BanditForm(arms, steps), seed, held_out)


class Mdps(Drawn):
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
        super().__init__(MdpForm(states, actions, horizon, episodes), seed, held_out)
