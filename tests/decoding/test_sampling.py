"""Sampling: which tokens are left, how often each is drawn, and that only the seed decides."""

import math

import pytest
import torch

from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.decoding.sampling import (
    GOLDEN_GAMMA,
    SamplingOptions,
    gumbel_choice,
    gumbel_noise,
    mix_bits,
    noise_key,
    sample,
    truncated_masses,
)
from regard.decoding.topk import PIECE_SIZE

PROBABILITIES = [0.05, 0.3, 0.1, 0.3, 0.2, 0.05]


def shares(probabilities: list[float], draw: SamplingOptions) -> dict[int, float]:
    """What is left of a distribution, as shares of 1."""
    [masses] = truncated_masses(torch.tensor([probabilities]).log(), draw)
    return {at: share for at, share in enumerate((masses / masses.sum()).tolist()) if share}


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (SamplingOptions(), dict(enumerate(PROBABILITIES))),
        # squares: .0025 .09 .01 .09 .04 .0025, in all .235
        (
            SamplingOptions(temperature=0.5),
            {0: 0.0106, 1: 0.383, 2: 0.0426, 3: 0.383, 4: 0.1702, 5: 0.0106},
        ),
        (SamplingOptions(top_k=1), {1: 1.0}),  # 1 and 3 are equal: the lower id stays
        (SamplingOptions(top_k=2), {1: 0.5, 3: 0.5}),
        (SamplingOptions(top_k=3), {1: 0.375, 3: 0.375, 4: 0.25}),
        (SamplingOptions(top_k=5), {0: 0.05263, 1: 0.3158, 2: 0.10526, 3: 0.3158, 4: 0.2105}),
        (SamplingOptions(top_k=99), dict(enumerate(PROBABILITIES))),
        (SamplingOptions(top_p=0.29), {1: 1.0}),
        (SamplingOptions(top_p=0.31), {1: 0.5, 3: 0.5}),  # the one that crosses the border stays
        (SamplingOptions(top_p=0.6), {1: 0.5, 3: 0.5}),  # they hold it, to the last digit or so
        (SamplingOptions(top_p=0.79), {1: 0.375, 3: 0.375, 4: 0.25}),
        (SamplingOptions(top_p=1.0), dict(enumerate(PROBABILITIES))),
        (SamplingOptions(min_p=1.0), {1: 0.5, 3: 0.5}),
        (SamplingOptions(min_p=0.5), {1: 0.375, 3: 0.375, 4: 0.25}),
        (SamplingOptions(min_p=0.3), {1: 1 / 3, 2: 1 / 9, 3: 1 / 3, 4: 2 / 9}),
        # one after the other: .3 .3 .2 left of top_k, .375 + .375 reach .7 of that
        (SamplingOptions(top_k=3, top_p=0.7), {1: 0.5, 3: 0.5}),
        (SamplingOptions(top_k=3, top_p=0.8), {1: 0.375, 3: 0.375, 4: 0.25}),
        (SamplingOptions(top_k=4, min_p=0.5), {1: 0.375, 3: 0.375, 4: 0.25}),
        # (2/3)^2 = .44 of the likeliest at temperature .5: min_p is asked after it
        (SamplingOptions(temperature=0.5, min_p=0.5), {1: 0.5, 3: 0.5}),
    ],
)
def test_what_is_left(draw, expected):
    assert shares(PROBABILITIES, draw) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "size", [PIECE_SIZE, 2 * PIECE_SIZE, 12 * PIECE_SIZE + 1, 333 * PIECE_SIZE + 5]
)
@pytest.mark.parametrize(
    "draw",
    [
        SamplingOptions(temperature=1.3),
        SamplingOptions(top_k=7),
        SamplingOptions(top_p=0.6),
        SamplingOptions(top_p=0.9999),
        SamplingOptions(top_k=60, top_p=0.9),
        SamplingOptions(0.8, top_p=0.9, min_p=0.02),
    ],
)
def test_what_is_left_of_long_rows(size, draw):
    """Beside the definitions, row by row in float64."""
    log_probs = (3 * torch.randn(5, size)).log_softmax(1)
    for row, left in zip(
        log_probs.double(), truncated_masses(log_probs.clone(), draw).double(), strict=True
    ):
        masses = (row / draw.temperature).softmax(0)
        order = masses.argsort(descending=True)
        if draw.top_k:
            masses[order[draw.top_k :]] = 0.0
        if draw.top_p:
            masses /= masses.sum()
            before = masses[order].cumsum(0) - masses[order]
            masses[order[before >= draw.top_p - 1e-6]] = 0.0
        if draw.min_p:
            masses[masses < draw.min_p * masses.max()] = 0.0
        unequal = (left > 0) != (masses > 0)  # a token on the border may round either way
        assert unequal.sum() <= (1 if draw.top_p else 0)
        masses = masses / masses.max() * ~unequal
        torch.testing.assert_close(left * ~unequal, masses, atol=1e-5, rtol=1e-4)


def keys_of(count: int, seed: int) -> torch.Tensor:
    return torch.tensor([noise_key(seed, copy) for copy in range(count)])


@pytest.mark.parametrize("size", [6, PIECE_SIZE, PIECE_SIZE + 1, 5 * PIECE_SIZE + 3])
def test_picks_follow_the_masses(size, seed):
    """Every token within five and a half sigma: there are some hundred of them."""
    count = 20_000
    masses = torch.rand(size) + 0.5
    masses[::4] = 0.0
    picked = gumbel_choice(masses.expand(count, -1), keys_of(count, seed)).bincount(minlength=size)
    shares = (masses / masses.sum()).double()
    spread = (count * shares * (1 - shares)).sqrt()
    assert ((picked - count * shares).abs() <= 5.5 * spread).all()


def test_nothing_of_mass_zero_is_picked():
    for size in (5, PIECE_SIZE, 3 * PIECE_SIZE + 1):
        masses = torch.zeros(500, size)
        masses[:, size - 2] = 1e-30
        assert gumbel_choice(masses, keys_of(500, 0)).unique().tolist() == [size - 2]


def test_a_rounding_error_hardly_ever_changes_a_pick():
    """Even where 5000 tokens are about as likely as each other."""
    log_probs = (0.5 * torch.randn(3000, 5000)).log_softmax(1)
    noisy = log_probs + 1e-6 * torch.randn_like(log_probs)
    keys = keys_of(3000, 0)
    one, other = (
        gumbel_choice(truncated_masses(told, SamplingOptions(top_p=0.9)), keys)
        for told in (log_probs, noisy)
    )
    assert (one != other).sum() <= 1


def test_noise_is_that_of_splitmix():
    """The first numbers of the generator's well known sequence for the seed 1234567."""
    numbers = mix_bits(torch.tensor(1234567) + torch.arange(1, 4) * GOLDEN_GAMMA)
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423 - 2**64]
    assert numbers.tolist() == known


def test_noise_is_gumbel(seed):
    """Mean 0.5772, variance pi^2 / 6; rows and columns of it know nothing of each other."""
    noise = gumbel_noise(keys_of(400, seed), 300, 0)
    n = noise.numel()
    assert abs(noise.mean() - 0.5772) <= 4.5 * math.pi / math.sqrt(6 * n)
    assert abs(noise.var() - math.pi**2 / 6) <= 4.5 * math.sqrt(4.4 / n) * math.pi**2 / 6
    for table in (noise, noise.T):
        apart = table.corrcoef() - torch.eye(len(table))
        assert apart.abs().max() <= 6 / math.sqrt(table.shape[1])
    assert torch.equal(gumbel_noise(keys_of(400, seed), 10, 290), noise[:, 290:])


def test_frequencies(table):
    """Within four sigma of n p, for every token and every pair of tokens in a row."""
    model, n = table([0, 0, 0.2, 0.5, 0.3], [0, 0, 0.6, 0.4, 0]), 4000
    outputs = [
        one.ids
        for [one] in sample(model, range(n), range(n), constraints=Constraints(max_length=2))
    ]
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
    draw = SamplingOptions(temperature=0.1, top_k=1)
    [[one]] = sample(model, [0], [3], draw)
    assert one.ids == [3]
    assert one.log_prob == one.score == pytest.approx(math.log(0.5), abs=1e-6)


@pytest.mark.usefixtures("unchecked")
def test_only_the_seed_decides(recurrent, batching):
    model, memory = recurrent(900), torch.randn(64, 16)
    limits = torch.randint(3, 12, (64,)).tolist()
    for draw in (
        SamplingOptions(),
        SamplingOptions(0.7, top_k=20, top_p=0.9),
        SamplingOptions(min_p=0.1),
    ):

        def search(numbers, draw=draw):
            rules = Constraints(max_length=[limits[n] for n in numbers])
            seeds = [1000 + n for n in numbers]
            found = sample(model, memory[numbers], seeds, draw, copies=2, constraints=rules)
            return [[one.ids for one in outputs] for outputs in found]

        first, *others = batching(search, 64)
        assert len({tuple(outputs[0]) for outputs in first}) > 30
        assert all(other == first for other in others)


def test_more_copies_begin_with_the_same(story):
    few = sample(story(9), range(5), range(5), copies=2)
    many = sample(story(9), range(5), range(5), copies=4)
    assert [outputs[:2] for outputs in many] == few


def test_another_seed_draws_another(story):
    rules = Constraints(max_length=20, min_length=20)
    outputs = {
        tuple(sample(story(30), [0], [seed], constraints=rules)[0][0].ids) for seed in range(20)
    }
    assert len(outputs) == 20


def test_draws_are_the_same_on_every_machine(table):
    assert [noise_key(0, 0), noise_key(7, 1)] == [2341692149257169983, 5838461976545657873]
    model, rules = table([0, 0, 0.1] + [0.09] * 10), Constraints(max_length=8, min_length=8)
    assert sample(model, [0], [7], constraints=rules)[0][0].ids == [10, 4, 4, 10, 6, 11, 10, 7]


def test_cold_is_greedy(story):
    rules = Constraints(max_length=8)
    cold = sample(
        story(9), range(20), range(20), SamplingOptions(temperature=1e-4), constraints=rules
    )
    one = sample(story(9), range(20), range(20), SamplingOptions(top_k=1), constraints=rules)
    assert cold == one == greedy_search(story(9), range(20), 20, rules)


def test_rules_are_kept(story, seed):
    rules = Constraints(max_length=6, min_length=6, no_repeat_ngram=1, prefix=[[5, 3]] * 5)
    for outputs in sample(story(12, seed), range(5), range(5), copies=3, constraints=rules):
        assert len(outputs) == 3
        for output in outputs:
            assert output.ids[:2] == [5, 3]
            assert len(set(output.ids)) == 6


@pytest.mark.parametrize(
    "draw",
    [
        SamplingOptions(),
        SamplingOptions(top_k=2),
        SamplingOptions(top_p=0.5),
        SamplingOptions(min_p=0.5),
    ],
)
def test_nothing_left_to_say(story, draw):
    rules = Constraints(max_length=12, min_length=10, no_repeat_ngram=1, forbidden=(0, 1, 3))
    [[one]] = sample(story(9), [0], [0], draw, constraints=rules)
    assert sorted(one.ids) == [4, 5, 6, 7, 8]
    assert one.log_prob == -math.inf


def test_no_inputs(story):
    assert sample(story(9), [], []) == []


def test_nan_is_refused(table):
    with pytest.raises(ValueError, match="position 0: the model's log-probabilities are NaN"):
        sample(table([0.1, 0.1, 0.1, math.nan]), [0], [0])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"temperature": 0.0}, "temperature must be positive and finite, not 0.0; use greedy"),
        ({"temperature": math.inf}, "temperature must be positive"),
        ({"top_k": 0}, "top_k must be 1 or more"),
        ({"top_p": 0.0}, r"top_p must be in \(0, 1\], not 0.0"),
        ({"min_p": 1.5}, r"min_p must be in \(0, 1\], not 1.5"),
    ],
)
def test_wrong_settings(settings, says):
    with pytest.raises(ValueError, match=says):
        SamplingOptions(**settings)


def test_wrong_arguments(story):
    with pytest.raises(ValueError, match="copies must be 1 or more"):
        sample(story(9), [0], [0], copies=0)
    with pytest.raises(ValueError, match="beam search only"):
        sample(story(9), [0], [0], constraints=Constraints(phrases=[[[4]]]))
