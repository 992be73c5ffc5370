"""Piano rolls: the loss against a loop from the equation, padding, samples, attention."""

import json
import math

import pytest
import torch

from regard.metrics.music import step_nll
from regard.models.roll import RollGpt, RollRnn
from regard.tasks.music.rolls import KEY_COUNT, LOWEST_PITCH, PianoRollTask, collate_pieces

PIECES = [[(60, 64), (), (62, 65, 69)], [(21, 108)], [(50,), (52,), (53,), (53, 57), (55,)]]
RECORDS = [{"text": json.dumps(piece)} for piece in PIECES]


@pytest.fixture(scope="module", params=[RollRnn, RollGpt])
def task(request) -> PianoRollTask:
    torch.manual_seed(0)
    return PianoRollTask(request.param(KEY_COUNT, dim=8).double(), max_steps=99)


@pytest.fixture(autouse=True)
def double_precision():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def loss_by_hand(model, piece, first_step):
    """Return -log p of each step given those before it, with one call of the model per step."""
    total = 0.0
    for time in range(first_step, len(piece)):
        inputs = torch.zeros(1, time + 1, KEY_COUNT)
        for step, pitches in enumerate(piece[:time], 1):
            for pitch in pitches:
                inputs[0, step, pitch - LOWEST_PITCH] = 1
        states, _ = model.read(model.begin(1), inputs)
        probabilities = model.logits(states[0, -1]).sigmoid().tolist()
        total += step_nll(probabilities, [pitch - LOWEST_PITCH for pitch in piece[time]])
    return total


@pytest.mark.parametrize("first_step", [0, 1])
def test_loss_equals_the_equation(task, first_step):
    task.model.eval()
    batch = task.collate(list(task.examples(RECORDS)))
    loss = task.loss_from(batch, first_step)
    expected = sum(loss_by_hand(task.model, piece, first_step) for piece in PIECES)
    assert loss.total.item() == pytest.approx(expected, rel=1e-9)
    assert loss.count == sum(len(piece) - first_step for piece in PIECES)


def test_padding_does_not_count(task):
    examples = list(task.examples(RECORDS))
    total = task.negative_log_likelihood_of(examples)
    losses = [task.negative_log_likelihood_of([example]) for example in examples]
    assert total.total.item() == pytest.approx(sum(loss.total.item() for loss in losses))
    assert total.count == sum(loss.count for loss in losses) == 9


def test_long_pieces_are_cut(task):
    examples = list(PianoRollTask(task.model, max_steps=2).examples(RECORDS))
    assert [list(example.steps) for example in examples] == [
        *([(60, 64), ()], [(62, 65, 69)], [(21, 108)]),
        *([(50,), (52,)], [(53,), (53, 57)], [(55,)]),
    ]
    assert [example.index for example in examples] == [0, 0, 1, 2, 2, 2]


def test_pieces_become_rolls_one_step_apart():
    batch = collate_pieces([[(21, 23), (108,)], [()]])
    assert batch.targets.nonzero().tolist() == [[0, 0, 0], [0, 0, 2], [0, 1, 87]]
    assert batch.inputs.nonzero().tolist() == [[0, 1, 0], [0, 1, 2]]
    assert batch.valid.tolist() == [[True, True], [True, False]]


def test_samples_depend_on_seed_beginning_and_occurrence(task):
    beginning, empty = {"beginning": [(60,)]}, {"beginning": []}
    composer, other = (PianoRollTask(task.model, new_steps=6, seed=seed) for seed in (3, 4))
    first, unprompted, repeated = composer.predict([beginning, empty, beginning])
    assert first.steps[0] == (60,)
    assert (len(first.steps), len(unprompted.steps)) == (7, 6)
    assert first.steps != repeated.steps  # a repeated beginning has another continuation
    [alone] = composer.predict([beginning])
    assert alone.steps == first.steps
    assert alone.log_prob == pytest.approx(first.log_prob)
    assert other.predict([beginning]) != [alone]
    [four_voices] = composer.predict([beginning], voices=4)
    assert [len(step) for step in four_voices.steps] == [1, *[4] * 6]


def test_log_prob_does_not_depend_on_temperature(task):
    composer = PianoRollTask(task.model, new_steps=4, temperature=0.7)
    [piece] = composer.predict([{"beginning": [(60,)]}])
    assert piece.log_prob == pytest.approx(-loss_by_hand(task.model, piece.steps, 1), rel=1e-6)


def test_frequency_of_keys_equals_their_probability():
    """With all weights zero but the output bias, each key has its own probability."""
    model = RollRnn(KEY_COUNT, dim=4)
    for weight in model.parameters():
        torch.nn.init.zeros_(weight)
    model.out.bias.data.copy_(torch.linspace(-4, 4, KEY_COUNT))
    for temperature in (1.0, 0.4):
        composer = PianoRollTask(model, new_steps=400, temperature=temperature)
        [piece] = composer.predict([{"beginning": []}])
        frequencies = collate_pieces([piece.steps]).targets[0].mean(0)
        probabilities = (torch.linspace(-4, 4, KEY_COUNT) / temperature).sigmoid()
        assert (frequencies - probabilities).abs().max() < 5 * math.sqrt(0.25 / 400)


def test_next_keys_are_sorted_by_probability(task):
    best = task.next_keys([(60, 64)], 88)
    assert sorted(pitch for pitch, _ in best) == list(range(21, 109))
    assert [p for _, p in best] == sorted((p for _, p in best), reverse=True)


def test_attention_is_causal_and_sums_to_1():
    task = PianoRollTask(RollGpt(KEY_COUNT, dim=8, heads=2, layers=1))
    weights = task.attention_weights(PIECES[0])
    assert weights.shape == (4, 4)  # three steps and the silence before them
    torch.testing.assert_close(weights.sum(-1), torch.ones(4))
    assert weights.triu(1).abs().max() == 0
    with pytest.raises(ValueError, match="no attention to observe"):
        PianoRollTask(RollRnn(KEY_COUNT, dim=8)).attention_weights(PIECES[0])


def test_temperature_must_be_positive(task):
    with pytest.raises(ValueError, match="temperature must be positive, not 0"):
        PianoRollTask(task.model, temperature=0.0)


def test_lines_become_beginnings_of_pieces(task):
    assert task.parse("", "input 1") == {"beginning": []}
    assert task.parse("[[64, 60]]", "input 1") == {"beginning": [(60, 64)]}
    with pytest.raises(ValueError, match="input 2: not JSON"):
        task.parse("x", "input 2")


def test_predictions_and_metrics(task):
    [piece] = task.predict([{"beginning": [(60,)]}])
    assert json.loads(piece.file_text) == [list(step) for step in piece.steps]
    assert piece.notes[0][:2] == (60, 0)
    fields = piece.as_dict()
    assert fields.pop("notes")[0].items() >= {"pitch": 60, "start": 0.0}.items()
    assert fields == {"steps": piece.steps, "log_prob": piece.log_prob, "given": 1}
    assert list(task.score(RECORDS)) == [
        *("nll", "nll_signature", "nll_all", "nll_all_signature", "steps", "pieces")
    ]
