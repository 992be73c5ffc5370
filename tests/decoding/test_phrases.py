"""Outputs that must contain phrases."""

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.phrases import PhraseCandidate, PhraseProgress, initial_progress, share_beams
from regard.text.special import END


def contains(ids: list[int], phrase: list[int]) -> bool:
    return any(ids[at : at + len(phrase)] == phrase for at in range(len(ids) - len(phrase) + 1))


def test_progress_by_hand():
    one = initial_progress([[5, 6, 7], [8]], [])
    assert (one.remaining, one.next_ids) == (4, {5, 8})
    one = one.advance(5)
    assert (one.tail, one.remaining, one.next_ids) == ((5,), 3, {6})
    broken = one.advance(9)
    assert (broken.tail, broken.remaining) == ((), 4)
    again = one.advance(5)  # 5 5: the second may still begin the phrase
    assert (again.tail, again.remaining) == ((5,), 3)
    one = one.advance(6).advance(7)
    assert (one.missing, one.remaining, one.next_ids) == ({(8,)}, 1, {8})
    assert one.advance(8) == PhraseProgress(frozenset())


def test_overlapping_phrases():
    one = initial_progress([[5, 6], [6, 7]], [5, 6])
    assert one == PhraseProgress(frozenset({(6, 7)}), (6,))
    assert one.advance(7).missing == frozenset()
    assert initial_progress([[5, 6, 7], [6]], [5, 6]) == PhraseProgress(
        frozenset({(5, 6, 7)}), (5, 6)
    )
    assert initial_progress([[5, 5, 6]], [5, 5, 5]).next_ids == {6}
    assert initial_progress([[4], [4]], [4]).missing == frozenset()


ids_of_three = st.integers(3, 5)


@given(
    st.lists(st.lists(ids_of_three, min_size=1, max_size=4), max_size=3),
    st.lists(ids_of_three, max_size=12),
)
def test_progress_is_what_it_says(phrases, said):
    """Unmet are just those that do not occur; what remains to be said is enough, and in reach."""
    one = initial_progress(phrases, said)
    assert one.missing == {tuple(phrase) for phrase in phrases if not contains(said, phrase)}
    ends = [said[len(said) - n :] for n in range(len(said) + 1)]
    begun = [end for end in ends for phrase in one.missing if list(phrase[: len(end)]) == end]
    assert list(one.tail) == max(begun, key=len, default=[])
    steps = 0
    while one.missing:
        following = one.advance(min(one.next_ids))
        assert following.remaining < one.remaining
        one, steps = following, steps + 1
    assert steps <= initial_progress(phrases, said).remaining


def test_places_are_shared_out():
    some = [PhraseCandidate(0.1 * n, 0, n, 3) for n in range(1, 9)]
    some += [PhraseCandidate(5.0, 0, 9, 2), PhraseCandidate(9.0, 0, 10, 1)]
    assert [one.cost for one in share_beams(some, 4)] == [0.1, 0.2, 5.0, 9.0]
    assert [one.cost for one in share_beams(some, 2)] == [5.0, 9.0]
    assert [one.cost for one in share_beams(some, 1)] == [9.0]
    assert len(share_beams(some, 99)) == 10


@pytest.mark.parametrize("phrases", [[[3]], [[4, 3]], [[3, 3], [4]], [[3], [5, 4]]])
def test_wide_enough_is_exact(story, seed, phrases):
    model, longest = story(6, seed), 4
    rules = Constraints(max_length=longest, phrases=[phrases] * 2)
    found = beam_search(model, [1, 2], 2, 300, n_best=3, constraints=rules, patience=9.0)
    for key, outputs in zip([1, 2], found, strict=True):
        every = model.all_outputs(key, longest, [3, 4, 5])
        assert (
            outputs
            == [one for one in every if all(contains(one.ids, phrase) for phrase in phrases)][:3]
        )


@pytest.mark.parametrize("width", [1, 2, 5, 10])
def test_every_output_has_its_phrases(story, seed, width):
    """Whatever the width, even when there is only just room."""
    chance = torch.Generator().manual_seed(seed)
    phrases = [torch.randint(3, 30, (2, 1 + n % 3), generator=chance).tolist() for n in range(12)]
    for room in (0, 1, 6):
        limits = [sum(map(len, some)) + room for some in phrases]
        rules = Constraints(max_length=limits, phrases=phrases)
        found = beam_search(story(30, seed), range(12), 12, width, n_best=width, constraints=rules)
        for outputs, some, limit in zip(found, phrases, limits, strict=True):
            assert outputs
            for one in outputs:
                assert all(contains(one.ids, phrase) for phrase in some)
                assert len(one.ids) <= limit


def test_log_probs_are_those_of_the_outputs(story, seed):
    model = story(12, seed)
    rules = Constraints(max_length=8, phrases=[[[4, 5], [7]]] * 3)
    for key, outputs in enumerate(beam_search(model, range(3), 3, 5, n_best=5, constraints=rules)):
        for one in outputs:
            assert one.log_prob == pytest.approx(model.log_prob(key, one.ids))


def test_banks_find_better_places_than_the_end(story, seed):
    """A wide beam places phrases where the model minds least; a beam of one says them at once."""
    rules = Constraints(max_length=12, phrases=[[[7, 9]]] * 20)
    wide = beam_search(story(12, seed), range(20), 20, 12, constraints=rules)
    narrow = beam_search(story(12, seed), range(20), 20, 1, constraints=rules)
    assert sum(one.log_prob for [one] in wide) > sum(one.log_prob for [one] in narrow) + 10


def test_inputs_without_phrases_are_not_touched(story, seed):
    rules = Constraints(max_length=7)
    plain = beam_search(story(12, seed), range(6), 6, 4, n_best=4, constraints=rules)
    phrases = [[[5, 5]] if n % 2 else [] for n in range(6)]
    mixed = beam_search(
        story(12, seed),
        range(6),
        6,
        4,
        n_best=4,
        constraints=Constraints(max_length=7, phrases=phrases),
    )
    assert [mixed[n] for n in (0, 2, 4)] == [plain[n] for n in (0, 2, 4)]
    assert all(contains(one.ids, [5, 5]) for n in (1, 3, 5) for one in mixed[n])


@pytest.mark.usefixtures("unchecked")
def test_any_batch_any_order(recurrent, batching):
    model, memory = recurrent(300), torch.randn(20, 16)
    phrases = [torch.randint(4, 300, (n % 3, 2)).tolist() for n in range(20)]

    def search(numbers):
        rules = Constraints(max_length=12, phrases=[phrases[n] for n in numbers])
        found = beam_search(model, memory[numbers], len(numbers), 5, n_best=5, constraints=rules)
        return [[one.ids for one in outputs] for outputs in found]

    first, *others = batching(search, 20)
    assert all(other == first for other in others)


def test_with_a_prefix(story, seed):
    """What the prefix says need not be said again; a phrase may begin in it."""
    rules = Constraints(
        max_length=[4, 4, 3],
        prefix=[[5, 6, 7], [3, 5], [4, 5, 6]],
        phrases=[[[6, 7], [8]], [[5, 6, 7]], [[4, 5], [5, 6]]],
    )
    one, two, three = beam_search(story(12, seed), range(3), 3, 4, constraints=rules)
    assert one[0].ids == [5, 6, 7, 8]
    assert two[0].ids == [3, 5, 6, 7]
    assert three[0].ids == [4, 5, 6]
    rules = Constraints(max_length=[2, 3], prefix=[[5], [5, 6]], phrases=[[[5, 5]], [[6, 5]]])
    four, five = beam_search(story(12, seed), range(2), 2, 4, constraints=rules)
    assert four[0].ids == [5, 5]  # the 5 of the prefix is one, not two
    assert five[0].ids == [5, 6, 5]


def test_phrases_may_be_impossible(table):
    """A model that would never say it says it all the same, and what follows still counts."""
    model = table([0, 0, 0.1, 0.9, 0, 0], [0, 0, 0.2, 0.8, 0, 0])
    [[one]] = beam_search(
        model, [0], 1, 4, constraints=Constraints(max_length=3, phrases=[[[4, 5]]])
    )
    assert contains(one.ids, [4, 5])
    assert -20_010 < one.log_prob < -20_000


def test_phrases_outrank_other_rules(story, seed):
    rules = Constraints(
        max_length=8, phrases=[[[5, 5, 5], [3]]], no_repeat_ngram=1, forbidden=(0, 1, 3, 5)
    )
    [[one]] = beam_search(story(12, seed), [0], 1, 4, constraints=rules)
    assert contains(one.ids, [5, 5, 5])
    assert one.ids.count(3) == 1
    assert END not in one.ids


def test_phrases_that_do_not_fit(story):
    with pytest.raises(
        ValueError, match="input 1: phrases of 3 ids do not fit after a prefix of 1"
    ):
        beam_search(
            story(9),
            range(2),
            2,
            constraints=Constraints(max_length=3, phrases=[[], [[4, 5], [6]]], prefix=[[], [7]]),
        )


def test_a_small_vocabulary(story):
    """Fewer candidates than places."""
    for ids in product([3, 4], repeat=2):
        rules = Constraints(max_length=3, phrases=[[list(ids)]])
        [outputs] = beam_search(story(5), [0], 1, 20, n_best=20, constraints=rules, patience=9.0)
        assert all(contains(one.ids, list(ids)) for one in outputs)
        assert len({tuple(one.ids) for one in outputs}) == len(outputs) > 2
