"""The memory, time and cost of a training on 1 to 1,024 GPUs.

    DDP    every GPU holds weights, gradients and optimizer; a step sends 2 (n - 1) / n gradients
    FSDP   each holds an n-th of them; a step sends 3 (n - 1) / n weights: it gathers them forward
           and backward, and scatters gradients     (Rajbhandari et al. 2020, ZeRO, sec. 7)
    time   = FLOPs / throughput + bytes sent / bandwidth: nothing overlaps, so real ones are shorter

The batch of the settings is shared by all GPUs. With more GPUs than rows, each takes one row: the
batch grows, and the steps become fewer, for the same number of tokens.
"""

from dataclasses import dataclass
from typing import Literal

from regard.training.step_cost import StepCost

GPU_COUNTS = tuple(2**power for power in range(11))
TOKENS_PER_PARAMETER = 20  # Hoffmann et al. 2022, "Training compute-optimal large language models"
SECONDS_PER_HOUR, SECONDS_PER_DAY = 3600, 86400

Sharding = Literal["DDP", "FSDP", "none"]


@dataclass(frozen=True)
class Hardware:
    """A kind of GPU: sizes in bytes, rates a second; the price is that of an hour."""

    memory: float
    bandwidth: float
    flops_per_second: float | None = None
    price: float | None = None


@dataclass(frozen=True)
class ClusterRow:
    """The training on a number of GPUs; `sharding` is none if it does not fit."""

    gpus: int
    sharding: Sharding
    memory: float  # bytes of each GPU
    units_per_step: float
    units_per_second: float | None
    days: float | None
    cost: float | None


def cluster_row(cost: StepCost, hardware: Hardware, gpus: int) -> ClusterRow:
    """Return memory, time and cost with DDP, or with FSDP if DDP does not fit."""
    share = max(1 / gpus, 1 / max(1.0, cost.full.rows))
    batch = cost.batch(cost.full.size * share)
    memory = cost.weights + cost.gradients + cost.optimizer + batch.activations
    sharding: Sharding = "DDP"
    if memory > hardware.memory:
        memory, sharding = sharded_memory(cost, gpus) + batch.activations, "FSDP"
        if memory > hardware.memory:
            sharding = "none"
    units = gpus * share * cost.full.units * cost.mean_share * cost.accumulate
    rate = None
    if hardware.flops_per_second is not None:
        compute = cost.accumulate * cost.mean_share * batch.flops / hardware.flops_per_second
        rate = units / (compute + sent_bytes(cost, sharding, gpus) / hardware.bandwidth)
    total = cost.total_units
    seconds = None if rate is None or total is None else total / rate
    price = hardware.price
    return ClusterRow(
        gpus,
        sharding,
        memory,
        units,
        rate,
        None if seconds is None else seconds / SECONDS_PER_DAY,
        None if seconds is None or price is None else gpus * price * seconds / SECONDS_PER_HOUR,
    )


def sharded_memory(cost: StepCost, gpus: int) -> float:
    """Return an n-th of weights, gradients and optimizer, and what is gathered at a time."""
    state = cost.weights + cost.gradients + cost.optimizer
    return float(state) if gpus == 1 else state / gpus + cost.gathered * (gpus - 1) / gpus


def sent_bytes(cost: StepCost, sharding: Sharding, gpus: int) -> float:
    """Return the bytes that each GPU sends in a step."""
    share = (gpus - 1) / gpus
    return share * (2 * cost.gradients if sharding == "DDP" else 3 * cost.weights)


def cluster_table(cost: StepCost, hardware: Hardware, gpus: int) -> list[ClusterRow]:
    """Return rows for 1 to 1,024 GPUs, and for `gpus`."""
    return [cluster_row(cost, hardware, count) for count in sorted({*GPU_COUNTS, gpus})]


def optimal_tokens(cost: StepCost) -> int | None:
    """Return the tokens of a compute-optimal training; None if the loss counts other units."""
    return TOKENS_PER_PARAMETER * cost.parameters if cost.unit == "tokens" else None
