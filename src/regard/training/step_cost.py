"""The cost of a training step: its parts, and how it continues to other batches and machines."""

from dataclasses import astuple, dataclass

from regard.files import JsonObject


@dataclass(frozen=True)
class BatchCost:
    """The cost of one step with a batch of `size` elements in `rows` rows."""

    size: float
    rows: float
    units: float  # what the loss counts, such as tokens
    flops: float
    activations: float  # bytes beside weights, gradients and the state of the optimizer
    peak: float  # bytes of all tensors at once

    def continued(self, other: "BatchCost", share: float) -> "BatchCost":
        """Return the point of the line from this cost (share 0) to another (share 1)."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return BatchCost(*(a + share * (b - a) for a, b in pairs))

    def extended(self, other: "BatchCost", size: float) -> "BatchCost":
        """Return the cost of a batch of `size`, by this one and another."""
        if other.size == self.size:
            return BatchCost(*(value * size / self.size for value in astuple(self)))
        return self.continued(other, (size - self.size) / (other.size - self.size))


@dataclass(frozen=True)
class TimedSteps:
    """Real steps on this machine."""

    steps: int
    seconds: float  # of all these steps
    cpu_seconds: float  # the same without waiting for other processes, summed over threads
    flops_per_second: float
    process: int | None  # bytes that the process grew by; None if no full batch was run


@dataclass(frozen=True)
class StepCost:
    """The cost of the steps of a training; all sizes are in bytes."""

    unit: str
    parameters: int
    weights: int
    gradients: int
    optimizer: int  # with the moving average of weights, if there is one
    gathered: int  # weights and gradients that FSDP holds in full at once
    small: BatchCost
    full: BatchCost  # the largest batch
    mean_share: float  # of the size of a batch, in that of the largest
    steps: int | None  # of the training; None if the data are too many to count
    accumulate: int
    is_continued: bool  # whether the full cost was continued from smaller batches or fewer layers
    timed: TimedSteps | None = None

    @property
    def total_units(self) -> float | None:
        """The units, such as tokens, of the whole training."""
        if self.steps is None:
            return None
        return self.steps * self.accumulate * self.mean_share * self.full.units

    @property
    def flops_per_unit(self) -> float:
        return self.full.flops / self.full.units

    def batch(self, size: float) -> BatchCost:
        """Return the cost of a batch of another size."""
        is_small = self.full.size == self.small.size
        return self.full if is_small else self.small.extended(self.full, size)


def to_step_cost(values: JsonObject) -> StepCost:
    """Return the cost from the plain data of `dataclasses.asdict`."""
    timed = values["timed"]
    parts: JsonObject = {
        "small": BatchCost(**values["small"]),
        "full": BatchCost(**values["full"]),
        "timed": None if timed is None else TimedSteps(**timed),
    }
    return StepCost(**{**values, **parts})
