"""Count the bytes of all tensors that exist at once: what a step needs, whatever the allocator."""

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


class LiveTensors(TorchDispatchMode):
    """Within the context, count the bytes of tensors that operations make, until they are freed.

    `peak` is the most bytes at once. `activation_peak` is the same without the gradients of
    `parameters`. The model, and what exists before the context, is in neither.
    """

    def __init__(self, parameters: Iterable[nn.Parameter]):
        super().__init__()
        self.storage_sizes = dict[int, int]()
        self.parameters_with_gradient = set[int]()
        self.live = self.gradients = self.peak = self.activation_peak = 0
        self.hooks = [
            parameter.register_post_accumulate_grad_hook(self.add_gradient)
            for parameter in parameters
            if parameter.requires_grad
        ]

    def __exit__(self, *error: object) -> None:
        for hook in self.hooks:
            hook.remove()
        super().__exit__(*error)

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        del types
        inputs = {storage_key(value) for value in tree_iter((args, kwargs)) if is_tensor(value)}
        result = func(*args, **(kwargs or {}))
        for value in tree_iter(result):
            if isinstance(value, Tensor) and storage_key(value) not in inputs:
                self.add(value)
        return result

    def add(self, tensor: Tensor) -> None:
        """Count the storage of a new tensor until it is freed."""
        key = storage_key(tensor)
        if key in self.storage_sizes:
            return
        if tensor.layout is torch.strided:
            owner = tensor.untyped_storage()
            size = owner.nbytes()
        else:  # a weight that oneDNN has packed: about as large as before
            owner, size = tensor, tensor.numel() * tensor.element_size()
        self.storage_sizes[key] = size
        weakref.finalize(owner, self.remove, key)
        self.live += size
        self.peak = max(self.peak, self.live)
        self.activation_peak = max(self.activation_peak, self.live - self.gradients)

    def remove(self, key: int) -> None:
        self.live -= self.storage_sizes.pop(key, 0)

    def add_gradient(self, parameter: Tensor) -> None:
        """Note that a part of the live bytes is the gradient of a parameter."""
        if id(parameter) not in self.parameters_with_gradient:
            self.parameters_with_gradient.add(id(parameter))
            self.gradients += parameter.nbytes


def is_tensor(value: object) -> bool:
    return isinstance(value, Tensor)


def storage_key(tensor: Tensor) -> int:
    """Return a number that tensors share if they share their memory."""
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else id(tensor)
