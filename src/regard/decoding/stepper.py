"""What a search asks of a model, and what it answers.

n: rows (hypotheses)   v: vocabulary
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

M = TypeVar("M", contravariant=True)
S = TypeVar("S")


@runtime_checkable
class Stepper(Protocol[M, S]):
    """A model that says one token after another.

    What a row is told depends on that row alone. `step` leaves its state as it was and returns a
    new tensor, which the search may write into.
    """

    def start(self, memory: M, /) -> S:
        """The state before the first token: one row for each input that the memory holds."""
        ...

    def step(self, state: S, tokens: Int[Tensor, " n"], /) -> tuple[Float[Tensor, "n v"], S]:
        """Each row reads its token: log-probabilities of the next one, and the state then."""
        ...

    def select(self, state: S, rows: Int[Tensor, " m"], /) -> S:
        """These rows, in this order; a row may come twice, or not at all."""
        ...


class Hypothesis(NamedTuple):
    """One output: its ids without start and end, and how likely it is, the end included."""

    ids: list[int]
    score: float  # what it was ranked by: the log-probability, after penalties
    log_prob: float


class Ensemble:
    """p(token) = mean over the steppers of p_i(token); one memory and one state for each."""

    def __init__(self, steppers: Sequence[Stepper[Any, Any]]):
        if not steppers:
            raise ValueError("steppers are missing: an ensemble has at least one")
        self.steppers = tuple(steppers)

    def start(self, memory: Sequence[Any]) -> tuple[Any, ...]:
        if len(memory) != len(self.steppers):
            raise ValueError(
                f"memory has {len(memory)} parts, but the ensemble {len(self.steppers)} steppers"
            )
        return tuple(
            stepper.start(part) for stepper, part in zip(self.steppers, memory, strict=True)
        )

    def step(
        self, state: tuple[Any, ...], tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], tuple[Any, ...]]:
        member_log_probs, states = zip(
            *(
                stepper.step(part, tokens)
                for stepper, part in zip(self.steppers, state, strict=True)
            ),
            strict=True,
        )
        sizes = [log_probs.shape[1] for log_probs in member_log_probs]
        if len(set(sizes)) > 1:
            raise ValueError(f"steppers must share one vocabulary; theirs hold {sizes} tokens")
        return torch.stack(member_log_probs).logsumexp(0) - math.log(len(member_log_probs)), states

    def select(self, state: tuple[Any, ...], rows: Int[Tensor, " m"]) -> tuple[Any, ...]:
        return tuple(
            stepper.select(part, rows) for stepper, part in zip(self.steppers, state, strict=True)
        )


def check_log_probs(log_probs: Float[Tensor, "*n"], position: int) -> None:
    """Refuse NaN. It ranks above all numbers, so that the best of a row shows it."""
    if log_probs.isnan().any():
        raise ValueError(
            f"the model's log-probabilities at position {position} are NaN: are its weights finite?"
        )
