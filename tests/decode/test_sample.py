"""Sampling: which tokens are left, how often each is drawn, and that only the seed decides."""

import math

import pytest
import torch

from regard.decode.greedy import greedy
from regard.decode.rules import Rules
from regard.decode.sample import Draw, drawn, sample, uniforms
from regard.decode.top import PIECE

PROBABILITIES = [0.05, 0.3, 0.1, 0.3, 0.2, 0.05]


def shares(probabilities: list[float], draw: Draw, grid: int = 1000) -> dict[int, float]:
    """How much of [0, 1) leads to each token: evenly spaced chances in place of random ones."""
    log_probs = torch.tensor(probabilities).log().expand(grid, -1).clone()
    chances = (torch.arange(grid).double() + 0.5) / grid
    counts = drawn(log_probs, chances, draw).bincount(minlength=len(probabilities)) / grid
    return {token: share for token, share in enumerate(counts.tolist()) if share}


def close(found: dict[int, float], expected: dict[int, float]) -> bool:
    return found.keys() == expected.keys() and all(
        abs(found[one] - share) <= 0.0015 for one, share in expected.items()
    )


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (Draw(), dict(enumerate(PROBABILITIES))),
        # squares: .0025 .09 .01 .09 .04 .0025, in all .235
        (
            Draw(temperature=0.5),
            {0: 0.0106, 1: 0.383, 2: 0.0426, 3: 0.383, 4: 0.1702, 5: 0.0106},
        ),
        (Draw(top_k=1), {1: 1.0}),  # 1 and 3 are equal: the lower id stays
        (Draw(top_k=2), {1: 0.5, 3: 0.5}),
        (Draw(top_k=3), {1: 0.375, 3: 0.375, 4: 0.25}),
        (Draw(top_k=5), {0: 0.05263, 1: 0.3158, 2: 0.10526, 3: 0.3158, 4: 0.2105}),
        (Draw(top_k=99), dict(enumerate(PROBABILITIES))),
        (Draw(top_p=0.29), {1: 1.0}),
        (Draw(top_p=0.31), {1: 0.5, 3: 0.5}),  # the one that crosses the border stays
        (Draw(top_p=0.6), {1: 0.5, 3: 0.5}),  # they hold it, to the last digit or so
        (Draw(top_p=0.79), {1: 0.375, 3: 0.375, 4: 0.25}),
        (Draw(top_p=1.0), dict(enumerate(PROBABILITIES))),
        (Draw(min_p=1.0), {1: 0.5, 3: 0.5}),
        (Draw(min_p=0.5), {1: 0.375, 3: 0.375, 4: 0.25}),
        (Draw(min_p=0.3), {1: 1 / 3, 2: 1 / 9, 3: 1 / 3, 4: 2 / 9}),
        # one after the other: .3 .3 .2 left of top_k, .375 + .375 reach .7 of that
        (Draw(top_k=3, top_p=0.7), {1: 0.5, 3: 0.5}),
        (Draw(top_k=3, top_p=0.8), {1: 0.375, 3: 0.375, 4: 0.25}),
        (Draw(top_k=4, min_p=0.5), {1: 0.375, 3: 0.375, 4: 0.25}),
        # (2/3)^2 = .44 of the likeliest at temperature .5: min_p is asked after it
        (Draw(temperature=0.5, min_p=0.5), {1: 0.5, 3: 0.5}),
    ],
)
def test_what_is_left_and_how_often_it_is_drawn(draw, expected):
    assert close(shares(PROBABILITIES, draw), expected)


@pytest.mark.parametrize("size", [PIECE, 2 * PIECE, 12 * PIECE + 1, 33 * PIECE + 5])
@pytest.mark.parametrize(
    "draw", [Draw(), Draw(top_k=7), Draw(top_p=0.6), Draw(top_p=0.9999), Draw(min_p=0.02)]
)
def test_long_rows(size, draw):
    """The quick way through a large vocabulary draws what a plain running sum would."""
    log_probs = (3 * torch.randn(1, size)).log_softmax(1)
    chances = (torch.arange(4000).double() + 0.5) / 4000
    found = drawn(log_probs.expand(4000, -1).clone(), chances, draw)
    kept = log_probs[0].double().exp()
    order = kept.argsort(descending=True)
    if draw.top_k:
        kept[order[draw.top_k :]] = 0.0
    if draw.top_p:
        before = kept[order].cumsum(0) - kept[order]
        kept[order[before >= draw.top_p]] = 0.0
    if draw.min_p:
        kept[kept < draw.min_p * kept.max()] = 0.0
    expected = torch.searchsorted(kept.cumsum(0), chances * kept.sum(), right=True)
    assert (found != expected).double().mean() < 2e-3  # a chance on a border may round either way
    assert (kept[found] > 0).all()


def test_chances_at_both_ends():
    for size in (5, 2**16):  # in one piece, and in many
        log_probs = torch.full((2, size), -math.inf)
        log_probs[:, 2:-2] = -1.0
        chances = torch.tensor([0.0, 1.0]).double()
        assert drawn(log_probs, chances, Draw()).tolist() == [2, size - 3]


def test_frequencies(table):
    """Within four sigma of n p, for every token and every pair of tokens in a row."""
    model, n = table([0, 0, 0.2, 0.5, 0.3], [0, 0, 0.6, 0.4, 0]), 4000
    outputs = [one.ids for [one] in sample(model, range(n), range(n), rules=Rules(max_length=2))]
    expected = {
        (): 0.2,
        (3,): 0.5 * 0.6,
        (4,): 0.3 * 0.6,
        (3, 3): 0.5 * 0.4,
        (4, 3): 0.3 * 0.4,
    }
    counts = {ids: sum(tuple(output) == ids for output in outputs) for ids in expected}
    assert sum(counts.values()) == n
    for ids, p in expected.items():
        assert abs(counts[ids] - n * p) <= 4 * math.sqrt(n * p * (1 - p))


def test_copies_are_drawn_apart(table):
    model, n = table([0, 0, 0, 0.5, 0.5], [0, 0, 1, 0, 0]), 1000
    pairs = [[one.ids[0] for one in two] for two in sample(model, range(n), range(n), copies=2)]
    equal = sum(one == other for one, other in pairs)
    assert abs(equal - n / 2) <= 4 * math.sqrt(n / 4)


def test_log_probs_are_the_models_own(table):
    model = table([0, 0, 0.2, 0.5, 0.3], [0, 0, 1, 0, 0])
    draw = Draw(temperature=0.1, top_k=1)
    [[one]] = sample(model, [0], [3], draw)
    assert one.ids == [3]
    assert one.log_prob == one.score == pytest.approx(math.log(0.5), abs=1e-6)


def test_only_the_seed_decides(recurrent, batching):
    model, memory = recurrent(900), torch.randn(64, 16)
    limits = torch.randint(3, 12, (64,)).tolist()
    for draw in (Draw(), Draw(0.7, top_k=20, top_p=0.9), Draw(min_p=0.1)):

        def search(numbers, draw=draw):
            rules = Rules(max_length=[limits[n] for n in numbers])
            seeds = [1000 + n for n in numbers]
            found = sample(model, memory[numbers], seeds, draw, copies=2, rules=rules)
            return [[one.ids for one in outputs] for outputs in found]

        first, *others = batching(search, 64)
        assert len({tuple(outputs[0]) for outputs in first}) > 30
        assert all(other == first for other in others)


def test_more_copies_begin_with_the_same(story):
    few = sample(story(9), range(5), range(5), copies=2)
    many = sample(story(9), range(5), range(5), copies=4)
    assert [outputs[:2] for outputs in many] == few


def test_another_seed_draws_another(story):
    rules = Rules(max_length=20, min_length=20)
    outputs = {tuple(sample(story(30), [0], [seed], rules=rules)[0][0].ids) for seed in range(20)}
    assert len(outputs) == 20


def test_chances_are_the_same_on_every_machine():
    assert uniforms([0, 7], 1, 2).tolist() == [
        [0.3507602308235076, 0.8136920457619051],
        [0.38155251782028987, 0.2545987359939561],
    ]


def test_cold_is_greedy(story):
    rules = Rules(max_length=8)
    cold = sample(story(9), range(20), range(20), Draw(temperature=1e-4), rules=rules)
    one = sample(story(9), range(20), range(20), Draw(top_k=1), rules=rules)
    assert cold == one == greedy(story(9), range(20), 20, rules)


def test_rules_are_kept(story, seed):
    rules = Rules(max_length=6, min_length=6, no_repeat_ngram=1, prefix=[[5, 3]] * 5)
    for outputs in sample(story(12, seed), range(5), range(5), copies=3, rules=rules):
        assert len(outputs) == 3
        for output in outputs:
            assert output.ids[:2] == [5, 3]
            assert len(set(output.ids)) == 6


@pytest.mark.parametrize("draw", [Draw(), Draw(top_k=2), Draw(top_p=0.5), Draw(min_p=0.5)])
def test_nothing_left_to_say(story, draw):
    rules = Rules(max_length=12, min_length=10, no_repeat_ngram=1, forbidden=(0, 1, 3))
    [[one]] = sample(story(9), [0], [0], draw, rules=rules)
    assert sorted(one.ids) == [4, 5, 6, 7, 8]
    assert one.log_prob == -math.inf


def test_no_inputs(story):
    assert sample(story(9), [], []) == []


def test_nan_is_refused(table):
    with pytest.raises(ValueError, match="position 0 are NaN"):
        sample(table([0.1, 0.1, 0.1, math.nan]), [0], [0])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"temperature": 0.0}, "temperature must be positive, not 0.0; .* use greedy"),
        ({"temperature": math.inf}, "temperature must be positive"),
        ({"top_k": 0}, "top_k must be 1 or more"),
        ({"top_p": 0.0}, r"top_p must be in \(0, 1\], not 0.0"),
        ({"min_p": 1.5}, r"min_p must be in \(0, 1\], not 1.5"),
    ],
)
def test_wrong_settings(settings, says):
    with pytest.raises(ValueError, match=says):
        Draw(**settings)


def test_wrong_arguments(story):
    with pytest.raises(ValueError, match="copies must be 1 or more"):
        sample(story(9), [0], [0], copies=0)
    with pytest.raises(ValueError, match="beam search only"):
        sample(story(9), [0], [0], rules=Rules(phrases=[[[4]]]))
