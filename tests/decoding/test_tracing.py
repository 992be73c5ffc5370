"""What a search tried is a tree whose sums are the model's own."""

import pytest
import torch

from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.decoding.tracing import TracingStepper


@pytest.mark.parametrize("width", [1, 3])
def test_the_tree_of_a_beam(story, width):
    model = story(7, seed=3)
    traced = TracingStepper(model)
    rules = Constraints(max_length=4)
    [[found]] = beam_search(traced, [5], 1, width, constraints=rules)
    assert [[found]] == beam_search(model, [5], 1, width, constraints=rules)  # it changes nothing
    beginnings = list[tuple[int, ...]]()
    for number, one in enumerate(traced.nodes):
        assert one.parent < number
        before = beginnings[one.parent] if one.parent >= 0 else ()
        beginnings.append((*before, one.token))
        whole = sum(model.told(5, beginnings[-1][:at])[t] for at, t in enumerate(beginnings[-1]))
        assert one.log_prob == pytest.approx(whole, abs=1e-5)
    assert len(set(beginnings)) == len(beginnings)
    for length in {len(one) for one in beginnings}:
        assert 1 <= sum(len(one) == length for one in beginnings) <= width
    path = traced.path(found.ids)
    assert [beginnings[number] for number in sorted(path)] == [
        tuple(found.ids[: at + 1]) for at in range(len(path))
    ]
    assert len(path) in (len(found.ids), len(found.ids) - 1)  # the last may end unread


def test_what_was_not_tried_has_no_path(story):
    traced = TracingStepper(story(7))
    greedy_search(traced, [1], 1, constraints=Constraints(max_length=3))
    assert traced.path([99]) == set()


def test_rows_that_move(story):
    traced = TracingStepper(story(6))
    state = traced.start([0])
    told, state = traced.step(state, torch.tensor([1]))
    state = traced.select(state, torch.tensor([0, 0]))
    _, state = traced.step(state, torch.tensor([4, 5]))
    state = traced.select(state, torch.tensor([1]))
    traced.step(state, torch.tensor([3]))
    assert [(one.parent, one.token) for one in traced.nodes] == [(-1, 4), (-1, 5), (1, 3)]
    assert traced.nodes[1].log_prob == pytest.approx(told[0, 5].item())
