"""Normalizers turn energies into weights. -inf marks a forbidden slot; its weight is 0.

A row in which all slots are forbidden has only weights of 0.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import Function

from regard.attention.autograd import AutogradContext

EnergyTensor = Float[Tensor, "*b q k"]
WeightTensor = Float[Tensor, "*b q k"]


def softmax(energy: EnergyTensor) -> WeightTensor:
    """w = exp e / sum exp e. A row of -inf has weights of 0 and finite gradients.

    >>> import torch
    >>> softmax(torch.tensor([[0.0, 0.0, -torch.inf]]))
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    lowest = torch.finfo(energy.dtype).min
    return energy.clamp(min=lowest).softmax(-1) * (energy != -torch.inf)


def sparsemax(energy: EnergyTensor) -> WeightTensor:
    """w = argmin_p |p - e|^2, the projection onto the simplex  (Martins & Astudillo 2016).

    >>> import torch
    >>> sparsemax(torch.tensor([[1.0, 0.8, -1.0]]))
    tensor([[0.6000, 0.4000, 0.0000]])
    """
    return SparsemaxFunction.apply(energy)


def entmax15(energy: EnergyTensor) -> WeightTensor:
    """w = max(0, e/2 - t)^2, where t makes them sum to 1  (Peters et al. 2019, alpha = 1.5).

    >>> import torch
    >>> entmax15(torch.tensor([[0.0, 0.0, -5.0]]))
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    return Entmax15Function.apply(energy)


class StraightThrough(nn.Module):
    """A single slot: sampled from the softmax in training, the best one in evaluation.

    Bengio et al. 2013: forward the sample, backward the gradient of the probabilities.

    >>> import torch
    >>> StraightThrough().eval()(torch.tensor([[1.0, 3.0, 2.0]]))
    tensor([[0., 1., 0.]])
    """

    def forward(self, energy: EnergyTensor) -> WeightTensor:
        if not self.training:
            return one_hot_slot(energy, energy)
        expected = softmax(energy)
        return sample_slot(energy) + (expected - expected.detach())


def sample_slot(energy: EnergyTensor) -> WeightTensor:
    """Sample one slot for each row from the softmax, by the Gumbel-max rule; no gradient."""
    noise = torch.empty_like(energy).exponential_().log_()  # -log E is Gumbel distributed
    return one_hot_slot(energy.detach() - noise, energy)


def one_hot_slot(rank: Tensor, energy: EnergyTensor) -> WeightTensor:
    """Return 1 at the slot of the highest rank, else 0; a row of -inf stays 0."""
    best = torch.zeros_like(energy).scatter_(-1, rank.argmax(-1, keepdim=True), 1.0)
    return best * (energy != -torch.inf)


class SparsemaxFunction(Function):
    """Sparsemax: entmax with alpha = 2."""

    @staticmethod
    def forward(ctx: AutogradContext, energy: Tensor) -> Tensor:
        weights = sparsemax_weights(energy)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx: AutogradContext, *grads: Tensor) -> Tensor:
        return entmax_gradient(ctx.saved_tensors[0], grads[0], power=0.0)


class Entmax15Function(Function):
    """Entmax with alpha = 1.5."""

    @staticmethod
    def forward(ctx: AutogradContext, energy: Tensor) -> Tensor:
        weights = entmax15_weights(energy)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx: AutogradContext, *grads: Tensor) -> Tensor:
        return entmax_gradient(ctx.saved_tensors[0], grads[0], power=0.5)


def entmax_gradient(weights: Tensor, grad: Tensor, power: float) -> Tensor:
    """Multiply by the Jacobian diag(s) - s s'/sum s, with s = w^power and power = 2 - alpha."""
    inside = weights > 0
    slope = torch.where(inside, torch.where(inside, weights, 1.0) ** power, 0.0)
    total = slope.sum(-1, keepdim=True)
    mean = (slope * grad).sum(-1, keepdim=True) / total.clamp(min=1e-30)
    return slope * (grad - mean)


def sparsemax_weights(energy: Tensor) -> Tensor:
    """w = max(0, e - t).

    With e in descending order, t = (sum of the first n energies - 1) / n for the largest n with
    e_n > t.
    """
    shifted, ordered, rank = sort_near_top(energy, 1.0)
    threshold = (ordered.cumsum(-1) - 1) / rank
    return (shifted - support_threshold(ordered, threshold)).clamp(min=0) * (energy != -torch.inf)


def entmax15_weights(energy: Tensor) -> Tensor:
    """w = max(0, e/2 - t)^2.

    With e/2 in descending order, t = mean - sqrt((1 - sum of squared deviations) / n) of the first
    n, for the largest n with e_n/2 > t.
    """
    shifted, ordered, rank = sort_near_top(energy / 2, 1.0)
    mean = ordered.cumsum(-1) / rank
    deviation = ordered.square().cumsum(-1) - rank * mean.square()
    threshold = mean - ((1 - deviation) / rank).clamp(min=0).sqrt()
    weights = (shifted - support_threshold(ordered, threshold)).clamp(min=0).square()
    return weights * (energy != -torch.inf)


def sort_near_top(energy: Tensor, depth: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the energies shifted to a maximum of 0, these in descending order, and ranks 1, 2, …

    The threshold is never below -depth. So energies below -2 depth, also -inf, become -2 depth.
    """
    top = energy.amax(-1, keepdim=True)
    shifted = (energy - torch.where(top == -torch.inf, 0.0, top)).clamp(min=-2 * depth)
    rank = torch.arange(1, energy.shape[-1] + 1, device=energy.device, dtype=energy.dtype)
    return shifted, shifted.sort(-1, descending=True).values, rank


def support_threshold(ordered: Tensor, threshold: Tensor) -> Tensor:
    """Return the threshold of the largest support whose smallest member is above it."""
    size = (ordered > threshold).sum(-1, keepdim=True).clamp(min=1)
    return threshold.gather(-1, size - 1)
