"""The protocol of a source of training batches."""

from typing import Any, Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class BatchSource(Protocol):
    """An endless iterator of batches whose position can be saved and restored.

    `carried` holds tensors that a model takes from one batch to the next, if there are any.
    """

    carried: dict[str, Tensor]

    @property
    def epoch(self) -> int: ...
    def __next__(self) -> Any: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...
