"""Parts of a training: what learns at which rate."""

import pytest
from torch import nn

from regard.tasks.base import ParameterGroup
from regard.training.build import with_rate_multipliers


@pytest.fixture
def model() -> nn.Module:
    made = nn.ModuleDict({"attention": nn.Linear(2, 3), "attentive": nn.Linear(3, 3)})
    made["deep"] = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    return made


def whole(model: nn.Module) -> list[ParameterGroup]:
    return [ParameterGroup(list(model.parameters()))]


def named(model: nn.Module, groups: list[ParameterGroup]) -> list[tuple[set[str], float]]:
    names = {p: name for name, p in model.named_parameters()}
    return [({names[p] for p in group.parameters}, group.rate) for group in groups]


def test_without_rates_all_learn_alike(model):
    assert named(model, with_rate_multipliers(model, whole(model), {})) == [
        ({name for name, _ in model.named_parameters()}, 1.0)
    ]


def test_a_part_is_named_by_whole_words(model):
    rest, part = named(model, with_rate_multipliers(model, whole(model), {"attention": 0.1}))
    assert part == ({"attention.weight", "attention.bias"}, 0.1)
    assert "attentive.weight" in rest[0]
    assert rest[1] == 1.0


def test_of_two_names_the_longer_counts(model):
    groups = named(model, with_rate_multipliers(model, whole(model), {"deep.1": 2.0, "deep": 0.5}))
    assert groups[1:] == [
        ({"deep.1.weight", "deep.1.bias"}, 2.0),
        ({"deep.0.weight", "deep.0.bias"}, 0.5),
    ]


def test_shares_multiply(model):
    layers = [
        ParameterGroup(list(model["attentive"].parameters()), 1.0),
        ParameterGroup(list(model["deep"].parameters()), 0.5),
    ]
    groups = named(model, with_rate_multipliers(model, layers, {"deep.0": 0.1}))
    assert [rate for _, rate in groups] == [1.0, 0.5, 0.05]


def test_an_unknown_part_is_told_with_those_that_there_are(model):
    with pytest.raises(ValueError, match="no part 'atention'; it has attention, attentive, deep"):
        with_rate_multipliers(model, whole(model), {"atention": 0.1})
