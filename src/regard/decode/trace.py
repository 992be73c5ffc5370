"""What a search tried: a stepper that notes which tokens it was asked to read, and after which."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from regard.decode.stepper import Stepper


class Tried(NamedTuple):
    """A token that a search went on with."""

    parent: int  # the number of the one before it, -1: none
    token: int
    log_prob: float  # of all tokens until this one


class Traced:
    """A stepper for one search; `tried` is a tree for each input, parents before children."""

    def __init__(self, stepper: Stepper[Any, Any]):
        self.stepper = stepper
        self.tried: list[Tried] = []
        self.rows: list[int] = []  # what each row read last
        self.told: Tensor | None = None  # log-probabilities that the next tokens are chosen by

    def start(self, memory: Any) -> Any:
        return self.stepper.start(memory)

    def step(self, state: Any, tokens: Int[Tensor, " n"]) -> tuple[Float[Tensor, "n v"], Any]:
        if self.told is None:
            self.rows = [-1] * len(tokens)
        else:
            gains = self.told.gather(1, tokens[:, None])[:, 0].tolist()
            self.rows = [
                self.note(row, token, gain)
                for row, token, gain in zip(self.rows, tokens.tolist(), gains, strict=True)
            ]
        log_probs, state = self.stepper.step(state, tokens)
        self.told = log_probs.clone()  # the search writes into its own
        return log_probs, state

    def select(self, state: Any, rows: Int[Tensor, " m"]) -> Any:
        if self.told is not None:
            self.rows = [self.rows[row] for row in rows.tolist()]
            self.told = self.told.index_select(0, rows)
        return self.stepper.select(state, rows)

    def note(self, parent: int, token: int, gain: float) -> int:
        before = self.tried[parent].log_prob if parent >= 0 else 0.0
        self.tried.append(Tried(parent, token, before + gain))
        return len(self.tried) - 1

    def path(self, tokens: Sequence[int]) -> set[int]:
        """The numbers of those that lead to this output, as far as it was tried."""
        found, here = set[int](), -1
        for token in tokens:
            after = [
                n for n, one in enumerate(self.tried) if (one.parent, one.token) == (here, token)
            ]
            if not after:
                break
            here = after[0]
            found.add(here)
        return found
