"""Piano rolls: the loss against a loop from the equation, padding, what is drawn, what is seen."""

import json
import math

import pytest
import torch

from regard.metrics.music import step_nll
from regard.models.roll import RollGpt, RollRnn
from regard.tasks.music.rolls import KEY_COUNT, LOWEST_PITCH, PianoRollTask, collate_pieces

PIECES = [[(60, 64), (), (62, 65, 69)], [(21, 108)], [(50,), (52,), (53,), (53, 57), (55,)]]
RECORDS = [{"text": json.dumps(piece)} for piece in PIECES]


@pytest.fixture(params=[RollRnn, RollGpt])
def music(request):
    return PianoRollTask(request.param(KEY_COUNT, dim=8).double(), max_steps=99)


@pytest.fixture(autouse=True)
def exact():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def by_hand(model, piece, first):
    """Each step from those before it, one model call each: -sum of both terms, over all keys."""
    total = 0.0
    for time in range(first, len(piece)):
        heard = torch.zeros(1, time + 1, KEY_COUNT)
        for step, pitches in enumerate(piece[:time], 1):
            for pitch in pitches:
                heard[0, step, pitch - LOWEST_PITCH] = 1
        states, _ = model.read(model.begin(1), heard)
        chances = model.logits(states[0, -1]).sigmoid().tolist()
        total += step_nll(chances, [pitch - LOWEST_PITCH for pitch in piece[time]])
    return total


@pytest.mark.parametrize("first", [0, 1])
def test_loss_is_the_equation(music, first):
    music.model.eval()
    batch = music.collate(list(music.examples(RECORDS)))
    loss = music.loss_from(batch, first)
    want = sum(by_hand(music.model, piece, first) for piece in PIECES)
    assert loss.total.item() == pytest.approx(want, rel=1e-9)
    assert loss.count == sum(len(piece) - first for piece in PIECES)


def test_padding_counts_nothing(music):
    pairs = list(music.examples(RECORDS))
    whole = music.negative_log_likelihood_of(pairs)
    apart = [music.negative_log_likelihood_of([pair]) for pair in pairs]
    assert whole.total.item() == pytest.approx(sum(one.total.item() for one in apart))
    assert whole.count == sum(one.count for one in apart) == 9


def test_long_pieces_are_cut(music):
    pairs = list(PianoRollTask(music.model, max_steps=2).examples(RECORDS))
    assert [list(pair.source) for pair in pairs] == [
        *([(60, 64), ()], [(62, 65, 69)], [(21, 108)]),
        *([(50,), (52,)], [(53,), (53, 57)], [(55,)]),
    ]
    assert [pair.index for pair in pairs] == [0, 0, 1, 2, 2, 2]


def test_rolls():
    batch = collate_pieces([[(21, 23), (108,)], [()]])
    assert batch.targets.nonzero().tolist() == [[0, 0, 0], [0, 0, 2], [0, 1, 87]]
    assert batch.inputs.nonzero().tolist() == [[0, 1, 0], [0, 1, 2]]
    assert batch.valid.tolist() == [[True, True], [True, False]]


def test_what_is_drawn(music):
    beginning, nothing = {"beginning": [(60,)]}, {"beginning": []}
    drawn, other = (PianoRollTask(music.model, new_steps=6, seed=seed) for seed in (3, 4))
    one, two, three = drawn.predict([beginning, nothing, beginning])
    assert one.steps[0] == (60,)
    assert (len(one.steps), len(two.steps)) == (7, 6)
    assert one.steps != three.steps  # the same beginning draws anew
    [alone] = drawn.predict([beginning])
    assert alone.steps == one.steps
    assert alone.log_prob == pytest.approx(one.log_prob)
    assert other.predict([beginning]) != [alone]
    [four] = drawn.predict([beginning], voices=4)
    assert [len(step) for step in four.steps] == [1, *[4] * 6]


def test_log_prob_is_the_models(music):
    task = PianoRollTask(music.model, new_steps=4, temperature=0.7)
    [piece] = task.predict([{"beginning": [(60,)]}])
    want = by_hand(music.model, piece.steps, 1)
    assert piece.log_prob == pytest.approx(-want, rel=1e-6)


def test_keys_sound_as_often_as_the_model_says():
    """With no weights but the bias of the output, each key has a chance of its own."""
    model = RollRnn(KEY_COUNT, dim=4)
    for weight in model.parameters():
        torch.nn.init.zeros_(weight)
    model.out.bias.data.copy_(torch.linspace(-4, 4, KEY_COUNT))
    for temperature in (1.0, 0.4):
        task = PianoRollTask(model, new_steps=400, temperature=temperature)
        [piece] = task.predict([{"beginning": []}])
        seen = collate_pieces([piece.steps]).targets[0].mean(0)
        chance = (torch.linspace(-4, 4, KEY_COUNT) / temperature).sigmoid()
        assert (seen - chance).abs().max() < 5 * math.sqrt(0.25 / 400)


def test_next_keys(music):
    best = music.next_keys([(60, 64)], 88)
    assert sorted(pitch for pitch, _ in best) == list(range(21, 109))
    assert [p for _, p in best] == sorted((p for _, p in best), reverse=True)


def test_what_is_looked_at():
    music = PianoRollTask(RollGpt(KEY_COUNT, dim=8, heads=2, layers=1))
    seen = music.attention_weights(PIECES[0])
    assert seen.shape == (4, 4)  # and the silence before
    torch.testing.assert_close(seen.sum(-1), torch.ones(4))
    assert seen.triu(1).abs().max() == 0
    with pytest.raises(ValueError, match="no attention to observe"):
        PianoRollTask(RollRnn(KEY_COUNT, dim=8)).attention_weights(PIECES[0])


def test_what_is_wrong(music):
    with pytest.raises(ValueError, match="temperature must be positive, not 0"):
        PianoRollTask(music.model, temperature=0.0)


def test_lines(music):
    assert music.parse("", "input 1") == {"beginning": []}
    assert music.parse("[[64, 60]]", "input 1") == {"beginning": [(60, 64)]}
    with pytest.raises(ValueError, match="input 2: not JSON"):
        music.parse("x", "input 2")
    [piece] = music.predict([{"beginning": [(60,)]}])
    assert json.loads(piece.file_text) == [list(step) for step in piece.steps]
    assert piece.notes[0][:2] == (60, 0)
    assert piece.as_dict() == {"steps": piece.steps, "log_prob": piece.log_prob}
    assert list(music.score(RECORDS)) == [
        *("nll", "nll_signature", "nll_all", "nll_all_signature", "steps", "pieces")
    ]
