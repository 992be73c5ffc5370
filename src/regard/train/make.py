"""The parts of a training, as the settings name them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from regard.config.settings import Settings
from regard.config.train import Train, TranslateTrain
from regard.tasks.loss import Loss
from regard.train.average import Average
from regard.train.loop import Source, Training
from regard.train.schedule import Plateau, Schedule, constant, cosine, inverse_sqrt, noam


def training_of(
    settings: Settings,
    model: torch.nn.Module,
    loss: Callable[[Any, int], Loss],
    batches: Source,
    groups: Sequence[Mapping[str, Any]] | None = None,
) -> Training:
    """Steps as the settings want them; `loss` is asked for a batch, after so many steps.

    `groups` are parameters to be trained, and at which share of the learning rate (`rate`).
    """
    train = settings.train
    if isinstance(train, TranslateTrain) and train.compile:
        for name in ("remember", "forced"):
            setattr(model, name, torch.compile(getattr(model, name), dynamic=True))
    training = Training(
        model,
        lambda batch: loss(batch, training.done),
        batches,
        optimiser_of(train, groups or [{"params": list(model.parameters()), "rate": 1.0}]),
        schedule=schedule_of(train, settings.model),
        clip=train.clip or None,
        accumulate=train.accumulate,
        average=None if train.ema is None else Average(model, train.ema),
        autocast=None if train.autocast is None else getattr(torch, train.autocast),
    )
    return training


def forcing(train: TranslateTrain, done: int) -> float:
    """How often the decoder reads the truth: it falls along a line, then stays."""
    steps = train.teacher_forcing_steps
    gone = min(done / steps, 1.0) if steps else 1.0
    return 1 - gone * (1 - train.teacher_forcing)


def paced(
    model: torch.nn.Module, groups: Sequence[Mapping[str, Any]], rates: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Groups with the named parts of the model taken out, each at its own rate; what is left first.

    Of two names that both fit the longer one counts.
    """
    own: dict[torch.nn.Parameter, str] = {}
    for part in sorted(rates, key=len):
        found = {
            p: part for name, p in model.named_parameters() if f"{name}.".startswith(f"{part}.")
        }
        if not found:
            parts = ", ".join(sorted({name.split(".")[0] for name, _ in model.named_parameters()}))
            raise ValueError(f"train.rates: the model has no part {part!r}; it has {parts}")
        own |= found
    made = [{**one, "params": [p for p in one["params"] if p not in own]} for one in groups]
    for group in groups:
        for part, rate in rates.items():
            named = [p for p in group["params"] if own.get(p) == part]
            made.append({"params": named, "rate": group["rate"] * rate})
    return [group for group in made if group["params"]]


def optimiser_of(train: Train, groups: Sequence[Mapping[str, Any]]) -> torch.optim.Optimizer:
    kind, rate = train.optimiser, train.learning_rate
    parameters = [{"params": one["params"], "lr": rate * one["rate"]} for one in groups]
    match kind.kind:
        case "adam":
            return torch.optim.Adam(parameters, rate, kind.betas, kind.eps, fused=True)
        case "adamw":
            decay = kind.weight_decay
            return torch.optim.AdamW(parameters, rate, kind.betas, kind.eps, decay, fused=True)
        case "adadelta":
            return torch.optim.Adadelta(parameters, rate, kind.rho, kind.eps)
        case "sgd":
            return torch.optim.SGD(parameters, rate, kind.momentum)


def schedule_of(train: Train, model: Any) -> Schedule | Plateau:
    kind = train.schedule
    match kind.kind:
        case "constant":
            return constant(kind.warmup)
        case "noam":
            return noam(model.dim, kind.warmup)
        case "inverse_sqrt":
            return inverse_sqrt(kind.warmup)
        case "cosine":
            return cosine(train.steps or 1, kind.warmup, kind.floor)
        case "plateau":
            return Plateau(kind.factor, kind.patience, kind.warmup)
