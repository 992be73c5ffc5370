"""Beam search: exact where it can be, beside a slow one elsewhere, and the same in any batch."""

import math

import pytest
import torch

from regard.decoding import beam as beam_module
from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.penalties import length_penalty
from regard.decoding.scoring import score_outputs
from regard.decoding.stepper import Hypothesis
from regard.text.special import END, PAD, START

WORDS = [3, 4, 5]  # all that can be said in a vocabulary of 6: 4 choices at each step


def slow_beam(model, key, width, *, n_best=1, alpha=0.0, patience=1.0, longest=8, shortest=0):
    """One input, plain Python, no early finish: straight from the description."""
    beams, ended = [([], 0.0)], []
    for position in range(longest + 1):
        candidates = []
        for rank, (ids, total) in enumerate(beams):
            told = model.told(key, ids)
            for one in range(model.size):
                allowed = one not in (PAD, START) and (one != END or position >= shortest)
                if allowed and (position < longest or one == END):
                    candidates.append((-(total + told[one]), rank, one, ids))
        candidates.sort(key=lambda one: one[:3])
        for value, _, one, ids in candidates[:width]:
            if one == END:
                penalty = length_penalty(position + 1, alpha)
                ended.append(Hypothesis(ids, -value / penalty, -value))
        beams = [([*ids, one], -value) for value, _, one, ids in candidates if one != END][:width]
        if len(ended) >= patience * width:
            break
    return sorted(ended, key=lambda one: -one.score)[:n_best]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.5])
@pytest.mark.parametrize("longest", [0, 1, 2, 3])
@pytest.mark.parametrize("normalization", ["gnmt", "length"])
def test_wide_enough_is_exact(story, seed, alpha, longest, normalization):
    """A beam of V^T finds all outputs, the best first."""
    model, width = story(6, seed), 4**longest
    n_best = sum(3**length for length in range(longest + 1))
    found = beam_search(
        model,
        [1, 2, 3],
        3,
        width,
        n_best=n_best,
        alpha=alpha,
        normalization=normalization,
        constraints=Constraints(max_length=longest),
    )
    for key, outputs in zip([1, 2, 3], found, strict=True):
        every = [
            one._replace(
                score=one.log_prob / length_penalty(len(one.ids) + 1, alpha, normalization)
            )
            for one in model.all_outputs(key, longest, WORDS)
        ]
        assert outputs == sorted(every, key=lambda one: -one.score)


def test_wider_than_the_vocabulary(story, seed):
    """Nothing is forbidden, and there are more places than tokens: an end takes none of them."""
    model, rules = story(4, seed), Constraints(max_length=2, forbidden=())
    for outputs, key in zip(
        beam_search(model, [1, 2], 2, 16, n_best=16, constraints=rules), [1, 2], strict=True
    ):
        assert outputs == model.all_outputs(key, 2, [0, 1, 3])


@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize(("alpha", "patience"), [(0.0, 1.0), (0.7, 1.0), (0.7, 2.0), (2.0, 99.0)])
def test_beside_a_slow_search(story, seed, width, alpha, patience):
    model, keys = story(9, seed, sharp=1.5), range(12)
    settings = {"n_best": width, "alpha": alpha, "patience": patience}
    rules = Constraints(max_length=7, min_length=2)
    found = beam_search(model, keys, 12, width, constraints=rules, **settings)
    for key, outputs in zip(keys, found, strict=True):
        assert outputs == slow_beam(model, key, width, **settings, longest=7, shortest=2)


def test_by_hand(table):
    """Greedy goes for 4 (0.5), which can only end badly; a beam of 2 sees the better 3."""

    class Fork(table):
        def told(self, key, ids):  # noqa: ARG002
            rows = {(): [0, 0, 0.1, 0.4, 0.5], (3,): [0, 0, 0.9, 0.1, 0], (4,): [0, 0, 0.4, 0.6, 0]}
            return [math.log(p) if p else -math.inf for p in rows.get(tuple(ids), [0, 0, 1, 0, 0])]

    model = Fork([0.2] * 5)
    [[narrow]] = beam_search(model, [0], 1, 1)
    assert narrow.ids == [4, 3]
    assert narrow.log_prob == pytest.approx(math.log(0.5 * 0.6), abs=1e-6)
    [wide] = beam_search(model, [0], 1, 2, n_best=2)
    assert [one.ids for one in wide] == [[3], [4, 3]]
    assert wide[0].log_prob == pytest.approx(math.log(0.4 * 0.9), abs=1e-6)


def test_length_penalty_changes_the_winner(table):
    """[]: log .3; [3]: log(.7 * .4); with alpha 1 the second is divided by 7/6."""
    model = table([0, 0, 0.3, 0.7], [0, 0, 0.4, 0.6])
    rules = Constraints(max_length=1)
    [[short]] = beam_search(model, [0], 1, 2, constraints=rules)
    [[long]] = beam_search(model, [0], 1, 2, alpha=1.0, constraints=rules)
    assert (short.ids, long.ids) == ([], [3])
    # the end is forced after one word, so its 0.4 counts
    assert short.score == pytest.approx(math.log(0.3), abs=1e-6)
    assert long.score == pytest.approx(math.log(0.7 * 0.4) / (7 / 6), abs=1e-6)
    assert long.log_prob == pytest.approx(math.log(0.7 * 0.4), abs=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.5])
def test_early_finish_changes_nothing(story, seed, alpha, monkeypatch):
    rules = Constraints(max_length=9)
    early, late = story(9, seed, sharp=2.0), story(9, seed, sharp=2.0)
    with_bound = beam_search(
        early, range(20), 20, 4, n_best=2, alpha=alpha, patience=9.0, constraints=rules
    )

    def is_decided(self, inputs, leaders):
        return leaders == -torch.inf

    monkeypatch.setattr(beam_module.FinishedOutputs, "is_decided", is_decided)
    without = beam_search(
        late, range(20), 20, 4, n_best=2, alpha=alpha, patience=9.0, constraints=rules
    )
    assert with_bound == without
    assert sum(early.rows) < sum(late.rows)


@pytest.mark.parametrize(
    ("alpha", "longest", "steps"),
    [
        (0.0, 9, 1),  # 0.6 at once; what goes on has 0.4 at most
        (1.0, 1, 1),  # log .4 / (7/6) = -.79 < log .6 = -.51
        (1.0, 4, 1),  # log .4 / (10/6) = -.55 < -.51
        (1.0, 5, 2),  # log .4 / (11/6) = -.499 > -.51: one more step, to .4 * .4
        (2.0, 9, 4),  # bars: log .4^n / (15/6)^2 = n * -.147; n = 4: -.586 < -.51
    ],
)
def test_early_finish_is_exact(table, alpha, longest, steps):
    """Stops as soon as, and not before, certainty for the rest could not win."""
    model = table([0, 0, 0.6, 0.4])
    [[output]] = beam_search(
        model, [0], 1, 4, alpha=alpha, constraints=Constraints(max_length=longest), patience=99.0
    )
    if steps == 1:
        assert output.ids == []
    assert len(model.rows) == steps


def test_finished_inputs_leave(story, seed):
    """Each step has as many rows as there are beams that go on: no row is computed in vain."""
    model, width = story(9, seed, sharp=2.0), 3
    singles = []
    for key in range(10):
        one = story(9, seed, sharp=2.0)
        beam_search(one, [key], 1, width, constraints=Constraints(max_length=9))
        singles.append(one.rows)
    beam_search(model, range(10), 10, width, constraints=Constraints(max_length=9))
    steps = max(map(len, singles))
    assert len({len(rows) for rows in singles}) > 1
    assert model.rows == [sum(r[at] for r in singles if at < len(r)) for at in range(steps)]
    assert model.rows[0] == 10  # one row an input before there are beams


def test_patience_stops_the_search(story, seed):
    counts = []
    for patience in (0.25, 1.0, 3.0):
        model = story(9, seed, sharp=1.0)
        beam_search(model, range(10), 10, 4, n_best=1, alpha=2.0, patience=patience)
        counts.append(sum(model.rows))
    assert counts[0] < counts[1] < counts[2]


@pytest.mark.parametrize("alpha", [0.0, 0.8])
@pytest.mark.usefixtures("unchecked")
def test_any_batch_any_order(recurrent, batching, alpha):
    model, memory = recurrent(900), torch.randn(64, 16)
    limits = torch.randint(3, 20, (64,)).tolist()
    prefixes = [torch.randint(4, 900, (n % 3,)).tolist() for n in range(64)]

    def search(numbers):
        rules = Constraints(
            max_length=[limits[n] for n in numbers],
            prefix=[prefixes[n] for n in numbers],
            no_repeat_ngram=2,
        )
        found = beam_search(
            model, memory[numbers], len(numbers), 4, n_best=4, alpha=alpha, constraints=rules
        )
        return [[one.ids for one in outputs] for outputs in found]

    first, *others = batching(search, 64)
    assert len({tuple(outputs[0]) for outputs in first}) > 30
    assert all(other == first for other in others)


def test_equal_scores_are_ranked_by_id(table, batching):
    """Every word is as likely as every other: what is found must not hang on chance."""
    model = table([0, 0, 0.1] + [0.09] * 10)
    rules = Constraints(max_length=3, min_length=2)

    def search(numbers):
        return beam_search(model, numbers, len(numbers), 4, n_best=4, constraints=rules)

    first, *others = batching(search, 20)
    assert [one.ids for one in first[0]] == [[3, 3], [3, 4], [3, 5], [3, 6]]
    assert all(other == first for other in others)


def test_log_probs_are_those_of_the_outputs(story, seed):
    model = story(8, seed)
    found = beam_search(
        model, range(6), 6, 4, n_best=4, alpha=1.0, constraints=Constraints(max_length=6)
    )
    given = score_outputs(model, range(6), [[one.ids for one in outputs] for outputs in found])
    for outputs, scored in zip(found, given, strict=True):
        assert len(outputs) == 4
        assert [one.log_prob for one in outputs] == pytest.approx([one.log_prob for one in scored])
        assert sorted(outputs, key=lambda one: -one.score) == outputs


def test_rules_are_kept(story, seed):
    rules = Constraints(max_length=6, min_length=6, no_repeat_ngram=1, prefix=[[5, 3]] * 5)
    for outputs in beam_search(story(12, seed), range(5), 5, 3, n_best=3, constraints=rules):
        assert len(outputs) == 3
        for output in outputs:
            assert output.ids[:2] == [5, 3]
            assert len(set(output.ids)) == 6


def test_a_prefix_takes_one_row(story):
    model = story(9)
    rules = Constraints(max_length=5, min_length=5, prefix=[[3, 4], [5, 6, 7]])
    beam_search(model, [0, 1], 2, 4, constraints=rules)
    assert model.rows == [2, 2, 2, 8, 8, 8]  # one row each until the first may choose


def test_nothing_left_to_say(story):
    rules = Constraints(max_length=12, min_length=10, no_repeat_ngram=1, forbidden=(PAD, START, 3))
    [one], [other] = beam_search(story(9), range(2), 2, 3, n_best=3, constraints=rules)
    assert sorted(one.ids) == sorted(other.ids) == [4, 5, 6, 7, 8]
    assert one.score == other.log_prob == -math.inf


def test_no_inputs(story):
    assert beam_search(story(5), [], 0) == []


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"width": 0}, "width must be 1 or more"),
        ({"width": 2, "n_best": 3}, r"n_best must be from 1 to width \(2\), not 3"),
        ({"n_best": 0}, "n_best must be"),
        ({"alpha": -1.0}, "alpha must be 0 or more"),
        ({"alpha": math.nan}, "alpha must be 0 or more"),
        ({"patience": 0.0}, "patience must be positive"),
        ({"count": -2}, "count must be"),
    ],
)
def test_wrong_settings(story, settings, says):
    with pytest.raises(ValueError, match=says):
        beam_search(story(5), [0], **{"count": 1} | settings)


def test_nan_is_refused(table):
    with pytest.raises(ValueError, match="position 0: the model's log-probabilities are NaN"):
        beam_search(table([0.1, 0.1, 0.1, math.nan]), [0], 1)
