"""Training goes on exactly where it was left, and its gradient is that of all tokens at once."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.tasks.loss import Loss
from regard.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from regard.training.ema import ExponentialMovingAverage, mean_weights
from regard.training.loop import Training
from regard.training.schedule import Plateau, constant, cosine, inverse_sqrt, noam


class Numbers:
    """Batches of unequal size whose place is one number."""

    epoch = 0
    batches_per_epoch = None

    def __init__(self):
        self.place = 0
        self.carried: dict[str, torch.Tensor] = {}

    def __next__(self) -> tuple[torch.Tensor, torch.Tensor]:
        self.place += 1
        draw = torch.Generator().manual_seed(self.place)
        x = torch.randn(1 + self.place % 4, 5, generator=draw)
        return x, x.sum(-1, keepdim=True)

    def state_dict(self) -> dict[str, Any]:
        return {"place": self.place}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.place = state["place"]


def begin(kind: str = "adam", accumulate: int = 1, autocast: torch.dtype | None = None) -> Training:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.3), nn.Tanh(), nn.Linear(8, 1))
    optimizer = {
        "adam": lambda p: torch.optim.Adam(p, 0.01),
        "adamw": lambda p: torch.optim.AdamW(p, 0.01, amsgrad=True),
        "adadelta": lambda p: torch.optim.Adadelta(p),
        "sgd": lambda p: torch.optim.SGD(p, 0.01, momentum=0.9),
    }[kind](model.parameters())

    def loss_of(batch: tuple[torch.Tensor, torch.Tensor], step: int) -> Loss:
        x, y = batch
        return Loss(F.mse_loss(model(x), y, reduction="sum"), len(x))

    return Training(
        model,
        loss_of,
        Numbers(),
        optimizer,
        schedule=inverse_sqrt(4),
        clip=1.0,
        accumulate=accumulate,
        ema=ExponentialMovingAverage(model),
        autocast=autocast,
    )


@pytest.mark.parametrize("kind", ["adam", "adamw", "adadelta", "sgd"])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_stopped_at_any_step_the_end_is_the_same(tmp_path: Path, kind: str, accumulate: int):
    whole = begin(kind, accumulate)
    losses = [step.loss for step in whole.steps(8)]
    for stop in range(8):
        first = begin(kind, accumulate)
        early = [step.loss for step in first.steps(stop)]
        path = save_checkpoint(tmp_path / str(stop), Checkpoint(stop, *first.state_dict()))
        torch.manual_seed(99)
        second = begin(kind, accumulate)
        saved = load_checkpoint(path)
        second.load_state_dict(saved.tensors, json.loads(json.dumps(saved.metadata)))
        late = [step.loss for step in second.steps(8)]
        assert early + late == losses
        for one, other in zip(second.model.parameters(), whole.model.parameters(), strict=True):
            assert torch.equal(one, other)
        assert second.ema is not None
        assert whole.ema is not None
        for name, value in whole.ema.weights.items():
            assert torch.equal(second.ema.weights[name], value)


def test_accumulated_batches_are_one_batch():
    """Of unequal sizes: the mean is over all tokens, not over batches."""
    training = begin("sgd", accumulate=3)
    training.model.eval()
    training.clip = None
    before = [p.clone() for p in training.model.parameters()]
    loss, tokens = training.backward()
    numbers = Numbers()
    batches = [next(numbers) for _ in range(3)]
    x, y = torch.cat([b[0] for b in batches]), torch.cat([b[1] for b in batches])
    want = F.mse_loss(training.model(x), y)
    grads = torch.autograd.grad(want, list(training.model.parameters()))
    assert tokens == len(x)
    assert loss / tokens == pytest.approx(want.item())
    for parameter, grad, old in zip(training.model.parameters(), grads, before, strict=True):
        torch.testing.assert_close(parameter.grad, grad)
        assert torch.equal(parameter, old)


def test_a_step_tells_what_it_did():
    training = begin()
    step = next(training.steps(1))
    assert step.number == 1
    assert step.learning_rate == pytest.approx(0.01 / 4)
    assert step.gradient_norm > 0
    norm = nn.utils.get_total_norm([p.grad for p in training.model.parameters()]).item()
    assert norm == pytest.approx(min(1.0, step.gradient_norm), rel=1e-4)


def test_float16_is_resumed_with_the_factor_of_its_losses():
    """An overflow skips the step and halves the factor, which a checkpoint holds."""
    training = begin(autocast=torch.float16)
    next(training.steps(1))
    training.scaler.update(2.0**40)  # overflows
    before = [p.clone() for p in training.model.parameters()]
    skipped = next(training.steps(2))
    assert skipped.gradient_norm == 0
    assert all(torch.equal(a, b) for a, b in zip(training.model.parameters(), before, strict=True))
    assert training.scaler.get_scale() == 2.0**39
    tensors, metadata = training.state_dict()
    tensors = {group: {k: v.clone() for k, v in t.items()} for group, t in tensors.items()}
    expected = [step.loss for step in training.steps(6)]
    resumed = begin(autocast=torch.float16)
    resumed.load_state_dict(tensors, json.loads(json.dumps(metadata)))
    assert resumed.scaler.get_scale() == 2.0**39
    assert [step.loss for step in resumed.steps(6)] == expected


def test_a_gradient_that_is_not_finite_stops_before_it_does_harm():
    training = begin()
    before = [p.clone() for p in training.model.parameters()]
    training.loss_function = lambda batch, _: Loss(training.model(batch[0]).sum() * torch.inf, 1)
    with pytest.raises(ValueError, match="step 1: the gradient norm is"):
        training.step()
    assert all(torch.equal(a, b) for a, b in zip(training.model.parameters(), before, strict=True))


def test_schedules_by_hand():
    assert [constant(4)(n) for n in (1, 2, 4, 9)] == [0.25, 0.5, 1.0, 1.0]
    assert [inverse_sqrt(4)(n) for n in (1, 4, 16)] == [0.25, 1.0, 0.5]
    assert noam(512, 4000)(4000) == pytest.approx((512 * 4000) ** -0.5)
    assert noam(512, 4000)(16000) == pytest.approx((512 * 16000) ** -0.5)
    curve = cosine(10, warmup=2, floor=0.1)
    assert [curve(n) for n in (1, 2, 6, 10, 12)] == pytest.approx([0.5, 1.0, 0.55, 0.1, 0.1])
    plateau = Plateau(0.5, patience=1)
    for improved in (True, False, False, False, False):
        plateau.update(improved)
    assert plateau(1) == 0.25
    other = Plateau(0.5, patience=1)
    other.load_state_dict(json.loads(json.dumps(plateau.state_dict())))
    assert other(1) == 0.25


def test_averages():
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    average = ExponentialMovingAverage(model, decay=0.5)
    nn.init.ones_(model.weight)
    average.update(model)
    assert average.weights["weight"].item() == pytest.approx(0.9)  # decay 1/10 at first
    for _ in range(50):
        average.update(model)
    assert average.weights["weight"].item() == pytest.approx(1)
    sets = [{"w": torch.tensor([1.0, 2.0]), "n": torch.tensor(k)} for k in (1, 2)]
    sets[1]["w"] = torch.tensor([3.0, 6.0])
    averaged = mean_weights(sets)
    assert averaged["w"].tolist() == [2.0, 4.0]
    assert averaged["n"].item() == 2
    with pytest.raises(ValueError, match="different models"):
        mean_weights([{"w": torch.zeros(1)}, {"v": torch.zeros(1)}])
