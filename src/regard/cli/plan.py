"""`regard plan`: memory, time and cost of a training, here and on many GPUs."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from regard.cli.options import ChangesArgument, ConfigArgument, JsonOption
from regard.errors import InputError
from regard.files import JsonObject
from regard.tasks.load import load_settings
from regard.training.cluster_plan import (
    SECONDS_PER_DAY,
    ClusterRow,
    Hardware,
    cluster_row,
    cluster_table,
    optimal_tokens,
)
from regard.training.step_cost import StepCost
from regard.training.step_probe import measure_in_new_process
from regard.view.progress import progress_bar

MB, GB = 1e6, 1e9


def plan(
    config: ConfigArgument,
    changes: ChangesArgument = None,
    gpus: Annotated[int, typer.Option(min=1, help="Number of GPUs.")] = 1,
    memory: Annotated[float, typer.Option(min=0.0, help="Memory of a GPU, in GB.")] = 80.0,
    throughput: Annotated[
        float | None,
        typer.Option(help="FLOPs a second that a GPU reaches, such as 1e14. Default: no times."),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Run and time some steps on this machine.")
    ] = False,
    bandwidth: Annotated[
        float, typer.Option(help="GB a second that each GPU sends to the others.")
    ] = 25.0,
    price: Annotated[
        float | None, typer.Option(help="Price of a GPU for an hour. Default: no costs.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Plan a training of CONFIG: parameters, FLOPs, memory, time and cost, without training.

    Steps with batches of the data are run and counted. --measure also times them, and takes their
    throughput for a GPU, unless --throughput is given.
    """
    for name, value in (("throughput", throughput), ("bandwidth", bandwidth), ("memory", memory)):
        if value is not None and not value > 0:
            raise InputError(f"--{name}: must be more than 0 ({value:g})")
    if price is not None and not price >= 0:
        raise InputError(f"--price: must be 0 or more ({price:g})")
    settings = load_settings(config, changes or ())
    with progress_bar("measuring steps", 1) as progress:
        cost = measure_in_new_process(settings, is_timed=measure)
        progress.advance(1)
    if throughput is None and cost.timed is not None:
        throughput = cost.timed.flops_per_second
    hardware = Hardware(memory * GB, bandwidth * GB, throughput, price)
    row, rows = cluster_row(cost, hardware, gpus), cluster_table(cost, hardware, gpus)
    if as_json:
        print(json.dumps(to_json(cost, hardware, row, rows), indent=1))
    else:
        print("\n".join(plan_lines(settings.model.kind, cost, hardware, row, rows)))


def to_json(
    cost: StepCost, hardware: Hardware, row: ClusterRow, rows: list[ClusterRow]
) -> JsonObject:
    return {
        **asdict(cost),
        "flops_per_unit": cost.flops_per_unit,
        "total_units": cost.total_units,
        "optimal_tokens": optimal_tokens(cost),
        "seconds_here": seconds_here(cost),
        "hardware": asdict(hardware),
        "chosen": asdict(row),
        "cluster": [asdict(entry) for entry in rows],
    }


def seconds_here(cost: StepCost) -> float | None:
    """Return the time of all steps on this machine, if some were timed."""
    if cost.timed is None or cost.steps is None or cost.total_units is None:
        return None
    if cost.timed.process is not None:  # with full batches
        return cost.steps * cost.accumulate * cost.timed.seconds / cost.timed.steps
    return cost.total_units * cost.flops_per_unit / cost.timed.flops_per_second


def plan_lines(
    kind: str, cost: StepCost, hardware: Hardware, row: ClusterRow, rows: list[ClusterRow]
) -> Iterator[str]:
    """Yield the lines of a plan."""
    full, unit = cost.full, cost.unit
    yield f"model        {kind}, {cost.parameters:,} parameters"
    yield (
        f"compute      {full.flops:.3g} FLOPs for a batch of {full.units:,.0f} {unit}: "
        f"{cost.flops_per_unit:.3g} for each"
    )
    yield (
        f"memory       {full.peak / MB:,.0f} MB of tensors at the peak: weights "
        f"{cost.weights / MB:,.0f}, gradients {cost.gradients / MB:,.0f}, optimizer "
        f"{cost.optimizer / MB:,.0f}, activations {full.activations / MB:,.0f}"
    )
    if cost.is_continued:
        yield "             (continued from smaller batches or fewer layers: all is too much here)"
    if cost.total_units is not None:
        flops = cost.total_units * cost.flops_per_unit
        yield f"training     {cost.steps:,} steps, {cost.total_units:.3g} {unit}, {flops:.3g} FLOPs"
    tokens = optimal_tokens(cost)
    if tokens is not None:
        yield f"optimal      {tokens:.3g} tokens, 20 for each parameter (Hoffmann et al. 2022)"
    yield from timed_lines(cost)
    yield f"{row.gpus:,} GPUs".ljust(13) + verdict(cost, hardware, row, rows)
    yield ""
    yield from table_lines(unit, hardware, rows)


def timed_lines(cost: StepCost) -> Iterator[str]:
    timed, seconds = cost.timed, seconds_here(cost)
    if timed is None:
        return
    process = "" if timed.process is None else f"; the process grew by {timed.process / MB:,.0f} MB"
    days = "" if seconds is None else f"; all steps: {format_seconds(seconds)}"
    yield (
        f"here         {timed.seconds / timed.steps:.3g} s a batch, "
        f"{timed.flops_per_second:.3g} FLOPs a second{process}{days}"
    )


def verdict(cost: StepCost, hardware: Hardware, row: ClusterRow, rows: list[ClusterRow]) -> str:
    """Return whether the training fits, and how."""
    needed = f"{row.memory / GB:,.2f} of {hardware.memory / GB:,.0f} GB each"
    if row.sharding == "DDP":
        return f"DDP suffices: {needed}" if row.gpus > 1 else f"it fits: {needed}"
    if row.sharding == "FSDP":
        return f"FSDP is needed: {needed} (DDP does not fit)"
    fitting = [entry.gpus for entry in rows if entry.sharding != "none"]
    remedy = f"{min(fitting):,} GPUs would do" if fitting else "no number of GPUs will do"
    if cost.batch(cost.full.size / max(1.0, cost.full.rows)).activations > hardware.memory / 2:
        remedy += "; try train.recompute_activations=true or shorter inputs"
    return f"it does not fit: {needed}; {remedy}"


def table_lines(unit: str, hardware: Hardware, rows: list[ClusterRow]) -> Iterator[str]:
    """Yield the table of GPUs."""
    rates = f"{f'{unit} a step':>18}{f'{unit}/s':>16}"
    yield f"{'GPUs':>6}  {'way':5}{'GB each':>10}{rates}{'days':>12}{'cost':>14}"
    for row in rows:
        way = row.sharding if row.gpus > 1 or row.sharding == "none" else ""
        rate = "" if row.units_per_second is None else f"{row.units_per_second:,.0f}"
        days = "" if row.days is None else f"{row.days:,.3g}"
        cost = "" if row.cost is None else f"{row.cost:,.2f}"
        yield (
            f"{row.gpus:6,}  {way:5}{row.memory / GB:10,.2f}{row.units_per_step:18,.0f}"
            f"{rate:>16}{days:>12}{cost:>14}"
        ).rstrip()
    if hardware.flops_per_second is None:
        yield "No times: give --throughput or --measure."
        return
    yield (
        f"Assumed: {hardware.flops_per_second:.3g} FLOPs a second and "
        f"{hardware.bandwidth / GB:g} GB/s for each GPU; sending does not overlap with computing."
    )


def format_seconds(seconds: float) -> str:
    if seconds < 2 * SECONDS_PER_DAY:
        return f"{seconds / 3600:.1f} hours" if seconds > 7200 else f"{seconds:,.0f} s"
    return f"{seconds / SECONDS_PER_DAY:.1f} days"
