"""Measure what a training step costs: python -m regard.training.step_probe

Nothing here is a formula of some model. Real steps are run with batches of the data; their tensors
and floating-point operations are counted. What is too large for this machine is continued along a
line: batches by their size, and stacks of equal layers by their number.

The process reads settings as JSON from standard input, and prints a `StepCost` as JSON.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from regard.batching.device import nested_tensors
from regard.batching.memory_forecast import peak_memory, resident_memory
from regard.batching.source import BatchSource, RepeatedBatch
from regard.config.settings import Settings
from regard.data.build import build_corpus, resolve_held_out
from regard.data.corpus import Corpus
from regard.errors import InputError
from regard.layers.block_stack import BlockStack
from regard.models.protocols import Model
from regard.tasks.automatic import resolve_training
from regard.tasks.base import Vocabularies
from regard.tasks.building import batch_options, resolve_vocabularies
from regard.tasks.catalogue import find_task
from regard.tasks.load import resolve_settings
from regard.tasks.run_weights import build_without_memory, check_settings_limits
from regard.training.build import build_training
from regard.training.flop_formulas import FLOPS_BY_OPERATION
from regard.training.live_tensors import LiveTensors
from regard.training.loop import AnyTraining
from regard.training.memory_use import optimizer_state_bytes, total_bytes
from regard.training.step_cost import BatchCost, StepCost, TimedSteps, to_step_cost

SMALL_SHARE, LARGER_SHARE = (
    8,
    4,
)  # an eighth of a batch, and a fourth if all is too much
MAX_STEP_FLOPS = 1e12  # of a step with a full batch: some seconds of two cores
MAX_TIMED_FLOPS = 5e12  # of all steps that are timed
MIN_TIMED_STEPS, MAX_TIMED_STEPS, MAX_TIMED_SECONDS = 4, 150, 60.0
MAX_SEEN_BATCHES, MAX_SEEN_SECONDS = 50, 5.0  # of which the largest is measured
ALLOCATOR_FACTOR = 4  # the most bytes that a process was seen to take for a byte of its tensors
BYTES_PER_PARAMETER = 16  # weight, gradient and two averages of Adam, in float32
MEMORY_FILE = Path("/proc/meminfo")


def measure_in_new_process(settings: Settings, *, is_timed: bool) -> StepCost:
    """Measure the cost of a step in a process of its own, whose memory can be observed.

    Its threads wait as those of a training do, if their time counts.
    """
    waiting = {} if is_timed else {"OMP_WAIT_POLICY": "PASSIVE"}  # spinning takes most of a core
    request = {
        "settings": settings.model_dump(),
        "is_timed": is_timed,
        "threads": torch.get_num_threads(),
    }
    completed = subprocess.run(
        [sys.executable, "-m", "regard.training.step_probe"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **waiting},
    )
    if completed.returncode:
        lines = completed.stderr.strip().splitlines() or ["killed, perhaps for lack of memory"]
        raise InputError(lines[-1].removeprefix("regard.errors.InputError: "))
    return to_step_cost(json.loads(completed.stdout.splitlines()[-1]))


def measure_step_cost(settings: Settings, *, is_timed: bool = False) -> StepCost:
    """Count tensors and operations of steps; with `is_timed`, also run and time some.

    The process must be new: of one that was larger before, no growth can be seen.
    """
    builder = find_task(settings.task).builder()
    settings = builder.resolve_settings(settings)
    check_settings_limits(settings, "settings")
    settings = settings.model_copy(update={"data": resolve_held_out(settings.data)})
    corpus = build_corpus(settings.data)
    settings, vocabularies = resolve_vocabularies(settings, corpus)
    model = build_without_memory(lambda: builder.build_model(settings, vocabularies), "settings")
    needed = BYTES_PER_PARAMETER * parameter_count(model)
    if needed < available_memory() / 2:
        return StepProbe(settings, corpus, vocabularies).measure(is_timed=is_timed)
    layers = getattr(settings.model, "layers", None)
    if not isinstance(layers, int) or layers < 3:
        raise InputError(
            f"model: a step needs {needed / 1e9:,.0f} GB, more than half of what is free here; "
            "plan on a larger machine"
        )
    single, double = (
        StepProbe(with_layers(settings, count), corpus, vocabularies).measure(
            is_timed=is_timed and count == 2
        )
        for count in (1, 2)
    )
    return continue_layers(single, double, model, layers)


def continue_layers(single: StepCost, double: StepCost, model: Model, layers: int) -> StepCost:
    """Return the cost of `model`, on the line through those of one layer and of two."""
    gradients = trainable_bytes(model)
    return replace(
        double,
        parameters=parameter_count(model),
        weights=weight_bytes(model),
        gradients=gradients,
        optimizer=round(double.optimizer * gradients / double.gradients),
        gathered=gathered_bytes(model),
        small=single.small.continued(double.small, layers - 1),
        full=single.full.continued(double.full, layers - 1),
        is_continued=True,
        timed=None if double.timed is None else replace(double.timed, process=None),
    )


def with_layers(settings: Settings, count: int) -> Settings:
    return settings.model_copy(
        update={"model": settings.model.model_copy(update={"layers": count})}
    )


def with_share(settings: Settings, share: int) -> Settings:
    """Return settings with batches of an n-th of the size."""
    train = settings.train
    sizes = {
        name: max(1, budget // share)
        for name in ("tokens_per_batch", "examples_per_batch")
        if (budget := getattr(train, name)) is not None
    }
    return settings.model_copy(update={"train": train.model_copy(update=sizes)})


class StepProbe:
    """A model with its data, whose steps are counted and timed."""

    def __init__(self, settings: Settings, corpus: Corpus, vocabularies: Vocabularies):
        self.settings, self.corpus, self.vocabularies = settings, corpus, vocabularies
        self.builder = find_task(settings.task).builder()
        torch.manual_seed(settings.seed)
        self.model = self.builder.build_model(settings, vocabularies)

    def measure(self, *, is_timed: bool) -> StepCost:
        """Count a step with a small batch, and with the largest if it can be run here."""
        training, small_training = self.training(1), self.training(SMALL_SHARE)
        source = training.batches
        steps, accumulate = planned_steps(self.settings, source), self.settings.train.accumulate
        batch_count = None if steps is None else steps * accumulate
        batches = first_batches(source)
        sizes = [batch_size(batch) for batch in batches]
        largest, base = batches[sizes.index(max(sizes))], resident_memory()
        small = count_step(small_training, largest_batch(small_training.batches))
        optimizer = optimizer_state_bytes(small_training)
        ratio, timed = max(sizes) / small.size, None
        can_run = (
            ratio * small.flops <= MAX_STEP_FLOPS
            and ratio * small.activations * ALLOCATOR_FACTOR < available_memory()
        )
        if can_run:  # forget what the process of a training does not have
            small_training.optimizer.zero_grad(set_to_none=True)
            del small_training
        else:
            training = small_training
        if is_timed:
            timed = time_steps(training, largest if can_run else None, small, batch_count)
            growth = peak_memory() - base + weight_bytes(self.model)
            timed = replace(timed, process=growth if can_run else None)
        if can_run:
            full = count_step(training, largest)
        else:
            larger_training = self.training(LARGER_SHARE)
            larger = count_step(larger_training, largest_batch(larger_training.batches))
            full = small.extended(larger, max(sizes))
        return StepCost(
            unit=self.unit,
            parameters=parameter_count(self.model),
            weights=weight_bytes(self.model),
            gradients=trainable_bytes(self.model),
            optimizer=optimizer,
            gathered=gathered_bytes(self.model),
            small=small,
            full=full,
            mean_share=sum(sizes) / len(sizes) / max(sizes),
            steps=steps,
            accumulate=accumulate,
            is_continued=not can_run,
            timed=timed,
        )

    def training(self, share: int) -> AnyTraining:
        """Return a training with an n-th of each batch; it has a task and an optimizer of its own.

        Every step reads one batch, and none is compiled.
        """
        settings = with_share(self.settings, share)
        train = settings.train.model_copy(update={"accumulate": 1})
        if hasattr(train, "compile"):
            train = train.model_copy(update={"compile": False})
        settings = settings.model_copy(update={"train": train})
        task = self.builder.build_task(settings, self.vocabularies, self.model)
        self.unit = task.unit
        training = build_training(
            settings, task, task.batches(self.corpus, batch_options(settings))
        )
        training.steps_done = task.best_resets_after  # a later objective needs more
        return training


def planned_steps(settings: Settings, source: BatchSource[object]) -> int | None:
    """Return the steps of the training; None if nobody can know them."""
    train = resolve_training(settings, source).train
    if train.steps is not None or train.epochs is None:
        return train.steps
    batches = source.batches_per_epoch
    return None if batches is None else max(1, train.epochs * batches // train.accumulate)


def first_batches(source: BatchSource[object]) -> list[object]:
    """Return some batches of a training: one at least, and no more than take some seconds."""
    batches, end = [next(source)], time.monotonic() + MAX_SEEN_SECONDS
    while len(batches) < MAX_SEEN_BATCHES and time.monotonic() < end:
        batches.append(next(source))
    return batches


def largest_batch(source: BatchSource[object]) -> object:
    return max(first_batches(source), key=batch_size)


def batch_size(batch: object) -> int:
    """Return the number of elements of all tensors of a batch."""
    return sum(tensor.numel() for tensor in nested_tensors(batch))


def batch_rows(batch: object) -> int:
    return max(nested_tensors(batch), key=Tensor.numel).shape[0]


def count_step(training: AnyTraining, batch: object) -> BatchCost:
    """Count the operations of a step, and the bytes of its tensors."""
    training.batches = RepeatedBatch(batch)
    training.step()  # makes the state of the optimizer
    training.optimizer.zero_grad(set_to_none=True)
    fixed = weight_bytes(training.model) + optimizer_state_bytes(training)
    with LiveTensors(training.model.parameters()) as live:
        step = training.step()
    with FlopCounterMode(display=False, custom_mapping=FLOPS_BY_OPERATION) as counter:
        training.step()
    return BatchCost(
        size=float(batch_size(batch)),
        rows=float(batch_rows(batch)),
        units=float(step.tokens),
        flops=float(counter.get_total_flops()),
        activations=float(live.activation_peak),
        peak=float(fixed + live.peak),
    )


def time_steps(
    training: AnyTraining, largest: object | None, small: BatchCost, batch_count: int | None
) -> TimedSteps:
    """Run steps with batches of the training, after two with the largest.

    They are many, because a process whose batches have many shapes grows for a while; but no more
    than the training has.
    """
    source = training.batches
    for batch in () if largest is None else (largest, largest):
        training.batches = RepeatedBatch(batch)
        training.step()
    start, cpu_start, sizes = time.perf_counter(), time.process_time(), list[int]()
    limit = MAX_TIMED_FLOPS * small.size / small.flops
    most = min(MAX_TIMED_STEPS, batch_count or MAX_TIMED_STEPS)
    while len(sizes) < MIN_TIMED_STEPS or (
        len(sizes) < most and sum(sizes) < limit and time.perf_counter() < start + MAX_TIMED_SECONDS
    ):
        batch = next(source)
        training.batches = RepeatedBatch(batch)
        training.step()
        sizes.append(batch_size(batch))
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    rate = sum(sizes) * small.flops / small.size / seconds
    return TimedSteps(len(sizes), seconds, cpu_seconds, rate, process=None)


def parameter_count(model: Model) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def weight_bytes(model: Model) -> int:
    return total_bytes([*model.parameters(), *(buffer for _, buffer in model.named_buffers())])


def trainable_bytes(model: Model) -> int:
    return total_bytes(p for p in model.parameters() if p.requires_grad)


def gathered_bytes(model: Model) -> int:
    """Return the bytes that FSDP holds in full: of two blocks, and of all that is in no block.

    Of two blocks it has the weights, of one the gradients; of the rest, both.
    """
    stacks = [module for module in model.modules() if isinstance(module, BlockStack)]
    blocks = [
        total_bytes(block.parameters())
        for stack in stacks
        for part in stack.children()
        if isinstance(part, nn.ModuleList)
        for block in part
    ]
    rest = total_bytes(model.parameters()) - sum(blocks)
    return 2 * rest + min(3 * max(blocks, default=0), 2 * sum(blocks))


def available_memory() -> int:
    """Return the bytes that new processes can have here."""
    if MEMORY_FILE.exists():
        line = next(x for x in MEMORY_FILE.read_text().splitlines() if x.startswith("MemAvail"))
        return 1024 * int(line.split()[1])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def main() -> None:
    """Measure, and print the cost."""
    request = json.load(sys.stdin)
    torch.set_num_threads(request["threads"])
    cost = measure_step_cost(resolve_settings(request["settings"]), is_timed=request["is_timed"])
    print(json.dumps(asdict(cost)))


if __name__ == "__main__":
    main()
