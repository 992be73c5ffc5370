"""Searches that continue prompts: a language model as a stepper that reads a prompt first.

n: rows of a search   t: positions   v: vocabulary
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.text.special import END, PAD, START

TokenCallback = Callable[[Int[Tensor, " n"]], None]
"""Called with the tokens that the rows of a search read at each step."""

ID_SHIFT = 1 + max(PAD, START, END)  # how far ids of an external vocabulary are moved up


class PromptState(NamedTuple):
    """The position of each row of a search.

    `ids` are the last tokens of each row. With a `state`, these are tokens that it has read, kept
    if they may be read again; without one, they are to be read before the next token. `last` is
    the token to read next, whatever token the search gives.
    """

    state: Any
    ids: Int[Tensor, "n t"]
    last: Int[Tensor, " n"] | None


def prompt_state(ids: Int[Tensor, "b t"]) -> PromptState:
    """Return the state before anything is read: the first step reads all of the prompts."""
    return PromptState(None, ids[:, :-1], ids[:, -1])


class PromptStepper:
    """A language model for a search, which begins after a prompt in the place of START.

    When a model has read `max_positions` tokens, it reads the last half of them again, as if
    nothing had been before them, and continues from there.
    """

    def __init__(self, model: Any, max_positions: float, on_tokens: TokenCallback | None = None):
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
        # The context is full: the cache is of no use now, and `select` need not move it.
        return log_probs, PromptState(None, ids[:, length - length // 2 :], None)

    def select(self, state: PromptState, rows: Int[Tensor, " m"]) -> PromptState:
        last = None if state.last is None else state.last[rows]
        selected = None if state.state is None else self.model.select(state.state, rows)
        return PromptState(selected, state.ids[rows], last)


class ShiftedPromptStepper(PromptStepper):
    """A prompt stepper over an external vocabulary, whose ids a search sees `ID_SHIFT` higher.

    Below them are PAD and START, which are never written, and END for the end id of the vocabulary.
    """

    def __init__(
        self, model: Any, max_positions: float, end: int, on_tokens: TokenCallback | None = None
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
