"""The type of the first argument of a `torch.autograd.Function`, which torch leaves untyped."""

from typing import Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class AutogradContext(Protocol):
    """Tensors that `forward` saves and `backward` reads."""

    def save_for_backward(self, *tensors: Tensor) -> None: ...

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]: ...
