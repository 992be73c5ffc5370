"""The protocol of a source of training batches."""

from typing import Generic, Protocol, TypeVar, runtime_checkable

from torch import Tensor

from regard.files import JsonObject

BatchT = TypeVar("BatchT")
BatchT_co = TypeVar("BatchT_co", covariant=True)


@runtime_checkable
class BatchSource(Protocol[BatchT_co]):
    """An endless iterator of batches whose position can be saved and restored.

    `carried` holds tensors that a model takes from one batch to the next, if there are any.
    """

    carried: dict[str, Tensor]

    @property
    def epoch(self) -> int: ...
    @property
    def batches_per_epoch(self) -> int | None:
        """Return the number of batches in an epoch; None if it is endless, or too long to count."""
        ...

    def __next__(self) -> BatchT_co: ...
    def state_dict(self) -> JsonObject: ...
    def load_state_dict(self, state: JsonObject) -> None: ...


class RepeatedBatch(Generic[BatchT]):
    """A source of batches that returns the same batch at every step."""

    epoch, batches_per_epoch = 0, None

    def __init__(self, batch: BatchT):
        self.batch = batch
        self.carried: dict[str, Tensor] = {}

    def __next__(self) -> BatchT:
        return self.batch

    def state_dict(self) -> JsonObject:
        return {}

    def load_state_dict(self, state: JsonObject) -> None:
        del state
