"""Averages of weights: an exponential moving average, or the mean of checkpoints."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from regard.errors import InputError
from regard.models.protocols import Model


class ExponentialMovingAverage:
    """a <- d a + (1 - d) w after each step; d starts low, to forget the random initial weights."""

    def __init__(self, model: Model, decay: float = 0.999):
        if not 0 < decay < 1:
            raise InputError(f"decay must be in (0, 1), not {decay}")
        self.decay, self.updates = decay, 0
        self.weights = {name: value.clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: Model) -> None:
        self.updates += 1
        decay = min(self.decay, self.updates / (self.updates + 9))
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                self.weights[name].lerp_(value, 1 - decay)
            else:
                self.weights[name].copy_(value)

    @contextmanager
    def applied_to(self, model: Model) -> Generator[None]:
        """Load the averaged weights into a model; restore its weights at the end."""
        original = {name: value.clone() for name, value in model.state_dict().items()}
        model.load_state_dict(self.weights)
        try:
            yield
        finally:
            model.load_state_dict(original)


def mean_weights(weight_sets: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of several sets of weights, summed in float64.

    Tensors of integers are those of the last set.
    """
    total: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    count = 0
    for weights in weight_sets:
        count += 1
        if total and weights.keys() != total.keys():
            raise InputError("weights cannot be averaged: they belong to different models")
        for name, value in weights.items():
            dtypes[name] = value.dtype
            if not value.is_floating_point():
                total[name] = value.clone()
            elif name in total:
                total[name] += value
            else:
                total[name] = value.double()
    if not count:
        raise InputError("there are no weights to average; give at least one set")
    return {
        name: (value / count).to(dtypes[name]) if value.is_floating_point() else value
        for name, value in total.items()
    }
