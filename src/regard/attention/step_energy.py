"""The additive energy of one step with keys that many steps share, without a tanh for each pair.

    tanh(q + k) = 1 - 2 r        r = 1 / (1 + exp(2 q) exp(2 k))
    e           = v . tanh(q + k) = sum(v) - 2 v . r
    de / d(q + k) = v (1 - tanh^2) = 4 v r (1 - r)

exp(2 k) is computed once for all steps. Keys are limited to MAX_KEY, and a query beyond MAX_QUERY
saturates every tanh, so that no exponential and no product of two is infinite or 0.

n: rows   k: slots   h: units
"""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.additive import MAX_BLOCK_ELEMENTS
from regard.kernels import compiled
from regard.kernels.shared import SharedTensor, StepContext, StepGradients

MAX_KEY = 20.0
MAX_QUERY = 40.0


def can_exponentiate(keys: Tensor) -> bool:
    """Return whether exp(2 k) is far from overflow for every key."""
    low, high = torch.aminmax(keys.detach())
    return bool(low >= -MAX_KEY) and bool(high <= MAX_KEY)


def exponential(x: Tensor, limit: float) -> Tensor:
    """exp(2 x), for |x| up to the limit."""
    return x.clamp(-limit, limit).mul_(2).exp_()


def step_energy(
    keys: Float[Tensor, "n k h"], v: Float[Tensor, " h"]
) -> Callable[[Float[Tensor, "n h"]], Float[Tensor, "n k"]]:
    """Return a function (projected query) -> energy of each key, for all steps of a sequence."""
    exp_keys, steps = exponential(keys.detach(), MAX_KEY), StepGradients()
    shared: Tensor = SharedTensor.apply(keys, steps, lambda kept: kept[0][0].mul_(4 * v.detach()))
    return lambda query: StepEnergy.apply(query, shared, v, exp_keys, steps)


def energy_of_step(
    query: Float[Tensor, "n h"], exp_keys: Float[Tensor, "n k h"], v: Float[Tensor, " h"]
) -> Float[Tensor, "n k"]:
    """e = v . tanh(q + k) of each row."""
    native = compiled.native
    if native is not None and compiled.can_use_native(query, exp_keys, v):
        energy = query.new_empty(exp_keys.shape[:2])
        addresses = (tensor.data_ptr() for tensor in (query, exp_keys, v, energy))
        native.additive_energies(*addresses, *exp_keys.shape)
        return energy
    exp_query, energy = exponential(query, MAX_QUERY), query.new_empty(exp_keys.shape[:2])
    for rows in row_blocks(exp_keys):
        energy[rows] = reciprocals(exp_query[rows], exp_keys[rows]) @ v
    return torch.sub(v.sum(), energy, alpha=2)


def reciprocals(exp_query: Tensor, exp_keys: Tensor) -> Tensor:
    """r = 1 / (1 + exp(2 q) exp(2 k))."""
    return torch.mul(exp_query[:, None], exp_keys).add_(1).reciprocal_()


def row_blocks(keys: Tensor) -> Iterator[slice]:
    """Yield slices of rows whose pairs fit into a cache; a block has at least one row."""
    rows = max(1, MAX_BLOCK_ELEMENTS // max(1, keys.shape[1] * keys.shape[2]))
    for first in range(0, len(keys), rows):
        yield slice(first, first + rows)


class StepEnergy(torch.autograd.Function):
    """query [n h], keys [n k h], v [h] -> energy [n k]."""

    @staticmethod
    def forward(
        ctx: StepContext,
        query: Tensor,
        keys: Tensor,
        v: Tensor,
        exp_keys: Tensor,
        steps: StepGradients,
    ) -> Tensor:
        ctx.save_for_backward(query, keys, v, exp_keys)
        ctx.steps = steps
        return energy_of_step(query, exp_keys, v)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - torch types it loosely
        ctx: StepContext, grad: Tensor
    ) -> tuple[Tensor | None, ...]:
        query, keys, v, exp_keys = ctx.saved_tensors
        if torch.is_grad_enabled():  # the pass itself will be differentiated
            tanh = (query[:, None] + keys).tanh()
            slope = grad[..., None] * v * (1 - tanh * tanh)
            return slope.sum(1), slope, (grad[..., None] * tanh).sum((0, 1)), None, None
        total = ctx.steps.sum_like(keys)
        native = compiled.native
        if native is not None and compiled.can_use_native(query, exp_keys, grad, total):
            slopes, grad_v = torch.zeros_like(query), torch.zeros_like(v)
            tensors = query, exp_keys, grad, slopes, total, grad_v
            native.additive_slopes(*(tensor.data_ptr() for tensor in tensors), *exp_keys.shape)
            return slopes.mul_(4 * v), None, grad.sum() - 2 * grad_v, None, None
        exp_query = exponential(query, MAX_QUERY)
        slopes, grad_v = torch.empty_like(query), v * 0
        for rows in row_blocks(keys):
            r, block_grad = reciprocals(exp_query[rows], exp_keys[rows]), grad[rows]
            grad_v += block_grad.flatten() @ r.flatten(0, 1)
            slope = r.addcmul_(r, r, value=-1)
            slopes[rows] = torch.bmm(block_grad[:, None], slope)[:, 0]
            total[rows].addcmul_(slope, block_grad[..., None])
        return slopes.mul_(4 * v), None, grad.sum() - 2 * grad_v, None, None
