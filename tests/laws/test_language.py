"""What every language model obeys: each law is tried on each of `MAKERS`.

Shapes are checked in the first law; the others go without, for speed.
"""

import math
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.decoding.stepper import Stepper
from regard.models.lstmn import Lstmn
from regard.models.rnnlm import Rnnlm
from regard.tasks.loss import cross_entropy

SIZE, ROWS, LENGTH = 11, 3, 6
MAKERS = {
    "rnnlm lstm": partial(Rnnlm, SIZE, dim=6),
    "rnnlm gru": partial(Rnnlm, SIZE, dim=6, cell="gru", layers=2),
    "rnnlm elman": partial(Rnnlm, SIZE, dim=6, cell="elman"),
    "rnnlm sigmoid": partial(Rnnlm, SIZE, dim=6, cell="sigmoid", layers=2),
    "rnnlm tied": partial(Rnnlm, SIZE, dim=6, tie_embeddings=True),
    "rnnlm tied, projected": partial(
        Rnnlm, SIZE, dim=5, hidden_dim=7, layers=2, tie_embeddings=True
    ),
    "lstmn": partial(Lstmn, SIZE, dim=6),
    "lstmn deep": partial(
        Lstmn, SIZE, dim=5, hidden_dim=7, align_dim=4, layers=2, tie_embeddings=True
    ),
    "lstmn sparse": partial(Lstmn, SIZE, dim=6, normalize="sparsemax"),
}
every_model = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def made(make: Any, **settings: Any) -> Any:
    """Weights are drawn wide: some start at 0, and a law that holds there may not hold after."""
    model = make(**settings).double().eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.4)
    return model


def some_ids(rows: int = ROWS, length: int = LENGTH) -> Tensor:
    return torch.randint(SIZE, (rows, length))


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def stepped(model: Any, state: Any, ids: Tensor) -> Tensor:
    """Log-probabilities after each token, one step at a time."""
    seen = []
    for tokens in ids.unbind(1):
        scores, state = model.step(state, tokens)
        seen.append(scores)
    return torch.stack(seen, 1)


@every_model
@pytest.mark.parametrize("grad", [True, False], ids=["gradient", "no gradient"])
def test_reading_at_once_is_reading_one_by_one(make, grad):
    model, ids = made(make), some_ids()
    assert isinstance(model, Stepper)
    assert model.cross_attentions == ()
    with torch.set_grad_enabled(grad):
        states, after = model.read(model.begin(ROWS), ids)
        log_probs = model.logits(states).log_softmax(-1)
        close(model.teacher_forced(None, ids), states)
        close(stepped(model, model.start(model.begin(ROWS)), ids), log_probs)
        for cut in (1, 4):  # and in two pieces; the state after is the same
            first, state = model.read(model.begin(ROWS), ids[:, :cut])
            second, end = model.read(state, ids[:, cut:])
            close(torch.cat([first, second], 1), states)
            close(model.teacher_forced(state, ids[:, cut:]), second)
            for tokens in (ids[:, 0], ids[:, 1]):
                close(model.step(end, tokens)[0], model.step(after, tokens)[0])
    assert log_probs.shape == (ROWS, LENGTH, SIZE)
    close(log_probs.exp().sum(-1), torch.ones(ROWS, LENGTH, dtype=torch.float64))


@every_model
def test_the_future_is_not_seen(make, unchecked):
    model, ids = made(make), some_ids()
    expected = model.teacher_forced(None, ids)
    for position in range(1, LENGTH):
        changed = ids.clone()
        changed[:, position:] = (changed[:, position:] + 1) % SIZE
        states = model.teacher_forced(None, changed)
        close(states[:, :position], expected[:, :position])
        assert not torch.allclose(states[:, position], expected[:, position])


@every_model
def test_the_past_is_seen(make, unchecked):
    model, ids = made(make), some_ids()
    expected = model.teacher_forced(None, ids)[:, -1]
    reach = 0 if "sparse" not in str(make) else LENGTH - 1  # weights may be 0 there
    for position in range(reach, LENGTH):
        changed = ids.clone()
        changed[:, position] = (changed[:, position] + 1) % SIZE
        assert not torch.allclose(model.teacher_forced(None, changed)[:, -1], expected, rtol=1e-12)


@every_model
def test_a_step_changes_no_state(make, unchecked):
    """Two continuations of one state know nothing of each other."""
    model, ids = made(make), some_ids()
    with torch.no_grad():
        _, state = model.read(model.begin(ROWS), ids[:, :3])
        once, after = model.step(state, ids[:, 3])
        other, _ = model.step(state, (ids[:, 3] + 1) % SIZE)
        again, _ = model.step(state, ids[:, 3])
        follow, _ = model.step(after, ids[:, 4])
        model.read(state, ids[:, 2:])
        close(model.step(after, ids[:, 4])[0], follow)
    close(once, again)
    assert not torch.allclose(once, other)


@every_model
def test_select_is_gather(make, unchecked):
    model, ids = made(make), some_ids()
    with torch.no_grad():
        expected = stepped(model, model.begin(ROWS), ids)
        for rows in ([2, 0, 0], [1], [0, 1, 2], [2, 1, 0, 0, 1]):
            _, state = model.read(model.begin(ROWS), ids[:, :2])
            state = model.select(state, torch.tensor(rows))
            close(stepped(model, state, ids[rows][:, 2:4]), expected[rows][:, 2:4])
            for tokens in ids[rows][:, 2:4].unbind(1):
                _, state = model.step(state, tokens)
            again = torch.tensor([len(rows) - 1, 0])  # once more, from the rows that there are now
            state = model.select(state, again)
            close(stepped(model, state, ids[rows][again, 4:]), expected[rows][again, 4:])
        empty = model.select(model.begin(ROWS), torch.tensor([1, 1]))
        close(stepped(model, empty, ids[:2]), expected[:2])


@every_model
def test_a_row_does_not_see_the_others(make, unchecked):
    model, ids = made(make), some_ids()
    states = model.teacher_forced(None, ids)
    for row in range(ROWS):
        close(model.teacher_forced(None, ids[row : row + 1]), states[row : row + 1])
    order = torch.tensor([2, 0, 1])
    close(model.teacher_forced(None, ids[order]), states[order])


@every_model
def test_detach_cuts_the_gradient_and_nothing_else(make, unchecked):
    model, words = made(make), torch.arange(SIZE)
    early, late = torch.randint(5, (ROWS, 3)), torch.randint(5, SIZE, (ROWS, 3))

    def gradient(state: Any) -> tuple[Tensor, Tensor]:
        """Of the words' vectors as input: what a tied output adds is left out."""
        states, _ = model.read(state, late)
        return states, torch.autograd.grad(states.sum(), model.words.weight)[0]

    _, state = model.read(model.begin(ROWS), early)
    kept, through = gradient(state)
    cut, stopped = gradient(model.detach(state))
    close(kept, cut)
    assert through[early[:, -1]].any()
    assert not stopped[words < 5].any()
    assert stopped[late].any()


@every_model
def test_gradients_are_finite_and_reach_every_parameter(make, unchecked):
    model, ids = made(make).train(), some_ids()
    states = model.teacher_forced(None, ids[:, :-1])
    loss = cross_entropy(model.output, states, ids[:, 1:], torch.ones_like(ids[:, 1:]).bool())
    loss.total.backward()
    with torch.no_grad():
        picked = model.logits(states).log_softmax(-1).gather(-1, ids[:, 1:, None])
    close(loss.total.detach(), -picked.sum())
    for key, weight in model.named_parameters():
        assert weight.grad is not None, key
        assert weight.grad.isfinite().all(), key
        assert weight.grad.any(), key


@every_model
def test_dropout_drops_in_training_only(make, unchecked):
    model, ids = made(make, dropout=0.5), some_ids()
    assert torch.equal(model.teacher_forced(None, ids), model.teacher_forced(None, ids))
    model.train()
    assert not torch.equal(model.teacher_forced(None, ids), model.teacher_forced(None, ids))
    assert stepped(model, model.begin(ROWS), ids).isfinite().all()


@every_model
def test_it_starts_without_knowing_anything(make):
    """At the given start, an untrained model is close to ignorance."""
    model = make().eval()
    told = stepped(model, model.begin(ROWS), some_ids())
    entropy = -(told.exp() * told).sum(-1).mean()
    assert 0.8 * math.log(SIZE) < entropy <= math.log(SIZE) + 1e-6
