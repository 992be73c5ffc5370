"""The protocol between a search and a model, and the outputs of a search.

n: rows (hypotheses)   v: vocabulary
"""

import math
from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.batching.device import CPU, device_of
from regard.errors import InputError
from regard.layers.precision import has_float64

MemoryT = TypeVar("MemoryT")
MemoryT_contra = TypeVar("MemoryT_contra", contravariant=True)
StateT = TypeVar("StateT")


@runtime_checkable
class Stepper(Protocol[MemoryT_contra, StateT]):
    """A model that predicts one token after another.

    The log-probabilities of a row depend on that row alone. `step` does not change its state. It
    returns a new tensor, which the search may write into.
    """

    def start(self, memory: MemoryT_contra, /) -> StateT:
        """Return the state before the first token, with a row for each input of the memory."""
        ...

    def step(
        self, state: StateT, tokens: Int[Tensor, " n"], /
    ) -> tuple[Float[Tensor, "n v"], StateT]:
        """Read a token in each row; return log-probabilities of the next one, and the new state."""
        ...

    def select(self, state: StateT, rows: Int[Tensor, " m"], /) -> StateT:
        """Return these rows, in this order; a row may occur twice, or not at all."""
        ...


@runtime_checkable
class ChoosingStepper(Stepper[MemoryT_contra, StateT], Protocol):
    """A stepper that may find the best next tokens without all log-probabilities."""

    def choose(
        self, state: StateT, tokens: Int[Tensor, " n"], forbidden: Int[Tensor, " f"], /
    ) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"], StateT] | None:
        """Read a token in each row; return the likeliest next one that is not forbidden, its
        log-probability in float64, and the new state. None: a search has to call `step`.

        Among equals, the lowest id wins. A row has NaN if one of its log-probabilities is NaN.
        """
        ...


class Hypothesis(NamedTuple):
    """An output of a search: ids without start and end, and its score, which includes the end."""

    ids: list[int]
    score: float  # the log-probability after penalties, by which hypotheses are ranked
    log_prob: float


class Ensemble(Generic[MemoryT, StateT]):
    """p(token) = mean over the steppers of p_i(token); one memory and one state for each."""

    def __init__(self, steppers: Sequence[Stepper[MemoryT, StateT]]):
        if not steppers:
            raise InputError("steppers is empty; an ensemble needs at least one")
        self.steppers = tuple(steppers)

    def start(self, memory: Sequence[MemoryT]) -> tuple[StateT, ...]:
        if len(memory) != len(self.steppers):
            raise InputError(
                f"memory has {len(memory)} parts for {len(self.steppers)} steppers; give one each"
            )
        return tuple(
            stepper.start(part) for stepper, part in zip(self.steppers, memory, strict=True)
        )

    def step(
        self, state: tuple[StateT, ...], tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], tuple[StateT, ...]]:
        member_log_probs, states = zip(
            *(
                stepper.step(part, tokens)
                for stepper, part in zip(self.steppers, state, strict=True)
            ),
            strict=True,
        )
        sizes = [log_probs.shape[1] for log_probs in member_log_probs]
        if len(set(sizes)) > 1:
            raise InputError(f"steppers must share one vocabulary, but theirs have {sizes} tokens")
        return torch.stack(member_log_probs).logsumexp(0) - math.log(len(member_log_probs)), states

    def select(self, state: tuple[StateT, ...], rows: Int[Tensor, " m"]) -> tuple[StateT, ...]:
        return tuple(
            stepper.select(part, rows) for stepper, part in zip(self.steppers, state, strict=True)
        )


class HostStepper(Generic[MemoryT, StateT]):
    """A stepper on another device, for a search on the CPU: tokens go there, results come back."""

    def __init__(self, stepper: Stepper[MemoryT, StateT], device: torch.device):
        self.stepper, self.device = stepper, device

    def start(self, memory: MemoryT) -> StateT:
        return self.stepper.start(memory)

    def step(self, state: StateT, tokens: Int[Tensor, " n"]) -> tuple[Float[Tensor, "n v"], StateT]:
        log_probs, state = self.stepper.step(state, tokens.to(self.device))
        return log_probs.cpu(), state

    def select(self, state: StateT, rows: Int[Tensor, " m"]) -> StateT:
        return self.stepper.select(state, rows.to(self.device))


def place_search(
    stepper: Stepper[MemoryT, StateT], memory: MemoryT
) -> tuple[Stepper[MemoryT, StateT], torch.device]:
    """Return the stepper for a search, and the device of the search: that of the memory.

    A search sums in float64. Apple's GPUs have no such numbers, so their searches are on the CPU.
    """
    device = device_of(memory)
    return (stepper, device) if has_float64(device) else (HostStepper(stepper, device), CPU)


def check_log_probs(log_probs: Sequence[float], position: int) -> None:
    """Raise an error for NaN; it suffices to check the best of a row, because NaN ranks highest."""
    if any(map(math.isnan, log_probs)):
        raise InputError(
            f"position {position}: the model's log-probabilities are NaN; check its weights"
        )
