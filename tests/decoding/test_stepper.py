"""The protocol, and the ensemble that speaks it."""

import math

import pytest
import torch

from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.decoding.stepper import Ensemble, Stepper


def test_models_are_steppers_by_their_methods(story, recurrent):
    assert isinstance(story(5), Stepper)
    assert isinstance(recurrent(5), Stepper)
    assert isinstance(Ensemble([story(5)]), Stepper)
    assert not isinstance(torch.nn.Linear(1, 1), Stepper)


def test_an_ensemble_averages_probabilities(table):
    one, other = table([0.1, 0.2, 0.3, 0.4]), table([0.5, 0.0, 0.5, 0.0])
    ensemble = Ensemble([one, other])
    log_probs, state = ensemble.step(ensemble.start([[7], [8]]), torch.tensor([1]))
    assert log_probs.exp()[0].tolist() == pytest.approx([0.3, 0.1, 0.4, 0.2])
    assert state == ([(7, ())], [(8, ())])
    assert ensemble.select(state, torch.tensor([0, 0])) == ([(7, ())] * 2, [(8, ())] * 2)


def test_an_ensemble_of_one_is_that_one(story):
    rules = Constraints(max_length=6)
    alone = beam_search(story(6), [1, 2, 3], 3, 3, n_best=3, constraints=rules)
    together = beam_search(Ensemble([story(6)]), [[1, 2, 3]], 3, 3, n_best=3, constraints=rules)
    for one, other in zip(alone, together, strict=True):
        assert [h.ids for h in one] == [h.ids for h in other]
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-5)


def test_an_ensemble_may_say_what_neither_would(table):
    """Each has a favourite of its own; what both like a little wins."""
    one = table([0, 0, 0.1, 0.5, 0, 0.4], [0, 0, 1, 0, 0, 0])
    other = table([0, 0, 0.1, 0, 0.5, 0.4], [0, 0, 1, 0, 0, 0])
    assert greedy_search(one, [0], 1)[0][0].ids == [3]
    assert greedy_search(other, [0], 1)[0][0].ids == [4]
    [[both]] = greedy_search(Ensemble([one, other]), [[0], [0]], 1)
    assert both.ids == [5]
    assert both.log_prob == pytest.approx(math.log(0.4), abs=1e-6)


def test_wrong_ensembles(table):
    with pytest.raises(ValueError, match="steppers is empty"):
        Ensemble([])
    ensemble = Ensemble([table([0.5, 0.5]), table([0.2, 0.3, 0.5])])
    with pytest.raises(ValueError, match="1 parts for 2 steppers"):
        ensemble.start([[1]])
    with pytest.raises(ValueError, match=r"one vocabulary, but theirs have \[2, 3\]"):
        ensemble.step(ensemble.start([[1], [1]]), torch.tensor([1]))
