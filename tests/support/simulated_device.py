"""A device that a machine without a GPU can test: it computes on the CPU, and keeps its rules.

Its tensors hold tensors of the CPU. As on a GPU, an operation with tensors of two devices is an
error, numpy cannot read them, and random generators of the CPU cannot fill them. With
`float64=False` it has no numbers of 64 bits, like the GPUs of Apple.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

NAME = "simulated"
COPIES = ("aten::copy_", "aten::_to_copy")  # which may have tensors of two devices


class BackendModule(_DummyBackendModule):
    """What torch asks a device for autocast and random numbers, which are its own."""

    def __init__(self) -> None:
        self.random_state = torch.Generator().manual_seed(0).get_state()

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    def _is_in_bad_fork(self) -> bool:
        return False

    def get_rng_state(self, device: object = None) -> Tensor:  # noqa: ARG002
        return self.random_state

    def set_rng_state(self, state: Tensor, device: object = None) -> None:  # noqa: ARG002
        self.random_state = state

    def manual_seed_all(self, seed: int) -> None:
        self.random_state = torch.Generator().manual_seed(seed).get_state()

    @contextmanager
    def own_random_numbers(self) -> Generator[None]:
        """Draw from the random numbers of the device inside a `with` block."""
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.random_state)
            try:
                yield
            finally:
                self.random_state = torch.get_rng_state()


# The first gradient of a process starts a thread for each device that torch knows then. Without
# threads, this process can still be forked.
torch.ones(1, requires_grad=True).sum().backward()
BACKEND = BackendModule()

_setup_privateuseone_for_python_backend(NAME, BACKEND)
DEVICE = torch.device(NAME, 0)


class SimulatedTensor(Tensor):
    """A tensor on the simulated device, which holds one on the CPU."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "SimulatedTensor":
        tensor = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
            requires_grad=held.requires_grad,
        )
        tensor.held = held
        return tensor

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})

    def tolist(self) -> Any:
        return self.held.tolist()

    def __repr__(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return f"{NAME}({self.held})"


class SimulatedMode(TorchDispatchMode):
    """Creates tensors on the simulated device, which no argument of an operation shows."""

    def __init__(self, *, float64: bool):
        super().__init__()
        self.float64 = float64

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = compute(func, args, kwargs or {})
        if not self.float64:
            for tensor in tree_leaves(result):
                if isinstance(tensor, SimulatedTensor) and tensor.dtype == torch.float64:
                    raise TypeError(f"{func}: this device has no float64")
        return result


class FunctionMode(TorchFunctionMode):
    """Replaces functions that make tensors of lists, which torch hides from a dispatch mode."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func is torch.tensor and torch.device(kwargs.get("device") or "cpu").type == NAME:
            return torch.tensor(*args, **{**kwargs, "device": "cpu"}).to(DEVICE)
        if func is Tensor.new_tensor and isinstance(args[0], SimulatedTensor):
            return torch.tensor(args[1], **{"dtype": args[0].dtype, **kwargs}).to(DEVICE)
        return func(*args, **kwargs)


def compute(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run an operation on the CPU, after the checks of a device."""
    leaves = tree_leaves((args, kwargs))
    is_simulated = any(isinstance(leaf, SimulatedTensor) for leaf in leaves)
    target = None if kwargs.get("device") is None else torch.device(kwargs["device"]).type
    if not is_simulated and target != NAME:
        return func(*args, **kwargs)
    name = func._schema.name
    check_arguments(name, leaves)
    held_args, held_kwargs = tree_map_only(SimulatedTensor, lambda t: t.held, (args, kwargs))
    if target == NAME:
        held_kwargs["device"] = "cpu"
    held_kwargs.pop("pin_memory", None)
    operation = FUSED_CELLS.get(name, func)
    is_random = torch.Tag.nondeterministic_seeded in func.tags
    with BACKEND.own_random_numbers() if is_random else nullcontext():
        result = operation(*held_args, **held_kwargs)
    if target == "cpu":
        return result
    wrapped = tree_map_only(Tensor, SimulatedTensor, result)
    if not is_simulated or operation is not func:
        return wrapped
    return return_and_correct_aliasing(func, args, kwargs, wrapped)


def check_arguments(name: str, leaves: Sequence[Any]) -> None:
    """Refuse tensors of two devices (numbers may mix) and generators of the CPU."""
    others = [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.device.type != NAME]
    if name not in COPIES and any(other.ndim for other in others):
        shapes = [tuple(other.shape) for other in others]
        raise RuntimeError(f"{name}: tensors are on two devices, these on the CPU: {shapes}")
    if any(isinstance(leaf, torch.Generator) for leaf in leaves):
        raise RuntimeError(f"{name}: the generator is on the CPU")


def gru_cell(x: Tensor, h: Tensor, hx: Tensor, bx: Tensor | None, bh: Tensor | None) -> Any:
    """Return the state after a step, and what the gradient needs of it."""
    x, h = (x, h) if bx is None or bh is None else (x + bx, h + bh)
    (xr, xz, xn), (hr, hz, hn) = x.chunk(3, 1), h.chunk(3, 1)
    r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
    n = (xn + r * hn).tanh()
    return n + z * (hx - n), torch.cat([r, z, n, hn, hx], 1)


def gru_cell_backward(grad: Tensor, workspace: Tensor, has_bias: bool) -> Any:
    r, z, n, hn, hx = workspace.chunk(5, 1)
    dn, dz = grad * (1 - z) * (1 - n * n), grad * (hx - n) * z * (1 - z)
    dr = dn * hn * r * (1 - r)
    dx, dh = torch.cat([dr, dz, dn], 1), torch.cat([dr, dz, dn * r], 1)
    return dx, dh, grad * z, *((dx.sum(0), dh.sum(0)) if has_bias else (None, None))


def lstm_cell(x: Tensor, h: Tensor, cx: Tensor, bx: Tensor | None, bh: Tensor | None) -> Any:
    gates = x + h if bx is None or bh is None else x + h + bx + bh
    i, f, g, o = gates.chunk(4, 1)
    gates = torch.cat([i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()], 1)
    i, f, g, o = gates.chunk(4, 1)
    cy = f * cx + i * g
    return o * cy.tanh(), cy, gates


def lstm_cell_backward(
    grad_hy: Tensor | None,
    grad_cy: Tensor | None,
    cx: Tensor,
    cy: Tensor,
    gates: Tensor,
    has_bias: bool,
) -> Any:
    i, f, g, o = gates.chunk(4, 1)
    t = cy.tanh()
    gh = torch.zeros_like(cy) if grad_hy is None else grad_hy
    dc = gh * o * (1 - t * t) + (0 if grad_cy is None else grad_cy)
    parts = [
        dc * g * i * (1 - i),
        dc * cx * f * (1 - f),
        dc * i * (1 - g * g),
        gh * t * o * (1 - o),
    ]
    grads = torch.cat(parts, 1)
    return grads, dc * f, grads.sum(0) if has_bias else None


# Kernels of a GPU, which the CPU does not have.
FUSED_CELLS = {
    "aten::_thnn_fused_gru_cell": lambda x, h, hx, bx=None, bh=None: gru_cell(x, h, hx, bx, bh),
    "aten::_thnn_fused_gru_cell_backward": gru_cell_backward,
    "aten::_thnn_fused_lstm_cell": lambda x, h, cx, bx=None, bh=None: lstm_cell(x, h, cx, bx, bh),
    "aten::_thnn_fused_lstm_cell_backward_impl": lstm_cell_backward,
}


@contextmanager
def simulated_device(*, float64: bool = True) -> Generator[torch.device]:
    """Have the simulated device inside a `with` block, in this thread."""
    swaps = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)  # keeps parameters that are shared
    try:
        with (
            # tensors of inference cannot hold others
            patch.object(torch._C, "_InferenceMode", lambda mode: torch.set_grad_enabled(not mode)),
            torch.autograd.set_multithreading_enabled(False),
            FunctionMode(),
            SimulatedMode(float64=float64),
        ):
            yield DEVICE
    finally:
        torch.__future__.set_swap_module_params_on_conversion(swaps)
