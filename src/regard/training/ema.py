"""Averages of weights: an exponential moving average, or the mean of checkpoints."""

from collections.abc import Generator, Mapping, Sequence
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
        self.weights = copied_weights(model)

    @torch.no_grad()
    def update(self, model: Model) -> None:
        self.updates += 1
        decay = min(self.decay, self.updates / (self.updates + 9))
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                self.weights[name].lerp_(value, 1 - decay)
            else:
                self.weights[name].copy_(value)

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Replace the averages by these, which may be on another device."""
        for name, average in self.weights.items():
            average.copy_(weights[name])

    @contextmanager
    def applied_to(self, model: Model) -> Generator[None]:
        """Load the averaged weights into a model; restore its weights at the end."""
        original = copied_weights(model)
        model.load_state_dict(self.weights)
        try:
            yield
        finally:
            model.load_state_dict(original)


def copied_weights(model: Model) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def mean_weights(weight_sets: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of several sets of weights, summed in float64.

    Tensors of integers are those of the last set. The sets are read one tensor after another.
    """
    if not weight_sets:
        raise InputError("there are no weights to average; give at least one set")
    if any(weights.keys() != weight_sets[0].keys() for weights in weight_sets):
        raise InputError("weights cannot be averaged: they belong to different models")
    return {
        name: mean_tensor([weights[name] for weights in weight_sets]) for name in weight_sets[0]
    }


def mean_tensor(tensors: Sequence[Tensor]) -> Tensor:
    """Return the mean of tensors of numbers, or the last one of other types."""
    last = tensors[-1]
    if not last.is_floating_point():
        return last.clone()
    total = tensors[0].double()
    for tensor in tensors[1:]:
        total = total + tensor
    return (total / len(tensors)).to(last.dtype)
