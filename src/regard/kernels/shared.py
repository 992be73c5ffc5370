"""Products of many steps with one tensor, whose gradient is one product after all steps.

    y_t = x_t W'                             for each step t
    dW  = sum_t g_t' x_t = [g_1; …]' [x_1; …]

Autograd would make a gradient of the size of W at every step, and add them up. Here a step only
keeps x_t and g_t. `SharedTensor` stands before all steps, so that autograd reaches it last: it
computes the gradient for all of them.

n: rows   d: width of the input   e: width of the output   b: batch   k: slots
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor as is_transformed

from regard.kernels.int8 import Int8Weight
from regard.kernels.linear import (
    MIN_PACKED_SIZE,
    add_linear,
    can_use_onednn,
    linear,
    min_size,
    multiply,
    packed_weight,
    weight_gradient,
)

StepProduct = Callable[[Tensor, Tensor], Tensor]  # (base [n e], x [n d]) -> base + x W' [n e]
KeptTensors = tuple[Tensor, ...]
GradientOfSteps = Callable[[Sequence[KeptTensors]], Tensor]  # what all steps kept -> gradient


class StepGradients:
    """Tensors that the steps of one backward pass keep for the gradient of a shared tensor."""

    def __init__(self) -> None:
        self.task, self.kept = -1, list[KeptTensors]()

    def keep(self, *tensors: Tensor) -> None:
        self.forget_other_passes()
        self.kept.append(tensors)

    def sum_like(self, tensor: Tensor) -> Tensor:
        """Return the sum that each step adds its gradient to; it starts at 0."""
        self.forget_other_passes()
        if not self.kept:
            self.kept.append((torch.zeros_like(tensor),))
        return self.kept[0][0]

    def take(self) -> list[KeptTensors]:
        """Return what the steps of this pass have kept, and forget it."""
        self.forget_other_passes()
        kept, self.kept = self.kept, []
        return kept

    def forget_other_passes(self) -> None:
        """Forget the steps of a pass that did not need the gradient of the shared tensor."""
        task = torch._C._current_graph_task_id()
        if task != self.task:
            self.task, self.kept = task, []


@runtime_checkable
class StepContext(Protocol):
    """The first argument of the functions below, which torch leaves untyped."""

    if TYPE_CHECKING:  # `forward` sets them
        steps: StepGradients
        gradient: GradientOfSteps

    def save_for_backward(self, *tensors: Tensor) -> None: ...
    def set_materialize_grads(self, value: bool) -> None: ...

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]: ...
    @property
    def needs_input_grad(self) -> tuple[bool, ...]: ...


class SharedTensor(torch.autograd.Function):
    """The identity; its gradient is that of all steps."""

    @staticmethod
    def forward(
        ctx: StepContext, tensor: Tensor, steps: StepGradients, gradient: GradientOfSteps
    ) -> Tensor:
        ctx.steps, ctx.gradient = steps, gradient
        ctx.set_materialize_grads(False)
        return tensor.clone(memory_format=torch.contiguous_format)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - torch types it loosely
        ctx: StepContext, grad: Tensor | None
    ) -> tuple[Tensor | None, None, None]:
        kept = ctx.steps.take()
        if kept:
            gradient = ctx.gradient(kept)
            grad = gradient if grad is None else grad + gradient
        return grad, None, None


class StepLinear(torch.autograd.Function):
    """base + x W' of one step."""

    @staticmethod
    def forward(
        ctx: StepContext, base: Tensor, x: Tensor, weight: Tensor, steps: StepGradients
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.steps = steps
        return add_product(base, x, weight)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - torch types it loosely
        ctx: StepContext, grad: Tensor
    ) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        grad_x = linear(grad, weight.t()) if ctx.needs_input_grad[1] else None
        if torch.is_grad_enabled():  # the pass itself will be differentiated
            return grad, grad_x, grad.t() @ x, None
        ctx.steps.keep(grad, x)
        return grad, grad_x, None, None


def step_product(weight: Float[Tensor, "e d"]) -> StepProduct:
    """Return a function (base, x) -> base + x W', for all steps of a sequence."""
    if not can_share(weight):
        parameter = weight if isinstance(weight, nn.Parameter) else weight._base
        if torch.is_grad_enabled() or not isinstance(parameter, nn.Parameter):
            return lambda base, x: add_linear(base, x, weight)
        return packed_step_product(weight, parameter)
    steps = StepGradients()
    shared: Tensor = SharedTensor.apply(weight, steps, sum_of_outer_products)
    return lambda base, x: StepLinear.apply(base, x, shared, steps)


def packed_step_product(weight: Tensor, parameter: nn.Parameter) -> StepProduct:
    """Return a function (base, x) -> base + x W' with a weight that is packed once."""
    if not can_use_onednn(weight, weight):
        return lambda base, x: add_linear(base, x, weight)
    min_numbers = MIN_PACKED_SIZE // max(1, len(weight)) + 1
    packed: list[Tensor | Int8Weight] = []

    def add_packed(base: Tensor, x: Tensor) -> Tensor:
        if x.numel() < min_numbers or x.dtype is not weight.dtype:
            return add_linear(base, x, weight)
        if not packed:
            packed.append(packed_weight(weight, parameter))
        return multiply(x, packed[0], None).add_(base)

    return add_packed


def can_share(tensor: Tensor) -> bool:
    """Return whether steps may share a tensor: for a gradient that autograd itself computes."""
    return (
        torch.is_grad_enabled()
        and tensor.requires_grad
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled(tensor.device.type)
        and not is_transformed(tensor)
    )


def add_product(base: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """base + x W' with a weight that is not packed."""
    if x.numel() * len(weight) < min_size(len(x)) or not can_use_onednn(x, weight):
        return torch.addmm(base, x, weight.t())
    return multiply(x, weight, None).add_(base)


def sum_of_outer_products(kept: Sequence[KeptTensors]) -> Tensor:
    """Return [g_1; …]' [x_1; …]."""
    grads, inputs = (torch.cat(tensors) for tensors in zip(*kept, strict=True))
    return weight_gradient(grads, inputs)
