"""Small models to search: one that tells any story at random, and one with a real state."""

import math
import random
from collections.abc import Callable, Sequence
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.decoding.stepper import Hypothesis
from regard.text.special import END, START


class Story:
    """Every beginning of every input has a distribution of its own: nothing can be guessed.

    The state is the beginnings themselves (None: not even started). `rows` notes how many rows each
    step was given.
    """

    def __init__(self, size: int, seed: int = 0, sharp: float = 1.0):
        self.size, self.seed, self.sharp = size, seed, sharp
        self.rows: list[int] = []

    def told(self, key: int, ids: Sequence[int]) -> list[float]:
        """Float32 log-probabilities after these ids, as Python numbers."""
        chance = random.Random(f"{self.seed} {key} {list(ids)}")
        energies = torch.tensor([self.sharp * chance.gauss(0, 1) for _ in range(self.size)])
        return energies.log_softmax(0).tolist()

    def start(self, memory: Sequence[int]) -> list[tuple[int, tuple[int, ...] | None]]:
        return [(key, None) for key in memory]

    def step(self, state, tokens):
        assert tokens.shape == (len(state),)
        assert (tokens == START).all() or all(ids is not None for _, ids in state)
        self.rows.append(len(state))
        following = [
            (key, () if ids is None else (*ids, token))
            for (key, ids), token in zip(state, tokens.tolist(), strict=True)
        ]
        return torch.tensor([self.told(*one) for one in following]), following

    def select(self, state, rows):
        return [state[row] for row in rows.tolist()]

    def log_prob(self, key: int, ids: Sequence[int]) -> float:
        """Of the whole output, its end included, summed in float64 from the left."""
        return sum(self.told(key, ids[:at])[one] for at, one in enumerate([*ids, END]))

    def all_outputs(self, key: int, longest: int, words: Sequence[int]) -> list[Hypothesis]:
        """Every output of these words up to that length, likeliest first."""
        found = [
            Hypothesis(list(ids), p := self.log_prob(key, ids), p)
            for length in range(longest + 1)
            for ids in product(words, repeat=length)
        ]
        return sorted(found, key=lambda one: -one.log_prob)


class Table(Story):
    """The same distribution whatever was said, or one for each position: to compute by hand."""

    def __init__(self, *probabilities: Sequence[float]):
        super().__init__(len(probabilities[0]))
        self.table = [[math.log(p) if p else -math.inf for p in row] for row in probabilities]

    def told(self, key: int, ids: Sequence[int]) -> list[float]:  # noqa: ARG002
        row = self.table[min(len(ids), len(self.table) - 1)]
        return torch.tensor(row).tolist()


class Recurrent(nn.Module):
    """A GRU of random weights; the memory is what each input starts from.

    In float64: in float32 a product of other rows rounds differently, and near ties may turn.
    """

    def __init__(self, size: int, dim: int = 16):
        super().__init__()
        self.size, self.dim = size, dim
        self.embed = nn.Embedding(size, dim)
        self.cell = nn.GRUCell(dim, dim)
        self.out = nn.Linear(dim, size)
        with torch.no_grad():
            self.out.weight *= 8.0  # or all tokens would be about as likely
            self.out.bias[END] += 1.0
        self.double()

    def start(self, memory: Tensor) -> Tensor:
        return memory.double()

    def step(self, state: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        state = self.cell(self.embed(tokens), state)
        return F.log_softmax(self.out(state), -1), state

    def select(self, state: Tensor, rows: Tensor) -> Tensor:
        return state[rows]


@pytest.fixture(scope="session")
def story() -> type[Story]:
    return Story


@pytest.fixture(scope="session")
def table() -> type[Table]:
    return Table


@pytest.fixture
def recurrent() -> Callable[..., Recurrent]:
    return Recurrent


class Batching:
    """Run a search on all inputs at once, in small batches, and shuffled: answers in order."""

    def __init__(self, seed: int):
        self.seed = seed

    def __call__(self, search: Callable[[list[int]], list], count: int) -> list[list]:
        """`search` answers for a list of input numbers; one list of answers for each way."""
        ways = [self.cut(list(range(count)), size) for size in (64, 7, 1)]
        shuffled = random.Random(self.seed).sample(range(count), count)
        ways += [self.cut(shuffled, 7), [list(range(count))[::-1]]]
        answers = []
        for batches in ways:
            by_number: dict[int, object] = {}
            for numbers in batches:
                by_number |= dict(zip(numbers, search(numbers), strict=True))
            answers.append([by_number[number] for number in range(count)])
        return answers

    @staticmethod
    def cut(numbers: list[int], size: int) -> list[list[int]]:
        return [numbers[at : at + size] for at in range(0, len(numbers), size)]


@pytest.fixture
def batching(seed: int) -> Batching:
    return Batching(seed)
