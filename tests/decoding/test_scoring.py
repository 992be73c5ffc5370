"""Forced scoring and alternatives, beside the distributions themselves."""

import math

import pytest
import torch

from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.decoding.scoring import alternatives, score_outputs
from regard.text.special import END


def test_scores_are_the_models(story, seed):
    model = story(9, seed)
    given = [[[3, 4, 5], [], [8]], [], [[7, 7]]]
    scored = score_outputs(model, [4, 5, 6], given)
    assert [[one.ids for one in some] for some in scored] == given
    for key, some in zip([4, 5, 6], scored, strict=True):
        for one in some:
            told = [model.told(key, one.ids[:at])[i] for at, i in enumerate([*one.ids, END])]
            assert one.token_log_probs == told
            assert one.log_prob == sum(told)
    assert model.rows == [4, 3, 2, 1]  # rows leave at their end


def test_nothing_to_score(story):
    assert score_outputs(story(9), [1, 2], [[], []]) == [[], []]
    assert score_outputs(story(9), [], []) == []


@pytest.mark.usefixtures("unchecked")
def test_any_batch_any_order(recurrent, batching):
    model, memory = recurrent(50), torch.randn(64, 16)
    given = [[torch.randint(3, 50, (n % 7,)).tolist()] for n in range(64)]

    def search(numbers):
        return score_outputs(model, memory[numbers], [given[n] for n in numbers])

    first, *others = batching(search, 64)
    for other in others:
        for [one], [again] in zip(first, other, strict=True):
            assert one.token_log_probs == pytest.approx(again.token_log_probs, abs=1e-5)


def test_an_id_beyond_the_vocabulary(story):
    with pytest.raises(ValueError, match="there is no id 9 in a vocabulary of 9"):
        score_outputs(story(9), [1], [[[9]]])


def test_impossible_outputs_score_minus_infinity(table):
    [[one]] = score_outputs(table([0, 0, 0.5, 0.5, 0]), [0], [[[4]]])
    assert one.log_prob == -math.inf


def test_alternatives(story, seed):
    model = story(9, seed)
    prefixes = [[5, 4], [], [3, 3, 3], [7]]
    found = alternatives(model, range(4), prefixes, 3, Constraints(max_length=7))
    for key, (prefix, some) in enumerate(zip(prefixes, found, strict=True)):
        told = model.told(key, prefix)
        expected = sorted(range(2, 9), key=lambda one: -told[one])[:3]
        assert [one.id for one in some] == expected
        assert [one.log_prob for one in some] == [told[one] for one in expected]
        for one in some:
            if one.id == END:
                assert one.output.ids == prefix
                assert one.output.log_prob == pytest.approx(model.log_prob(key, prefix))
                continue
            rules = Constraints(max_length=7, prefix=[[*prefix, one.id]])
            assert [[one.output]] == greedy_search(model, [key], 1, rules)


def test_the_first_alternative_is_what_greedy_says(story, seed):
    model, rules = story(9, seed), Constraints(max_length=6)
    outputs = [one for [one] in greedy_search(model, range(8), 8, rules)]
    for at in range(4):
        long_enough = [key for key, one in enumerate(outputs) if len(one.ids) >= at]
        prefixes = [outputs[key].ids[:at] for key in long_enough]
        found = alternatives(model, long_enough, prefixes, 2, rules)
        assert [some[0].output for some in found] == [outputs[key] for key in long_enough]


def test_alternatives_keep_the_rules(story, seed):
    rules = Constraints(max_length=3, min_length=1, no_repeat_ngram=1, forbidden=(0, 1, 3))
    [at_start, in_middle, at_limit] = alternatives(
        story(8, seed), range(3), [[], [5], [5, 6, 7]], 9, rules
    )
    assert {one.id for one in at_start} == {4, 5, 6, 7}
    assert {one.id for one in in_middle} == {END, 4, 6, 7}
    assert [one.id for one in at_limit] == [END]
    for one in [*at_start, *in_middle, *at_limit]:
        assert len(set(one.output.ids)) == len(one.output.ids) <= 3


def test_wrong_arguments(story):
    assert alternatives(story(9), [], []) == []
    with pytest.raises(ValueError, match="no prefix and no phrases"):
        alternatives(story(9), [0], [[4]], constraints=Constraints(prefix=[[4]]))
    with pytest.raises(ValueError, match="the prefix of 3 ids is longer than max_length 2"):
        alternatives(story(9), [0], [[4, 4, 4]], constraints=Constraints(max_length=2))
    with pytest.raises(ValueError, match="prefix of input 0: there is no id 40"):
        alternatives(story(9), [0], [[40]])
