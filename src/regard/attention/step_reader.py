"""Attention of many steps to one memory, whose gradient is computed once for all steps.

A recurrent decoder asks one query at each step. Autograd would make a gradient of the size of the
memory at every step; see `kernels.shared`.

b: any leading axes (batch, heads)   q: queries   k: memory slots   d*: widths
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.attention.core import Attention
from regard.attention.masks import Mask
from regard.attention.memory import Memory
from regard.attention.scores import Additive, Dot
from regard.attention.step_energy import can_exponentiate, step_energy
from regard.kernels.linear import Linear
from regard.kernels.shared import (
    KeptTensors,
    SharedTensor,
    StepContext,
    StepGradients,
    can_share,
    step_product,
)

ReadMemory = Callable[[Tensor], Tensor]  # query [n dq] -> context [n dv]
StepScore = Callable[[Tensor], Tensor]  # query [n 1 dq] -> energy [n 1 k]


def step_reader(attention: Attention, memory: Memory, mask: Mask | None = None) -> ReadMemory:
    """Return a function (query of each row) -> context, for all steps of a decoder.

    A step is `attention(query, memory, mask)` without its checks. While the attention is observed
    or edited, a step is that call.
    """
    score = step_score(attention, memory)
    if score is None or mask is not None:
        return lambda query: attention(query[:, None], memory, mask)[:, 0]
    read_values, allowed = step_matmul(memory.values), memory.allowed_slots(1, None, None)

    def read(query: Tensor) -> Tensor:
        if attention.hook is not None:
            return attention(query[:, None], memory)[:, 0]
        weights = attention.normalize_energy(score(query[:, None]), query[:, None], memory, allowed)
        if attention.training and attention.dropout:
            weights = F.dropout(weights, attention.dropout)
        return read_values(weights)[:, 0]

    return read


def step_score(attention: Attention, memory: Memory) -> StepScore | None:
    """Return the score of a query with all keys; None if steps cannot share these keys."""
    score, keys = attention.score, memory.keys
    if keys.ndim != 3 or not (can_share(keys) and can_share(memory.values)):
        return None
    if isinstance(score, Dot):
        product = step_matmul(keys.mT)
        return lambda query: product(score.prepare_query(query) * score.scale(keys))
    if not isinstance(score, Additive) or not can_exponentiate(keys):
        return None
    project, energy = step_projection(score, keys), step_energy(keys, score.energy)
    return lambda query: energy(project(query[:, 0]))[:, None]


def step_projection(score: Additive, keys: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a function (query [n dq]) -> W q + b, for all steps."""
    projection = score.of_query
    if not isinstance(projection, Linear):
        return projection
    bias = cast("Tensor | None", projection.bias)
    if bias is None:
        bias = keys.new_zeros(keys.shape[-1])
    add_product = step_product(projection.weight)
    return lambda query: add_product(bias.expand(len(query), -1), query)


def step_matmul(slots: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a function x -> x @ slots, for all steps."""
    steps = StepGradients()
    shared: Tensor = SharedTensor.apply(slots, steps, slots_gradient)
    return lambda x: StepMatmul.apply(x, shared, steps)


class StepMatmul(torch.autograd.Function):
    """x [n q k] @ slots [n k d] of one step."""

    @staticmethod
    def forward(ctx: StepContext, x: Tensor, slots: Tensor, steps: StepGradients) -> Tensor:
        ctx.save_for_backward(x, slots)
        ctx.steps = steps
        return x @ slots

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - torch types it loosely
        ctx: StepContext, grad: Tensor
    ) -> tuple[Tensor | None, ...]:
        x, slots = ctx.saved_tensors
        if torch.is_grad_enabled():  # the pass itself will be differentiated
            return grad @ slots.mT, x.mT @ grad, None
        ctx.steps.keep(x, grad)
        return grad @ slots.mT, None, None


def slots_gradient(kept: Sequence[KeptTensors]) -> Tensor:
    """Return [x_1; …]' [g_1; …] of each row."""
    inputs, grads = (torch.cat(tensors, -2) for tensors in zip(*kept, strict=True))
    return inputs.mT @ grads
