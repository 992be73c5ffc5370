"""From energies to weights: -inf is not allowed, and a row of nothing else reads nothing."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import Function

EnergyTensor = Float[Tensor, "*b q k"]
WeightTensor = Float[Tensor, "*b q k"]


def softmax(energy: EnergyTensor) -> WeightTensor:
    """w = exp e / sum exp e, 0 throughout for an empty row, with finite gradients there too."""
    lowest = torch.finfo(energy.dtype).min
    return energy.clamp(min=lowest).softmax(-1) * (energy != -torch.inf)


def sparsemax(energy: EnergyTensor) -> WeightTensor:
    """The Euclidean projection of the energies onto the simplex (Martins & Astudillo 2016)."""
    return EntmaxFunction.apply(energy, sparsemax_weights, 0.0)


def entmax15(energy: EnergyTensor) -> WeightTensor:
    """w = max(0, e/2 - t)^2 with t such that they sum to 1  (Peters et al. 2019, alpha = 1.5)."""
    return EntmaxFunction.apply(energy, entmax15_weights, 0.5)


class StraightThrough(nn.Module):
    """One slot only: drawn from the softmax in training, otherwise the best.

    Bengio et al. 2013: forward the sample, backward as if it were the probability.
    """

    def forward(self, energy: EnergyTensor) -> WeightTensor:
        if not self.training:
            return one_hot_slot(energy, energy)
        expected = softmax(energy)
        return sample_slot(energy) + (expected - expected.detach())


def sample_slot(energy: EnergyTensor) -> WeightTensor:
    """One slot a row, drawn from the softmax by the Gumbel-max rule; no gradient."""
    noise = torch.empty_like(energy).exponential_().log_()  # -log E is Gumbel distributed
    return one_hot_slot(energy.detach() - noise, energy)


def one_hot_slot(rank: Tensor, energy: EnergyTensor) -> WeightTensor:
    """1 at the slot of the highest rank, else 0; nothing where nothing is allowed."""
    best = torch.zeros_like(energy).scatter_(-1, rank.argmax(-1, keepdim=True), 1.0)
    return best * (energy != -torch.inf)


class EntmaxFunction(Function):
    """Weights w of the entmax family, with Jacobian diag(s) - s s'/sum s for s = w^(2 - alpha)."""

    @staticmethod
    def forward(ctx: Any, energy: Tensor, weigh: Any, power: float) -> Tensor:
        weights = weigh(energy)
        ctx.save_for_backward(weights)
        ctx.power = power
        return weights

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (weights,) = ctx.saved_tensors
        inside = weights > 0
        slope = torch.where(inside, torch.where(inside, weights, 1.0) ** ctx.power, 0.0)
        total = slope.sum(-1, keepdim=True)
        mean = (slope * grads[0]).sum(-1, keepdim=True) / total.clamp(min=1e-30)
        return slope * (grads[0] - mean), None, None


def sparsemax_weights(energy: Tensor) -> Tensor:
    """With e sorted downwards, t = (sum of the first n - 1) / n for the largest n with e_n > t."""
    shifted, ordered, rank = sort_near_top(energy, 1.0)
    threshold = (ordered.cumsum(-1) - 1) / rank
    return (shifted - support_threshold(ordered, threshold)).clamp(min=0) * (energy != -torch.inf)


def entmax15_weights(energy: Tensor) -> Tensor:
    """With e/2 sorted downwards, t = mean - sqrt((1 - sum of squared deviations) / n) for n."""
    shifted, ordered, rank = sort_near_top(energy / 2, 1.0)
    mean = ordered.cumsum(-1) / rank
    deviation = ordered.square().cumsum(-1) - rank * mean.square()
    threshold = mean - ((1 - deviation) / rank).clamp(min=0).sqrt()
    weights = (shifted - support_threshold(ordered, threshold)).clamp(min=0).square()
    return weights * (energy != -torch.inf)


def sort_near_top(energy: Tensor, depth: float) -> tuple[Tensor, Tensor, Tensor]:
    """Energies with their maximum at 0, the same sorted, and the ranks 1, 2, …

    The threshold is never below -depth, so what lies far below it (-inf too) is cut to be finite.
    """
    top = energy.amax(-1, keepdim=True)
    shifted = (energy - torch.where(top == -torch.inf, 0.0, top)).clamp(min=-2 * depth)
    rank = torch.arange(1, energy.shape[-1] + 1, device=energy.device, dtype=energy.dtype)
    return shifted, shifted.sort(-1, descending=True).values, rank


def support_threshold(ordered: Tensor, threshold: Tensor) -> Tensor:
    """The threshold of the largest set whose smallest member is still above it."""
    size = (ordered > threshold).sum(-1, keepdim=True).clamp(min=1)
    return threshold.gather(-1, size - 1)
