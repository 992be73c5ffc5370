"""Build a training, its optimizer and its schedule from settings."""

from collections.abc import Mapping, Sequence

import torch

from regard.attention.reinforce import ReinforceLoss
from regard.batching.shares import SharedSource
from regard.batching.source import BatchSource
from regard.config.settings import Settings
from regard.config.train import AdamWConfig, TrainConfig
from regard.errors import InputError
from regard.layers.block_stack import BlockStack
from regard.models.protocols import Model
from regard.tasks.base import BatchT, ExampleT, ModelT, ParameterGroup, Task
from regard.training.allocation import keep_few_products, keep_freed_memory
from regard.training.distributed.group import WorkerGroup
from regard.training.distributed.shardable import check_shardable
from regard.training.ema import ExponentialMovingAverage
from regard.training.loop import Training
from regard.training.schedule import Plateau, Schedule, constant, cosine, inverse_sqrt, noam
from regard.training.weight_decay import without_decay

# Modules that keep statistics of the batches that they have seen.
WHOLE_BATCH_MODULES = (torch.nn.modules.batchnorm._BatchNorm, ReinforceLoss)


def build_training(
    settings: Settings,
    task: Task[ExampleT, BatchT, ModelT],
    batches: BatchSource[BatchT],
    group: WorkerGroup | None = None,
) -> Training[BatchT]:
    """Return the training of a task, which the processes of a group share."""
    if task.device.type == "cpu":
        keep_freed_memory()
        keep_few_products()
    train, model = settings.train, task.model
    if group is not None and group.size > 1:
        share_batches(group, task, batches)
    if train.sharding == "full":
        check_sharding(train, model)
    if getattr(train, "compile", False):
        task.compile()
    if train.recompute_activations:
        recompute_activations(model)
    groups = with_rate_multipliers(model, task.parameter_groups(), train.rate_multipliers)
    if isinstance(train.optimizer, AdamWConfig):
        groups = without_decay(model, groups, train.optimizer.no_decay)
    return Training(
        model,
        task.loss,
        batches,
        build_optimizer(train, groups),
        schedule=build_schedule(train, getattr(settings.model, "dim", None)),
        clip=train.max_grad_norm or None,
        accumulate=train.accumulate,
        ema=None if train.ema is None else ExponentialMovingAverage(model, train.ema),
        autocast=None if train.autocast is None else getattr(torch, train.autocast),
        group=group,
    )


def share_batches(
    group: WorkerGroup, task: Task[ExampleT, BatchT, ModelT], batches: BatchSource[BatchT]
) -> None:
    """Let each process take its share of every batch; refuse what needs whole batches."""
    if not isinstance(batches, SharedSource):
        raise InputError(
            f"several processes cannot train the task {task.name} with these settings, because "
            f"{type(batches).__name__} cannot be split; use one process"
        )
    for name, module in task.model.named_modules():
        if isinstance(module, WHOLE_BATCH_MODULES) and module.training:
            raise InputError(
                f"several processes cannot train {type(task.model).__name__}, because {name} "
                f"({type(module).__name__}) needs whole batches; use one process"
            )
    batches.take_share(group.rank, group.size)


def check_sharding(train: TrainConfig, model: Model) -> None:
    """Refuse what cannot be sharded, also if this process trains alone."""
    if getattr(train, "compile", False):
        raise InputError("train.sharding: a compiled model cannot be sharded; set compile to false")
    check_shardable(model)


def recompute_activations(model: Model) -> None:
    """Let every stack of blocks keep only the inputs of its blocks in training."""
    stacks = [module for module in model.modules() if isinstance(module, BlockStack)]
    if not stacks:
        raise InputError(
            f"train.recompute_activations: {type(model).__name__} has no stack of blocks; set it "
            "to false"
        )
    for stack in stacks:
        stack.recompute_activations = True


def with_rate_multipliers(
    model: Model,
    groups: Sequence[ParameterGroup],
    rate_multipliers: Mapping[str, float],
) -> list[ParameterGroup]:
    """Split groups so that named parts of the model have learning rates of their own.

    If two names match a parameter, the longer one counts. Parameters that no name matches come
    first.
    """
    part_by_parameter: dict[torch.nn.Parameter, str] = {}
    for part in sorted(rate_multipliers, key=len):
        matching = {
            p: part for name, p in model.named_parameters() if f"{name}.".startswith(f"{part}.")
        }
        if not matching:
            parts = ", ".join(sorted({name.split(".")[0] for name, _ in model.named_parameters()}))
            raise InputError(
                f"train.rate_multipliers: the model has no part {part!r}; it has {parts}"
            )
        part_by_parameter |= matching
    split_groups = [
        ParameterGroup([p for p in group.parameters if p not in part_by_parameter], group.rate)
        for group in groups
    ]
    for group in groups:
        for part, multiplier in rate_multipliers.items():
            parameters = [p for p in group.parameters if part_by_parameter.get(p) == part]
            split_groups.append(ParameterGroup(parameters, group.rate * multiplier))
    return [group for group in split_groups if group.parameters]


def build_optimizer(train: TrainConfig, groups: Sequence[ParameterGroup]) -> torch.optim.Optimizer:
    config, rate = train.optimizer, train.learning_rate
    optimizer_groups = [{"params": g.parameters, "lr": rate * g.rate} for g in groups]
    match config.kind:
        case "adam":
            return torch.optim.Adam(optimizer_groups, rate, config.betas, config.eps, fused=True)
        case "adamw":
            for entry, group in zip(optimizer_groups, groups, strict=True):
                entry["weight_decay"] = config.weight_decay if group.decays else 0.0
            return torch.optim.AdamW(optimizer_groups, rate, config.betas, config.eps, fused=True)
        case "adadelta":
            return torch.optim.Adadelta(optimizer_groups, rate, config.rho, config.eps)
        case "sgd":
            return torch.optim.SGD(optimizer_groups, rate, config.momentum)


def build_schedule(train: TrainConfig, dim: int | None) -> Schedule | Plateau:
    """Return the schedule of the settings; `dim` is the dimension of the model, for noam."""
    config = train.schedule
    match config.kind:
        case "constant":
            return constant(config.warmup)
        case "noam":
            if dim is None:
                raise InputError("train.schedule: noam needs model.dim; use inverse_sqrt instead")
            return noam(dim, config.warmup)
        case "inverse_sqrt":
            return inverse_sqrt(config.warmup)
        case "cosine":
            return cosine(train.steps or 1, config.warmup, config.floor)
        case "plateau":
            return Plateau(config.factor, config.patience, config.warmup)
