"""Log-probabilities of given outputs, and alternatives to their tokens.

n: rows   v: vocabulary
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from regard.decoding.constraints import UNCONSTRAINED, BatchConstraints, Constraints
from regard.decoding.greedy import choose_likeliest, generate
from regard.decoding.stepper import (
    Hypothesis,
    MemoryT,
    StateT,
    Stepper,
    check_log_probs,
    place_search,
)
from regard.decoding.topk import topk_candidates
from regard.errors import InputError
from regard.text.special import END, START


class ScoredOutput(NamedTuple):
    """The log-probability of each id of an output and, last, of the end token; and their sum."""

    ids: list[int]
    token_log_probs: list[float]
    log_prob: float


class Alternative(NamedTuple):
    """A possible token at a position, its log-probability, and the output that continues it."""

    id: int  # may be the end token
    log_prob: float
    output: Hypothesis  # prefix, this token, and its greedy continuation


@torch.inference_mode()
def score_outputs(
    stepper: Stepper[MemoryT, StateT],
    memory: MemoryT,
    outputs: Sequence[Sequence[Sequence[int]]],
) -> list[list[ScoredOutput]]:
    """log p(y_t | y_<t) of every token of given outputs; an input may have any number of them.

    Outputs are ids without start and end; the end token is scored too.
    """
    targets = [[*ids, END] for group in outputs for ids in group]
    if not targets:
        return [[] for _ in outputs]
    stepper, device = place_search(stepper, memory)
    groups = [input_index for input_index, group in enumerate(outputs) for _ in group]
    owners = torch.tensor(groups, device=device)
    token_log_probs: list[list[float]] = [[] for _ in targets]
    state = stepper.select(stepper.start(memory), owners)
    for position, rows, log_probs in teacher_forced_steps(stepper, state, targets, device):
        ids = [targets[row][position] for row in rows]
        check_ids_in_vocabulary(ids, log_probs.shape[1])
        gained = log_probs.gather(1, torch.tensor(ids, device=device)[:, None])[:, 0].tolist()
        check_log_probs(gained, position)
        for row, log_prob in zip(rows, gained, strict=True):
            token_log_probs[row].append(log_prob)
    scored_outputs = (
        ScoredOutput(ids[:-1], log_prob, sum(log_prob))
        for ids, log_prob in zip(targets, token_log_probs, strict=True)
    )
    return [[next(scored_outputs) for _ in group] for group in outputs]


@torch.inference_mode()
def alternatives(
    stepper: Stepper[MemoryT, StateT],
    memory: MemoryT,
    prefixes: Sequence[Sequence[int]],
    limit: int = 5,
    constraints: Constraints = UNCONSTRAINED,
) -> list[list[Alternative]]:
    """Return the likeliest tokens after the prefix of each input, with greedy continuations.

    For the alternatives at position i of an output, the prefix is its first i ids.
    """
    if constraints.prefix or constraints.phrases:
        raise InputError("constraints must have no prefix and no phrases here; use `prefixes`")
    if not prefixes:
        return []
    stepper, device = place_search(stepper, memory)
    prefixed = replace(constraints, prefix=prefixes)
    batch_constraints = BatchConstraints(prefixed, len(prefixes), device)
    continuations: list[list[tuple[int, float]]] = [[] for _ in prefixes]
    targets = [[*ids, END] for ids in prefixes]  # alternatives to END, after the prefix
    steps = teacher_forced_steps(stepper, stepper.start(memory), targets, device)
    for position, rows, log_probs in steps:
        if position == 0:
            batch_constraints.check_ids(log_probs.shape[1])
        at_end = [index for index, row in enumerate(rows) if len(prefixes[row]) == position]
        if at_end:
            input_indices = [rows[index] for index in at_end]
            history = torch.tensor(
                [targets[input_index][:position] for input_index in input_indices], device=device
            )
            ids, id_log_probs = likeliest_ids(
                log_probs[torch.tensor(at_end, device=device)],
                torch.tensor(input_indices, device=device),
                history.long(),
                batch_constraints,
                limit,
            )
            for input_index, *pair in zip(
                input_indices, ids.tolist(), id_log_probs.tolist(), strict=True
            ):
                continuations[input_index] = list(zip(*pair, strict=True))
    return complete_alternatives(stepper, memory, batch_constraints, continuations)


def likeliest_ids(
    log_probs: Tensor,
    inputs: Tensor,
    history: Tensor,
    batch_constraints: BatchConstraints,
    limit: int,
) -> tuple[Tensor, Tensor]:
    """Return the likeliest ids that the constraints allow, and their log-probabilities."""
    batch_constraints.apply(log_probs, inputs, history)
    scores = log_probs.new_zeros(len(log_probs), 1, dtype=torch.float64)
    values, _, ids = topk_candidates(log_probs, scores, limit)
    check_log_probs(values[:, 0].tolist(), history.shape[1])
    return ids, values


def complete_alternatives(
    stepper: Stepper[MemoryT, StateT],
    memory: MemoryT,
    batch_constraints: BatchConstraints,
    continuations: Sequence[Sequence[tuple[int, float]]],
) -> list[list[Alternative]]:
    """Continue all alternatives by greedy search, in one batch."""
    branches = [
        (input_index, next_id, log_prob)
        for input_index, pairs in enumerate(continuations)
        for next_id, log_prob in pairs
        if log_prob > -torch.inf
    ]
    device = batch_constraints.device
    owners = torch.tensor([input_index for input_index, _, _ in branches], device=device)
    prefixes = [
        batch_constraints.prefixes[input_index] + [next_id] * (next_id != END)
        for input_index, next_id, _ in branches
    ]
    limits = batch_constraints.limits[owners].tolist()
    constraints = replace(
        batch_constraints.constraints,
        # nothing may follow the prefix if the alternative is the end token
        max_length=[
            len(prefix) if next_id == END else limit
            for prefix, limit, (_, next_id, _) in zip(prefixes, limits, branches, strict=True)
        ],
        min_length=batch_constraints.floors[owners].tolist(),
        prefix=prefixes,
    )
    state = stepper.select(stepper.start(memory), owners)
    outputs = generate(
        stepper, state, BatchConstraints(constraints, len(branches), device), choose_likeliest
    )
    results: list[list[Alternative]] = [[] for _ in continuations]
    for (input_index, next_id, log_prob), output in zip(branches, outputs, strict=True):
        results[input_index].append(Alternative(next_id, log_prob, output))
    return results


def teacher_forced_steps(
    stepper: Stepper[MemoryT, StateT],
    state: StateT,
    targets: Sequence[Sequence[int]],
    device: torch.device,
) -> Iterator[tuple[int, list[int], Tensor]]:
    """Yield each position, the rows that have a target there, and its log-probabilities.

    Rows whose targets have ended leave the state.
    """
    rows, position = list(range(len(targets))), 0
    tokens = [START] * len(rows)
    while True:
        log_probs, state = stepper.step(state, torch.tensor(tokens, device=device))
        yield position, rows, log_probs
        active = [index for index, row in enumerate(rows) if len(targets[row]) > position + 1]
        if not active:
            return
        if len(active) < len(rows):
            state = stepper.select(state, torch.tensor(active, device=device))
            rows = [rows[index] for index in active]
        tokens = [targets[row][position] for row in rows]
        position += 1


def check_ids_in_vocabulary(ids: Sequence[int], size: int) -> None:
    for token_id in ids:
        if not 0 <= token_id < size:
            raise InputError(f"outputs: there is no id {token_id} in a vocabulary of {size}")
