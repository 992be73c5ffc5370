"""Rules on log-probabilities, by hand and beside a slow reading of their definition."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.decoding.constraints import (
    MIN_FORCED_LOG_PROB,
    BatchConstraints,
    Constraints,
    forbid_repeats,
)
from regard.text.special import END, PAD, START, UNKNOWN


def allowed(rules: Constraints, count: int, inputs: list[int], history: list[list[int]], size=8):
    log_probs = torch.full((len(inputs), size), -1.0)
    past = torch.tensor(history, dtype=torch.long).view(len(inputs), -1)
    BatchConstraints(rules, count).apply(log_probs, torch.tensor(inputs), past)
    return [(row > -torch.inf).nonzero()[:, 0].tolist() for row in log_probs]


def test_pad_and_start_are_never_said():
    assert allowed(Constraints(), 1, [0], [[]]) == [[2, 3, 4, 5, 6, 7]]
    assert allowed(Constraints(forbidden=()), 1, [0], [[]]) == [list(range(8))]
    more = Constraints(forbidden=(PAD, START, UNKNOWN, 7, 7))
    assert allowed(more, 1, [0], [[5]]) == [[2, 4, 5, 6]]


def test_lengths_are_each_inputs_own():
    rules = Constraints(max_length=[1, 2, 3], min_length=[0, 2, 2])
    words = [3, 4, 5, 6, 7]
    assert allowed(rules, 3, [0, 1, 2], [[3], [3], [3]]) == [[END], words, words]
    assert allowed(rules, 3, [2, 1, 1], [[3, 3]] * 3) == [[END, *words], [END], [END]]


def test_a_prefix_is_forced_and_outranks_the_rest():
    rules = Constraints(
        prefix=[[UNKNOWN, 4, 4], []], forbidden=(UNKNOWN,), no_repeat_ngram=1, min_length=2
    )
    free = [0, 1, 4, 5, 6, 7]
    assert allowed(rules, 2, [0, 0, 1], [[]] * 3) == [[UNKNOWN], [UNKNOWN], free]
    assert allowed(rules, 2, [1, 0], [[5, 4], [3, 4]]) == [[0, 1, END, 6, 7], [4]]
    assert allowed(rules, 2, [0], [[3, 4, 4]]) == [[0, 1, END, 5, 6, 7]]


def test_what_is_forced_keeps_its_log_probability_and_is_never_impossible():
    log_probs = torch.tensor([[-1.0, -2.0, -3.0, -4.0, -torch.inf]])
    inputs, past = torch.tensor([0]), torch.empty(1, 0, dtype=torch.long)
    BatchConstraints(Constraints(prefix=[[3]]), 1).apply(log_probs, inputs, past)
    assert log_probs.tolist() == [[-torch.inf] * 3 + [-4.0, -torch.inf]]
    log_probs = torch.tensor([[-1.0, -2.0, -3.0, -4.0, -torch.inf]])
    BatchConstraints(Constraints(prefix=[[4]]), 1).apply(log_probs, inputs, past)
    assert log_probs.tolist() == [[-torch.inf] * 4 + [MIN_FORCED_LOG_PROB]]


def test_no_repeated_ngrams_by_hand():
    def banned(history: list[int], size: int) -> list[int]:
        log_probs = torch.zeros(1, 9)
        forbid_repeats(log_probs, torch.tensor([history]), size)
        return (log_probs[0] == -torch.inf).nonzero()[:, 0].tolist()

    assert banned([5, 6, 7, 5], 1) == [5, 6, 7]
    assert banned([5, 6, 7, 5], 2) == [6]
    assert banned([5, 6, 5, 7, 5], 2) == [6, 7]
    assert banned([5, 6, 7, 5, 6], 3) == [7]
    assert banned([5, 5], 2) == [5]
    assert banned([5, 6], 3) == []
    assert banned([5, 6, 7], 3) == []


@given(st.lists(st.lists(st.integers(0, 3), min_size=7, max_size=7), min_size=1), st.integers(1, 4))
def test_no_repeated_ngrams(history, size):
    log_probs = torch.zeros(len(history), 4)
    forbid_repeats(log_probs, torch.tensor(history), size)
    for row, ids in zip(log_probs, history, strict=True):
        runs = {tuple(ids[at : at + size]) for at in range(len(ids) - size + 1)}
        for one in range(4):
            again = tuple([*ids, one][-size:]) in runs
            assert (row[one] == -torch.inf) == again


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (Constraints(max_length=[1, 2, 3]), "max_length holds 3 numbers for 2 inputs"),
        (Constraints(min_length=(1,)), "min_length holds 1 numbers for 2 inputs"),
        (Constraints(prefix=[[4]]), "prefix holds 1 lists for 2 inputs"),
        (Constraints(phrases=[[[4]]] * 3), "phrases holds 3 lists for 2 inputs"),
        (
            Constraints(max_length=3, min_length=4),
            "input 0: min_length 4 must be from 0 to max_length 3",
        ),
        (Constraints(max_length=[5, -1]), "input 1: min_length 0 must be from 0 to max_length -1"),
        (Constraints(min_length=-1), "input 0: min_length -1"),
        (Constraints(max_length=1, prefix=[[], [4, 5]]), "input 1: the prefix of 2 ids is longer"),
        (Constraints(no_repeat_ngram=-1), "no_repeat_ngram must be 0"),
        (Constraints(forbidden=(END,)), "forbidden holds the end"),
        (Constraints(prefix=[[4], [END]]), r"not contain the end token \(2\): \[2\]"),
        (Constraints(phrases=[[], [[4, END]]]), r"not contain the end token \(2\): \[4, 2\]"),
        (Constraints(phrases=[[], [[]]]), "phrases: a phrase is empty"),
    ],
)
def test_wrong_rules(rules, says):
    with pytest.raises(ValueError, match=says):
        BatchConstraints(rules, 2)


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (Constraints(forbidden=(8,)), "forbidden: there is no id 8 in a vocabulary of 8"),
        (Constraints(prefix=[[4], [-1]]), "prefix of input 1: there is no id -1"),
        (Constraints(phrases=[[[4, 9]], []]), "phrases of input 0: there is no id 9"),
    ],
)
def test_ids_beyond_the_vocabulary(rules, says):
    with pytest.raises(ValueError, match=says):
        allowed(rules, 2, [0, 1], [[], []])
