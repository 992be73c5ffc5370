"""Greedy search, and the loop that it shares with sampling: one token at a time.

n: unfinished rows   v: vocabulary
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.constraints import UNCONSTRAINED, BatchConstraints, Constraints
from regard.decoding.listen import notify_step
from regard.decoding.stepper import (
    ChoosingStepper,
    Hypothesis,
    MemoryT,
    StateT,
    Stepper,
    check_log_probs,
    place_search,
)
from regard.decoding.topk import fast_argmax
from regard.errors import InputError
from regard.text.special import END, START

TokenChooser = Callable[[Tensor, Tensor, int], Tensor]
"""(log-probabilities [n v], indices of the rows [n], position) -> the next token of each row."""


@torch.inference_mode()
def greedy_search(
    stepper: Stepper[MemoryT, StateT],
    memory: MemoryT,
    count: int,
    constraints: Constraints = UNCONSTRAINED,
) -> list[list[Hypothesis]]:
    """y_t = argmax p(y | y_<t); one output for each of the `count` inputs of the memory.

    Among equal probabilities, the lowest id wins.
    """
    if not check_count(count):
        return []
    stepper, device = place_search(stepper, memory)
    batch_constraints = BatchConstraints(constraints, count, device)
    return [
        [output]
        for output in generate(stepper, stepper.start(memory), batch_constraints, choose_likeliest)
    ]


def choose_likeliest(
    log_probs: Float[Tensor, "n v"],
    rows: Int[Tensor, " n"],  # noqa: ARG001
    position: int,  # noqa: ARG001
) -> Int[Tensor, " n"]:
    return fast_argmax(log_probs)


def generate(
    stepper: Stepper[MemoryT, StateT],
    state: StateT,
    batch_constraints: BatchConstraints,
    choose: TokenChooser,
    copies: int = 1,
) -> list[Hypothesis]:
    """Choose tokens until every row has ended; rows that have ended leave the state.

    The state has `copies` adjacent rows for each input. A row ends with a log-probability of -inf
    if the constraints forbid every token.
    """
    if batch_constraints.constraints.phrases:
        raise InputError("phrases are for beam search only; use it, or leave them out")
    is_greedy = choose is choose_likeliest
    chooser = stepper if is_greedy and isinstance(stepper, ChoosingStepper) else None
    device = batch_constraints.device
    rows = torch.arange(batch_constraints.count * copies, device=device)
    outputs = [Hypothesis([], 0.0, 0.0)] * len(rows)
    owners, tokens = rows // copies, torch.full_like(rows, START)
    history = rows.new_empty(len(rows), batch_constraints.max_limit + 1)
    total_log_probs = torch.zeros(len(rows), dtype=torch.float64, device=device)
    for position in range(batch_constraints.max_limit + 1):
        forbidden = batch_constraints.fixed_tokens(position) if chooser else None
        chosen = (
            chooser.choose(state, tokens, forbidden) if chooser and forbidden is not None else None
        )
        if chosen is None:
            log_probs, state = stepper.step(state, tokens)
            batch_constraints.apply(log_probs, owners, history[:, :position])
            tokens = choose(log_probs, rows, position)
            gained = log_probs.gather(1, tokens.unsqueeze(1)).squeeze(1)
        else:
            tokens, gained, state = chosen
        total_log_probs += gained
        history[:, position] = tokens
        gains = gained.tolist()  # of a few rows, lists are faster than operations
        check_log_probs(gains, position)
        notify_step(history[:, : position + 1], len(outputs))
        if END not in tokens.tolist() and -math.inf not in gains:
            continue
        ended = (tokens == END) | (gained == -torch.inf)
        ids, log_probs = history[ended, :position].tolist(), total_log_probs[ended].tolist()
        for row, output_ids, log_prob in zip(rows[ended].tolist(), ids, log_probs, strict=True):
            outputs[row] = Hypothesis(output_ids, log_prob, log_prob)
        active = (~ended).nonzero()[:, 0]
        if not len(active):
            break
        rows, owners, tokens = rows[active], owners[active], tokens[active]
        history, total_log_probs, state = (
            history[active],
            total_log_probs[active],
            stepper.select(state, active),
        )
    return outputs


def check_count(count: int) -> int:
    """Return the number of inputs, which may be 0."""
    if count < 0:
        raise InputError(f"count must be the number of inputs in the memory, not {count}")
    return count
