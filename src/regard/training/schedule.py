"""Learning rate schedules: the factor of the learning rate at each step."""

import math
from collections.abc import Callable

from regard.errors import InputError

Schedule = Callable[[int], float]  # step, from 1 -> factor


def constant(warmup: int = 0) -> Schedule:
    """Return a factor of 1, after a linear warmup over `warmup` steps."""
    return lambda step: min(1.0, step / warmup) if warmup else 1.0


def noam(dim: int, warmup: int = 4000) -> Schedule:
    """dim^-0.5 min(step^-0.5, step warmup^-1.5)  (Vaswani et al. 2017, eq. 3)."""
    check_positive("dim", dim)
    check_positive("warmup", warmup)
    return lambda step: dim**-0.5 * min(step**-0.5, step * warmup**-1.5)


def inverse_sqrt(warmup: int) -> Schedule:
    """min(step / warmup, sqrt(warmup / step)): `noam`, scaled to a peak of 1."""
    check_positive("warmup", warmup)
    return lambda step: min(step / warmup, math.sqrt(warmup / step))


def cosine(steps: int, warmup: int = 0, floor: float = 0.0) -> Schedule:
    """Return half a cosine from 1 to `floor` at `steps`, after a linear warmup."""
    check_positive("steps", steps - warmup)

    def factor(step: int) -> float:
        if step < warmup:
            return step / warmup
        progress = min(1.0, (step - warmup) / (steps - warmup))
        return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress))

    return factor


class Plateau:
    """Multiply by `factor` when the metric has not improved for `patience` validations."""

    def __init__(self, factor: float = 0.5, patience: int = 2, warmup: int = 0):
        if not 0 < factor < 1:
            raise InputError(f"factor must be in (0, 1), not {factor}")
        self.factor, self.patience, self.warmup_schedule = factor, patience, constant(warmup)
        self.scale, self.validations_without_gain = 1.0, 0

    def __call__(self, step: int) -> float:
        return self.scale * self.warmup_schedule(step)

    def update(self, improved: bool) -> None:
        self.validations_without_gain = 0 if improved else self.validations_without_gain + 1
        if self.validations_without_gain > self.patience:
            self.scale, self.validations_without_gain = self.scale * self.factor, 0

    def state_dict(self) -> dict[str, float]:
        return {"now": self.scale, "waited": self.validations_without_gain}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.scale, self.validations_without_gain = state["now"], int(state["waited"])


def check_positive(name: str, number: int) -> None:
    if number < 1:
        raise InputError(f"{name} must be positive, not {number}")
