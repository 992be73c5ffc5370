"""Models of piano rolls: sizes, torch's own LSTM, and step by step as all at once."""

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


def rolls(rows=2, steps=7):
    return (torch.rand(rows, steps, 88) < 0.1).float()


def test_the_published_size():
    """One layer of 200, as in the tables of papers: 249,688 weights."""
    assert sum(p.numel() for p in RollRnn(88).parameters()) == 249_688


def test_as_torch_computes_it():
    ours = RollRnn(88, dim=16).eval()
    theirs = torch.nn.LSTM(88, 16, batch_first=True)
    ours.layers.load_torch_weights(theirs)
    given = rolls()
    want = torch.nn.functional.linear(theirs(given)[0], ours.out.weight, ours.out.bias)
    states, _ = ours.read(ours.begin(2), given)
    torch.testing.assert_close(ours.logits(states), want)


def test_step_by_step_is_all_at_once(model):
    given = rolls()
    whole = model.logits(model.read(model.begin(2), given)[0])
    _, state = model.read(model.begin(2), given[:, :3])
    for time in range(3, 7):
        logits, state = model.step(state, given[:, time])
        torch.testing.assert_close(logits, whole[:, time])


def test_rows_can_be_chosen(model):
    given = rolls(3)
    _, state = model.read(model.start(model.begin(3)), given)
    after = rolls(3, 1)[:, 0]
    want, _ = model.step(state, after)
    rows = torch.tensor([2, 0])
    logits, _ = model.step(model.detach(model.select(state, rows)), after[rows])
    torch.testing.assert_close(logits, want[rows])


def test_nothing_is_seen_before_it_sounds(model):
    given = rolls(1)
    other = given.clone()
    other[:, 4:] = 1 - other[:, 4:]
    one, two = (model.logits(model.read(model.begin(1), x)[0]) for x in (given, other))
    torch.testing.assert_close(one[:, :4], two[:, :4])
    assert not torch.allclose(one[:, 4:], two[:, 4:])


def test_masks_are_one_for_a_piece():
    model = RollRnn(88, dim=12, input_dropout=0.5, state_dropout=0.5).train()
    state = model.begin(2)
    given = rolls()
    one, _ = model.read(state, given)
    again, _ = model.read(state, given)
    torch.testing.assert_close(one, again)  # the same masks
    assert not torch.allclose(one, model.read(model.begin(2), given)[0])


@pytest.mark.usefixtures("unchecked")
def test_wrong_settings():
    with pytest.raises(ValueError, match="cell must be one of lstm, gru, elman, not 'rnn'"):
        build_model("roll_rnn", {"size": 88, "cell": "rnn"})
