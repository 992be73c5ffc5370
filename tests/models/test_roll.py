"""Models of piano rolls: size, torch's LSTM, and steps against one pass."""

import pytest
import torch

from regard.models.catalogue import build_model
from regard.models.roll import RollRnn

KINDS = {"roll_rnn": {"dim": 12}, "roll_gpt": {"dim": 12, "heads": 2, "layers": 2}}


@pytest.fixture(
    params=[("roll_rnn", cell) for cell in ("lstm", "gru", "elman")] + [("roll_gpt", "")]
)
def model(request):
    kind, cell = request.param
    more = {"cell": cell} if cell else {}
    return build_model(kind, {"size": 88, **KINDS[kind], **more}).eval()


def random_rolls(rows=2, steps=7):
    return (torch.rand(rows, steps, 88) < 0.1).float()


def test_the_published_size():
    """One layer of 200 has 249,688 weights, as published."""
    assert sum(p.numel() for p in RollRnn(88).parameters()) == 249_688


def test_as_torch_computes_it():
    model = RollRnn(88, dim=16).eval()
    torch_lstm = torch.nn.LSTM(88, 16, batch_first=True)
    model.layers.load_torch_weights(torch_lstm)
    rolls = random_rolls()
    want = torch.nn.functional.linear(torch_lstm(rolls)[0], model.out.weight, model.out.bias)
    states, _ = model.read(model.begin(2), rolls)
    torch.testing.assert_close(model.logits(states), want)


def test_step_by_step_is_all_at_once(model):
    rolls = random_rolls()
    full = model.logits(model.read(model.begin(2), rolls)[0])
    _, state = model.read(model.begin(2), rolls[:, :3])
    for time in range(3, 7):
        logits, state = model.step(state, rolls[:, time])
        torch.testing.assert_close(logits, full[:, time])


def test_rows_can_be_chosen(model):
    rolls = random_rolls(3)
    _, state = model.read(model.start(model.begin(3)), rolls)
    after = random_rolls(3, 1)[:, 0]
    want, _ = model.step(state, after)
    rows = torch.tensor([2, 0])
    logits, _ = model.step(model.detach(model.select(state, rows)), after[rows])
    torch.testing.assert_close(logits, want[rows])


def test_the_future_changes_nothing(model):
    rolls = random_rolls(1)
    changed_rolls = rolls.clone()
    changed_rolls[:, 4:] = 1 - changed_rolls[:, 4:]
    logits, changed_logits = (
        model.logits(model.read(model.begin(1), x)[0]) for x in (rolls, changed_rolls)
    )
    torch.testing.assert_close(logits[:, :4], changed_logits[:, :4])
    assert not torch.allclose(logits[:, 4:], changed_logits[:, 4:])


def test_masks_are_one_for_a_piece():
    model = RollRnn(88, dim=12, input_dropout=0.5, state_dropout=0.5).train()
    state = model.begin(2)
    rolls = random_rolls()
    first, _ = model.read(state, rolls)
    second, _ = model.read(state, rolls)
    torch.testing.assert_close(first, second)  # equal masks
    assert not torch.allclose(first, model.read(model.begin(2), rolls)[0])


@pytest.mark.usefixtures("unchecked")
def test_wrong_settings():
    with pytest.raises(ValueError, match="cell must be one of lstm, gru, elman, not 'rnn'"):
        build_model("roll_rnn", {"size": 88, "cell": "rnn"})
