"""Attention of many steps to one memory, whose gradient is computed once for all steps.

A recurrent decoder asks one query at each step. Autograd would make a gradient of the size of the
memory at every step; see `kernels.shared`.

b: any leading axes (batch, heads)   q: queries   k: memory slots   d*: widths
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.core import Attention
from regard.attention.memory import Memory
from regard.attention.scores import Additive, Dot
from regard.attention.step_energy import (
    MAX_KEY,
    can_exponentiate,
    energy_of_step,
    exponential,
    step_energy,
)
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


@dataclass(frozen=True)
class SearchMemory:
    """The memory of a search, and exp(2 k) of its keys, which all steps share."""

    memory: Memory
    exp_keys: Float[Tensor, "n k h"] | None  # None: the energies are not computed from them

    def select(self, rows: Int[Tensor, " m"]) -> "SearchMemory":
        exp_keys = None if self.exp_keys is None else self.exp_keys.index_select(0, rows)
        return SearchMemory(self.memory.select(rows), exp_keys)

    def read(self, attention: Attention, query: Float[Tensor, "n d"]) -> Float[Tensor, "n dv"]:
        """Return the context of each row, without the checks of `attention`."""
        score, memory = attention.score, self.memory
        is_plain = attention.hook is not None or torch.is_grad_enabled()
        if is_plain or self.exp_keys is None or not isinstance(score, Additive):
            return attention(query[:, None], memory)[:, 0]
        energy = energy_of_step(score.of_query(query), self.exp_keys, score.energy)[:, None]
        allowed = None if memory.valid is None else memory.valid[:, None]
        weights = attention.normalize_energy(energy, query[:, None], memory, allowed)
        return torch.bmm(weights, memory.values)[:, 0]


def prepare_search(attention: Attention, memory: Memory) -> SearchMemory:
    """Compute once what all steps of a search share."""
    score, keys = attention.score, memory.keys
    is_shared = (
        isinstance(score, Additive)
        and score.energy.ndim == 1
        and keys.ndim == 3
        and keys.dtype in (torch.float32, torch.float64)
        and not attention.training
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled(keys.device.type)
        and can_exponentiate(keys)
    )
    return SearchMemory(memory, exponential(keys, MAX_KEY) if is_shared else None)


def step_reader(attention: Attention, memory: Memory) -> ReadMemory:
    """Return a function (query of each row) -> context, for all steps of a decoder.

    A step is `attention(query, memory)` without its checks. While the attention is observed or
    edited, a step is that call.
    """
    score = step_score(attention, memory)
    if score is None:
        return lambda query: attention(query[:, None], memory)[:, 0]
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
    if not isinstance(score, Additive) or score.energy.ndim > 1 or not can_exponentiate(keys):
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
