"""Greedy search: by hand, beside a loop, and in any batch."""

import math

import pytest
import torch

from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.text.special import END, PAD, START


def one_by_one(model, key: int, longest: int, forbidden=(PAD, START)):
    """The definition, one row, plain Python."""
    ids, total = [], 0.0
    while True:
        told = model.told(key, ids)
        if len(ids) == longest:
            return ids, total + told[END]
        likely = max(told[one] for one in range(model.size) if one not in forbidden)
        total += likely
        if told.index(likely) == END:
            return ids, total
        ids.append(told.index(likely))


def test_by_hand(table):
    model = table([0, 0, 0.2, 0.3, 0.5], [0, 0, 0.1, 0.6, 0.3], [0, 0, 0.9, 0.1, 0])
    [[output]] = greedy_search(model, ["any"], 1)
    assert output.ids == [4, 3]
    assert output.log_prob == pytest.approx(math.log(0.5 * 0.6 * 0.9), abs=1e-6)
    assert output.score == output.log_prob


def test_beside_the_definition(story, seed):
    model = story(7, seed)
    outputs = greedy_search(model, range(40), 40, Constraints(max_length=9))
    for key, [output] in enumerate(outputs):
        ids, log_prob = one_by_one(model, key, 9)
        assert output == (ids, log_prob, log_prob)


def test_rows_that_ended_leave(story, seed):
    model = story(7, seed)
    outputs = greedy_search(model, range(40), 40, Constraints(max_length=9))
    lengths = [len(output.ids) for [output] in outputs]
    still = [sum(length >= at for length in lengths) for at in range(max(lengths) + 1)]
    assert model.rows == still


def test_among_equals_the_lowest_id(table):
    [[output]] = greedy_search(table([0, 0, 0.1, 0.3, 0.3, 0.3], [0, 0, 0.5, 0.5, 0, 0]), [0], 1)
    assert output.ids == [3]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 3.0])
def test_beam_of_one_is_greedy(story, seed, alpha):
    rules = Constraints(max_length=8, min_length=2, no_repeat_ngram=2)
    alone = greedy_search(story(9, seed), range(30), 30, rules)
    beams = beam_search(story(9, seed), range(30), 30, 1, alpha=alpha, constraints=rules)
    for [one], [other] in zip(alone, beams, strict=True):
        assert one.ids == other.ids
        assert one.log_prob == other.log_prob


@pytest.mark.usefixtures("unchecked")
def test_any_batch_any_order(recurrent, batching):
    model, memory = recurrent(900), torch.randn(64, 16)
    limits = torch.randint(3, 20, (64,)).tolist()

    def search(numbers):
        rules = Constraints(max_length=[limits[n] for n in numbers], no_repeat_ngram=3)
        found = greedy_search(model, memory[numbers], len(numbers), rules)
        return [one.ids for [one] in found]

    first, *others = batching(search, 64)
    assert len(set(map(tuple, first))) > 30  # they are not all alike
    assert all(other == first for other in others)


def test_rules_are_kept(story, seed):
    rules = Constraints(max_length=6, min_length=6, no_repeat_ngram=1, prefix=[[5, 3]] * 5)
    for [output] in greedy_search(story(12, seed), range(5), 5, rules):
        assert output.ids[:2] == [5, 3]
        assert len(set(output.ids)) == 6


def test_nothing_left_to_say(story):
    """Five words, none twice, but ten wanted: the output ends there, and says that it is none."""
    rules = Constraints(max_length=12, min_length=10, no_repeat_ngram=1, forbidden=(PAD, START, 3))
    [[one], [other]] = greedy_search(story(9), range(2), 2, rules)
    assert sorted(one.ids) == sorted(other.ids) == [4, 5, 6, 7, 8]
    assert one.log_prob == other.log_prob == -math.inf


def test_no_inputs(story):
    assert greedy_search(story(5), [], 0) == []
    with pytest.raises(ValueError, match="count must be"):
        greedy_search(story(5), [], -1)


def test_phrases_are_refused(story):
    with pytest.raises(ValueError, match="beam search only"):
        greedy_search(story(5), [0], 1, Constraints(phrases=[[[4]]]))


def test_nan_is_refused(table):
    model = table([0.1] * 4, [0.1, math.nan, 0.1, 0.1])
    with pytest.raises(ValueError, match="position 1: the model's log-probabilities are NaN"):
        greedy_search(model, [0], 1, Constraints(max_length=4, min_length=3, forbidden=()))


def test_no_gradient_is_kept(recurrent):
    model = recurrent(9)
    seen = []
    step = model.step

    def watched(state, tokens):
        log_probs, state = step(state, tokens)
        seen.append(log_probs.requires_grad)
        return log_probs, state

    model.step = watched
    greedy_search(model, torch.randn(2, 16), 2, Constraints(max_length=3))
    assert seen
    assert not any(seen)
