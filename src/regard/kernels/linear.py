"""x W' + b by oneDNN, which torch brings, where it is faster than torch's default, MKL.

MKL uses the widest instructions of Intel's processors only; elsewhere, oneDNN needs less than half
of its time for float32. The weights of a model are packed once for inference, in the order in which
the kernel reads them. oneDNN prepares code for every new shape (0.2 to 0.5 ms), so small products
stay with torch. `torch.backends.mkldnn.flags(enabled=False)` turns all of this off.

n: rows   d: width of the input   e: width of the output
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor as is_transformed
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from regard.kernels.int8 import Int8Weight, pack_int8, uses_int8

# Smallest n * d * e for oneDNN: of a packed weight, of up to MAX_REPEATED_ROWS rows (such as the
# steps of a recurrent network, whose shapes come again and again), and of more rows.
MIN_PACKED_SIZE = 200_000
MIN_REPEATED_SIZE = 4_000_000
MIN_SIZE = 30_000_000
MAX_REPEATED_ROWS = 256
MIN_ROWS_FOR_JOINT_PRODUCT = 256  # with fewer, joining the weights costs more than it saves
PACKED_ROWS = 32  # the number of rows that packing is best for

T = TypeVar("T")
HAS_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class PackedWeight(NamedTuple, Generic[T]):
    """A weight in the order of a kernel, the parameters that it was made from, their versions."""

    weight: T
    versions: list[tuple[int, int]]
    others: Sequence[Tensor]  # the parameters but for the first, which keeps the packed weight


class Linear(nn.Linear):
    """`torch.nn.Linear` by the function `linear`."""

    def forward(self, input: Float[Tensor, "*n d"]) -> Float[Tensor, "*n e"]:  # noqa: A002
        return linear(input, self.weight, self.bias)


def linear(
    x: Float[Tensor, "*n d"], weight: Float[Tensor, "e d"], bias: Float[Tensor, " e"] | None = None
) -> Float[Tensor, "*n e"]:
    """x W' + b, like `torch.nn.functional.linear`, also its gradients."""
    size = x.numel() * weight.shape[0]
    if size < MIN_PACKED_SIZE or not can_use_onednn(x, weight):
        return F.linear(x, weight, bias)
    if not torch.is_grad_enabled():
        parameter = weight if isinstance(weight, nn.Parameter) else weight._base
        if isinstance(parameter, nn.Parameter):
            return multiply(x, packed_weight(weight, parameter), bias)
    if size < min_size(x.numel() // x.shape[-1]):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled():
        return LinearFunction.apply(x, weight, bias)
    return multiply(x, weight, bias)


def min_size(rows: int) -> int:
    return MIN_REPEATED_SIZE if rows <= MAX_REPEATED_ROWS else MIN_SIZE


def add_linear(
    base: Float[Tensor, "n e"], x: Float[Tensor, "n d"], weight: Float[Tensor, "e d"]
) -> Float[Tensor, "n e"]:
    """base + x W'."""
    if x.numel() * weight.shape[0] < MIN_PACKED_SIZE or not can_use_onednn(x, weight):
        return torch.addmm(base, x, weight.t())
    return base + linear(x, weight)


def joint_linear(
    x: Float[Tensor, "*n d"], layers: Sequence[nn.Linear]
) -> Sequence[Float[Tensor, "*n _"]]:
    """Return the outputs of layers with the same input; for many rows, by one joint product."""
    weights: list[Tensor] = [layer.weight for layer in layers]
    sizes = [len(weight) for weight in weights]
    is_packed = (
        not torch.is_grad_enabled()
        and x.numel() * sum(sizes) >= MIN_PACKED_SIZE
        and all(isinstance(weight, nn.Parameter) for weight in weights)
        and can_use_onednn(x, weights[0])
    )
    if not is_packed and x.numel() < MIN_ROWS_FOR_JOINT_PRODUCT * x.shape[-1]:
        return [layer(x) for layer in layers]
    biases: list[Tensor | None] = [layer.bias for layer in layers]
    bias = None if biases[0] is None else torch.cat([bias for bias in biases if bias is not None])
    if is_packed:
        return multiply(x, packed_joint_weight(weights), bias).split(sizes, -1)
    return linear(x, torch.cat(weights), bias).split(sizes, -1)


def can_use_onednn(x: Tensor, weight: Tensor) -> bool:
    return (
        HAS_ONEDNN
        and x.dtype is weight.dtype is torch.float32
        and x.device.type == weight.device.type == "cpu"
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
        and torch.backends.mkldnn.enabled
        and not is_transformed(x)
        and not is_transformed(weight)
    )


class LinearFunction(torch.autograd.Function):
    """x W' + b by oneDNN, and its gradients: dx = g W, dW = g' x, db = sum g."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return multiply(x, weight, bias)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - torch types it loosely
        ctx: Any, grad: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        rows, grad_rows = x.flatten(0, -2), grad.flatten(0, -2)
        # `apply` instead of `multiply`, so that there are second derivatives too
        return (
            LinearFunction.apply(grad, weight.t(), None) if needs_x else None,
            weight_gradient(grad_rows, rows) if needs_weight else None,
            grad_rows.sum(0) if needs_bias else None,
        )


def weight_gradient(grad: Float[Tensor, "n e"], x: Float[Tensor, "n d"]) -> Float[Tensor, "e d"]:
    """g' x; oneDNN copies the first factor of a product, so the narrower one comes first."""
    if grad.shape[1] <= x.shape[1]:
        return linear(grad.t(), x.t())
    return linear(x.t(), grad.t()).t()


def multiply(x: Tensor, weight: Tensor | Int8Weight, bias: Tensor | None) -> Tensor:
    """x W' + b by oneDNN, or with 8 bits; `weight` may be packed."""
    if isinstance(weight, Int8Weight):
        return weight.multiply(x, bias)
    if weight.layout is torch.strided:
        weight = to_dense_order(weight)
    return torch.ops.mkldnn._linear_pointwise(to_dense_order(x), weight, bias, "none", [], "")


def to_dense_order(x: Tensor) -> Tensor:
    """Copy `x` unless it or its transpose is contiguous; oneDNN is very slow in other orders."""
    if x.is_contiguous() or (x.ndim == 2 and x.t().is_contiguous()):
        return x
    return x.contiguous()


def packed_weight(weight: Tensor, parameter: Tensor) -> Tensor | Int8Weight:
    """Return a packed weight: the whole parameter, or a view of it.

    It is kept with the parameter until the values of the parameter change.
    """
    key = weight.storage_offset(), weight.shape, weight.stride()
    return find_or_make(key, [parameter], lambda: pack(weight, int8=uses_int8(parameter)))


def packed_joint_weight(weights: Sequence[Tensor]) -> Tensor | Int8Weight:
    """Return the packed rows of several parameters, or of views of them.

    They are kept with the first parameter.
    """
    parameters = [base_parameter(weight) for weight in weights]
    key = tuple(
        (id(parameter), weight.storage_offset(), weight.shape, weight.stride())
        for parameter, weight in zip(parameters, weights, strict=True)
    )
    int8 = uses_int8(parameters[0])
    return find_or_make(key, parameters, lambda: pack(torch.cat(list(weights)), int8=int8))


def base_parameter(weight: Tensor) -> Tensor:
    """Return the parameter that a weight is a view of; a weight that is none itself."""
    base = weight._base
    return weight if isinstance(weight, nn.Parameter) or base is None else base


def pack(weight: Tensor, *, int8: bool) -> Tensor | Int8Weight:
    values = weight.detach().contiguous()
    if int8:
        return pack_int8(values)
    return torch.ops.mkldnn._reorder_linear_weight(values, PACKED_ROWS)


def find_or_make(key: Hashable, parameters: Sequence[Tensor], make: Callable[[], T]) -> T:
    """Return what was made of these parameters, until they change; it is kept with the first.

    It is made anew if changes cannot be seen: tensors made in inference mode have no versions.
    """
    if any(parameter.is_inference() for parameter in parameters):
        return make()
    kept: dict[Hashable, PackedWeight[T]] = getattr(parameters[0], "packed", {})
    versions = parameter_versions(parameters)
    packed = kept.get(key)
    if packed is not None and packed.versions == versions:
        return packed.weight
    weight = make()
    kept = {**kept, key: PackedWeight(weight, versions, parameters[1:])}  # other threads may read
    setattr(parameters[0], "packed", kept)  # noqa: B010 - an attribute that torch does not know
    return weight


def parameter_versions(parameters: Sequence[Tensor]) -> list[tuple[int, int]]:
    """Return numbers that change with the values, except by operations in place on `.data`."""
    return [(parameter._version, parameter.data_ptr()) for parameter in parameters]


def release_packed_weights(model: nn.Module) -> None:
    """Free the packed weights of a model, for example before it is trained on."""
    release(model.parameters())


def release_after_step(optimizer: Optimizer, args: object, kwargs: object) -> None:  # noqa: ARG001
    """Free the packed weights of parameters that an optimizer has changed.

    Fused optimizers change parameters without a new version.
    """
    for group in optimizer.param_groups:
        release(group["params"])


def release(parameters: Iterable[Tensor]) -> None:
    for parameter in parameters:
        if hasattr(parameter, "packed"):
            delattr(parameter, "packed")


register_optimizer_step_post_hook(release_after_step)
