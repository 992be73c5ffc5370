"""The parts of a training, as the settings name them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from regard.config.settings import Settings
from regard.config.train import TrainConfig, TranslateTrainConfig
from regard.tasks.loss import Loss
from regard.training.ema import ExponentialMovingAverage
from regard.training.loop import Source, Training
from regard.training.schedule import Plateau, Schedule, constant, cosine, inverse_sqrt, noam


def build_training(
    settings: Settings,
    model: torch.nn.Module,
    loss: Callable[[Any, int], Loss],
    batches: Source,
    parameter_groups: Sequence[Mapping[str, Any]] | None = None,
) -> Training:
    """Steps as the settings want them; `loss` is asked for a batch, after so many steps.

    `parameter_groups`: parameters to be trained, and at which share of the learning rate (`rate`).
    """
    train = settings.train
    if isinstance(train, TranslateTrainConfig) and train.compile:
        for name in ("remember", "teacher_forced"):
            setattr(model, name, torch.compile(getattr(model, name), dynamic=True))
    training = Training(
        model,
        lambda batch: loss(batch, training.steps_done),
        batches,
        build_optimizer(
            train, parameter_groups or [{"params": list(model.parameters()), "rate": 1.0}]
        ),
        schedule=build_schedule(train, settings.model),
        clip=train.max_grad_norm or None,
        accumulate=train.accumulate,
        ema=None if train.ema is None else ExponentialMovingAverage(model, train.ema),
        autocast=None if train.autocast is None else getattr(torch, train.autocast),
    )
    return training


def teacher_forcing_rate(train: TranslateTrainConfig, steps_done: int) -> float:
    """How often the decoder reads the truth: it falls along a line, then stays."""
    steps = train.teacher_forcing_steps
    progress = min(steps_done / steps, 1.0) if steps else 1.0
    return 1 - progress * (1 - train.teacher_forcing)


def with_rate_multipliers(
    model: torch.nn.Module,
    groups: Sequence[Mapping[str, Any]],
    rate_multipliers: Mapping[str, float],
) -> list[dict[str, Any]]:
    """Groups with the named parts of the model taken out, each at its own rate; what is left first.

    Of two names that both fit the longer one counts.
    """
    part_by_parameter: dict[torch.nn.Parameter, str] = {}
    for part in sorted(rate_multipliers, key=len):
        matching_parameters = {
            p: part for name, p in model.named_parameters() if f"{name}.".startswith(f"{part}.")
        }
        if not matching_parameters:
            part_names = ", ".join(
                sorted({name.split(".")[0] for name, _ in model.named_parameters()})
            )
            raise ValueError(
                f"train.rate_multipliers: the model has no part {part!r}; it has {part_names}"
            )
        part_by_parameter |= matching_parameters
    split_groups = [
        {**base_group, "params": [p for p in base_group["params"] if p not in part_by_parameter]}
        for base_group in groups
    ]
    for group in groups:
        for part, rate in rate_multipliers.items():
            parameters = [p for p in group["params"] if part_by_parameter.get(p) == part]
            split_groups.append({"params": parameters, "rate": group["rate"] * rate})
    return [group for group in split_groups if group["params"]]


def build_optimizer(
    train: TrainConfig, groups: Sequence[Mapping[str, Any]]
) -> torch.optim.Optimizer:
    config, rate = train.optimizer, train.learning_rate
    optimizer_groups = [{"params": group["params"], "lr": rate * group["rate"]} for group in groups]
    match config.kind:
        case "adam":
            return torch.optim.Adam(optimizer_groups, rate, config.betas, config.eps, fused=True)
        case "adamw":
            decay = config.weight_decay
            return torch.optim.AdamW(
                optimizer_groups, rate, config.betas, config.eps, decay, fused=True
            )
        case "adadelta":
            return torch.optim.Adadelta(optimizer_groups, rate, config.rho, config.eps)
        case "sgd":
            return torch.optim.SGD(optimizer_groups, rate, config.momentum)


def build_schedule(train: TrainConfig, model_config: Any) -> Schedule | Plateau:
    config = train.schedule
    match config.kind:
        case "constant":
            return constant(config.warmup)
        case "noam":
            return noam(model_config.dim, config.warmup)
        case "inverse_sqrt":
            return inverse_sqrt(config.warmup)
        case "cosine":
            return cosine(train.steps or 1, config.warmup, config.floor)
        case "plateau":
            return Plateau(config.factor, config.patience, config.warmup)
