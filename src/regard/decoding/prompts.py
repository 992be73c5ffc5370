"""Continue prompts: a stepper that reads a prompt first.

n: rows of a search   t: positions   v: vocabulary
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.text.special import END, PAD, START

TokenCallback = Callable[[Int[Tensor, " n"]], None]
"""Called with the tokens that the rows of a search read at each step."""

ID_SHIFT = 1 + max(PAD, START, END)  # number of ids below those of an external vocabulary
StateT = TypeVar("StateT")


@runtime_checkable
class PromptedModel(Protocol[StateT]):
    """The part of a language model that continues prompts."""

    def begin(self, rows: int) -> StateT: ...
    def read(
        self, state: StateT, ids: Int[Tensor, "n t"]
    ) -> tuple[Float[Tensor, "n t d"], StateT]: ...
    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]: ...
    def step(
        self, state: StateT, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], StateT]: ...
    def select(self, state: StateT, rows: Int[Tensor, " m"]) -> StateT: ...


class PromptState(NamedTuple):
    """The position of each row of a search.

    `state` is the state of the model, or None if the model has to read `ids` first. `ids` are the
    last tokens of each row; they are kept if the model may have to read them again. `last`
    replaces the token that the search gives at the next step.
    """

    state: object
    ids: Int[Tensor, "n t"]
    last: Int[Tensor, " n"] | None


def prompt_state(ids: Int[Tensor, "b t"]) -> PromptState:
    """Return the state before the first step, which reads the prompts."""
    return PromptState(None, ids[:, :-1], ids[:, -1])


class PromptStepper:
    """A language model for a search: it begins after a prompt rather than after START.

    When the model has read `max_positions` tokens, it starts anew with the last half of them.
    """

    def __init__(
        self,
        model: PromptedModel[Any],
        max_positions: float,
        on_tokens: TokenCallback | None = None,
    ):
        self.model, self.max_positions, self.on_tokens = model, max_positions, on_tokens

    def start(self, memory: PromptState) -> PromptState:
        return memory

    def step(
        self, state: PromptState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], PromptState]:
        token = tokens if state.last is None else state.last
        if self.on_tokens is not None and state.last is None:
            self.on_tokens(tokens)
        ids = torch.cat([state.ids, token[:, None]], 1)
        if state.state is None:
            states, next_state = self.model.read(self.model.begin(len(ids)), ids)
            log_probs = self.model.logits(states[:, -1]).log_softmax(-1)
        else:
            log_probs, next_state = self.model.step(state.state, token)
        length = ids.shape[1]
        if math.isinf(self.max_positions):
            return log_probs, PromptState(next_state, ids[:, length:], None)
        if length < self.max_positions:
            return log_probs, PromptState(next_state, ids, None)
        # The context is full: drop the state, so that `select` has less to move.
        return log_probs, PromptState(None, ids[:, length - length // 2 :], None)

    def select(self, state: PromptState, rows: Int[Tensor, " m"]) -> PromptState:
        last = None if state.last is None else state.last[rows]
        selected = None if state.state is None else self.model.select(state.state, rows)
        return PromptState(selected, state.ids[rows], last)


class ShiftedPromptStepper(PromptStepper):
    """A prompt stepper for an external vocabulary: a search sees its ids raised by `ID_SHIFT`.

    The ids below are PAD and START, which are never predicted, and END, which stands for `end`.
    """

    def __init__(
        self,
        model: PromptedModel[Any],
        max_positions: float,
        end: int,
        on_tokens: TokenCallback | None = None,
    ):
        super().__init__(model, max_positions, on_tokens)
        self.end = end

    def step(
        self, state: PromptState, tokens: Int[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n v"], PromptState]:
        log_probs, next_state = super().step(state, tokens - ID_SHIFT)
        special_log_probs = log_probs.new_full((len(log_probs), ID_SHIFT), -torch.inf)
        special_log_probs[:, END] = log_probs[:, self.end]
        log_probs[:, self.end] = -torch.inf
        return torch.cat([special_log_probs, log_probs], 1), next_state
