"""What every model obeys that learns within an episode: each law is tried on all of them."""

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.observe import observe
from regard.models.catalogue import build_model, model_settings
from regard.tasks.catalogue import model_kinds

SEEN, SAID, ROWS, STEPS = 5, 3, 3, 6
KINDS: list[tuple[str, dict[str, Any]]] = [
    *((kind, {}) for kind in dict.fromkeys((*model_kinds("copy"), *model_kinds("bandit")))),
    ("ntm", {"controller": "feedforward", "read_heads": 2, "slots": 9}),
    ("ntm", {"write_heads": 2, "max_shift": 2, "slots": 9}),
    ("lstm", {"layers": 2}),
    ("snail", {"blocks": ("A(3, 2)", "TC(4)", "A(2, 3)")}),
    ("snail", {"dim": None, "dilation": 2}),
]
every_model = pytest.mark.parametrize(
    ("kind", "settings"), KINDS, ids=lambda one: str(one).replace(" ", "")
)


def made(kind: str, settings: dict[str, Any]) -> Any:
    """Weights are drawn wide: a law that holds at the start may not hold after."""
    sizes = {"source_size": SEEN, "target_size": SAID, "dim": 8, "steps": STEPS}
    known = {name: size for name, size in sizes.items() if name in model_settings(kind)}
    model = build_model(kind, {**known, **settings}).double()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.eval()


def some(rows: int = ROWS, steps: int = STEPS) -> Tensor:
    return torch.randn(rows, steps, SEEN, dtype=torch.float64)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


@every_model
def test_a_step_knows_only_what_came_before(kind, settings):
    model, inputs = made(kind, settings), some()
    whole = model.episode(inputs)
    assert whole.shape == (ROWS, STEPS, SAID)
    close(model.episode(inputs[:, :4]), whole[:, :4])
    changed = inputs.clone()
    changed[:, 2] += 1
    other = model.episode(changed)
    close(other[:, :2], whole[:, :2])
    assert not torch.allclose(other[:, 5], whole[:, 5])  # and it is remembered


@every_model
def test_rows_do_not_know_each_other(kind, settings, unchecked):
    model, inputs = made(kind, settings), some()
    whole = model.episode(inputs)
    for row in range(ROWS):
        close(model.episode(inputs[row : row + 1])[0], whole[row])


@every_model
def test_an_episode_begins_anew(kind, settings, unchecked):
    model, inputs = made(kind, settings), some()
    first = model.episode(inputs)
    model.episode(some())
    assert torch.equal(model.episode(inputs), first)


@every_model
def test_looking_changes_nothing(kind, settings, unchecked):
    model, inputs = made(kind, settings), some()
    plain = model.episode(inputs)
    if not any(isinstance(part, Attention) for part in model.modules()):
        with pytest.raises(ValueError, match="has no attention to observe"), observe(model):
            pass
        return
    with observe(model) as seen:
        looked = model.episode(inputs)
    assert torch.equal(plain, looked)
    for weights in seen.joined().values():
        assert weights.shape[0] == ROWS
        assert weights.shape[-2] == STEPS
        close(weights.sum(-1), torch.ones_like(weights[..., 0]))


@every_model
def test_every_weight_learns(kind, settings, unchecked):
    model = made(kind, settings)
    model.episode(some()).square().sum().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().sum() > 0, name


@every_model
def test_feedback_is_taken(kind, settings, unchecked):
    model, inputs = made(kind, settings), some()
    assert list(inspect.signature(model.episode).parameters) == ["inputs", "feedback"]
    close(model.episode(inputs[..., :-2], inputs[..., -2:]), model.episode(inputs))
    with pytest.raises(ValueError, match="inputs and feedback must be 5 wide, not 4"):
        model.episode(inputs[..., :-1])


@every_model
def test_those_that_act_go_on_where_they_were(kind, settings, unchecked):
    """Step by step as all at once; models that are only shown whole sequences have no `read`."""
    if kind not in model_kinds("bandit"):
        pytest.skip(f"{kind} does not act")
    model, inputs = made(kind, settings), some()
    state, found = model.begin(ROWS), []
    with torch.no_grad():
        for step in inputs.split(1, 1):
            said, state = model.read(state, step)
            found.append(said)
    close(torch.cat(found, 1), model.episode(inputs))
