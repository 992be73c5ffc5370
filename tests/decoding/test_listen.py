"""Listening to a search: unfinished outputs, and stopping."""

import pytest
import torch

from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.decoding.listen import listen
from regard.text.special import END


class Counter:
    """A stepper that writes 4, 5, 6, then the end."""

    def start(self, memory: int) -> torch.Tensor:
        return torch.zeros(memory, dtype=torch.long)

    def step(self, state: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        log_probs = torch.full((len(tokens), 8), -50.0)
        log_probs[:, END] = -100.0
        next_ids = torch.where(state < 3, state + 4, END)
        return log_probs.scatter(1, next_ids[:, None], 0.0), state + 1

    def select(self, state: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return state[rows]


RULES = Constraints(max_length=6)


def test_greedy_search_reports_each_step():
    steps = []
    with listen(steps.append):
        greedy_search(Counter(), 1, 1, RULES)
    assert steps == [[4], [4, 5], [4, 5, 6], [4, 5, 6, END]]
    greedy_search(Counter(), 1, 1, RULES)
    assert len(steps) == 4


def test_beam_search_reports_its_best_hypothesis():
    steps = []
    with listen(steps.append):
        beam_search(Counter(), 1, 1, 2, constraints=RULES)
    assert steps[:3] == [[4], [4, 5], [4, 5, 6]]


def test_several_inputs_report_steps_without_ids():
    steps = []
    with listen(steps.append):
        greedy_search(Counter(), 2, 2, RULES)
    assert steps == [[]] * 4


@pytest.mark.parametrize("count", [1, 3])
def test_an_exception_stops_the_search(count):
    def stop(ids: list[int]) -> None:
        raise KeyError("enough")

    for search in (greedy_search, beam_search):
        with pytest.raises(KeyError), listen(stop):
            search(Counter(), count, count, constraints=RULES)
