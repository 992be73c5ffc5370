"""What a model thinks of given outputs, and what else it might have said.

n: rows   v: vocabulary
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.decode.greedy import likeliest, roll
from regard.decode.rules import FREE, Bound, Rules
from regard.decode.stepper import Hypothesis, Stepper, check_told
from regard.decode.top import best
from regard.text.special import END, START


class Scored(NamedTuple):
    """A given output: the log-probability of each id and, last, of the end; and their sum."""

    ids: list[int]
    token_log_probs: list[float]
    log_prob: float


class Alternative(NamedTuple):
    """A token that could stand at a position, its log-probability there, and how it would go on."""

    id: int  # the end is one too
    log_prob: float
    output: Hypothesis  # the whole: prefix, this token, and what greedy search adds


@torch.inference_mode()
def score(
    stepper: Stepper[Any, Any], memory: Any, outputs: Sequence[Sequence[Sequence[int]]]
) -> list[list[Scored]]:
    """log p(y_t | y_<t) of every token of the given outputs, any number for each input.

    Outputs are ids without start and end; the end is scored.
    """
    given = [[*ids, END] for some in outputs for ids in some]
    if not given:
        return [[] for _ in outputs]
    owners = torch.tensor([number for number, some in enumerate(outputs) for _ in some])
    told: list[list[float]] = [[] for _ in given]
    state = stepper.select(stepper.start(memory), owners)
    for position, rows, log_probs in forced(stepper, state, given):
        ids = [given[row][position] for row in rows]
        check_inside(ids, log_probs.shape[1])
        gained = log_probs.gather(1, torch.tensor(ids)[:, None])[:, 0]
        check_told(gained, position)
        for row, one in zip(rows, gained.tolist(), strict=True):
            told[row].append(one)
    scored = (Scored(ids[:-1], one, sum(one)) for ids, one in zip(given, told, strict=True))
    return [[next(scored) for _ in some] for some in outputs]


@torch.inference_mode()
def alternatives(
    stepper: Stepper[Any, Any],
    memory: Any,
    prefixes: Sequence[Sequence[int]],
    wanted: int = 5,
    rules: Rules = FREE,
) -> list[list[Alternative]]:
    """The likeliest tokens after the prefix of each input, each with its greedy completion.

    For the alternatives at position i of an output, the prefix is its first i ids.
    """
    if rules.prefix or rules.phrases:
        raise ValueError("rules of alternatives have no prefix and no phrases: give prefixes")
    if not prefixes:
        return []
    bound = Bound(replace(rules, prefix=prefixes), len(prefixes))
    found: list[list[tuple[int, float]]] = [[] for _ in prefixes]
    given = [[*ids, END] for ids in prefixes]  # the model is asked where the end would stand
    for position, rows, log_probs in forced(stepper, stepper.start(memory), given):
        if position == 0:
            bound.check_ids(log_probs.shape[1])
        here = [at for at, row in enumerate(rows) if len(prefixes[row]) == position]
        if here:
            numbers = [rows[at] for at in here]
            history = torch.tensor([given[number][:position] for number in numbers])
            ids, told = likely(
                log_probs[here], torch.tensor(numbers), history.long(), bound, wanted
            )
            for number, *pair in zip(numbers, ids.tolist(), told.tolist(), strict=True):
                found[number] = list(zip(*pair, strict=True))
    return completed(stepper, memory, bound, found)


def likely(
    log_probs: Tensor, inputs: Tensor, history: Tensor, bound: Bound, wanted: int
) -> tuple[Tensor, Tensor]:
    """The likeliest ids that the rules allow, and their log-probabilities."""
    bound.apply(log_probs, inputs, history)
    values, _, ids = best(log_probs, torch.zeros(len(log_probs), 1).double(), wanted)
    check_told(values, history.shape[1])
    return ids, values


def completed(
    stepper: Stepper[Any, Any],
    memory: Any,
    bound: Bound,
    found: Sequence[Sequence[tuple[int, float]]],
) -> list[list[Alternative]]:
    """Greedy search from every alternative at once."""
    some = [
        (number, next_id, log_prob)
        for number, pairs in enumerate(found)
        for next_id, log_prob in pairs
        if log_prob > -torch.inf
    ]
    owners = torch.tensor([number for number, _, _ in some])
    prefixes = [
        bound.prefixes[number] + [next_id] * (next_id != END) for number, next_id, _ in some
    ]
    limits = bound.limits[owners].tolist()
    rules = replace(
        bound.rules,
        # where the alternative is to end, nothing may follow the prefix
        max_length=[
            len(prefix) if next_id == END else limit
            for prefix, limit, (_, next_id, _) in zip(prefixes, limits, some, strict=True)
        ],
        min_length=bound.floors[owners].tolist(),
        prefix=prefixes,
    )
    state = stepper.select(stepper.start(memory), owners)
    outputs = roll(stepper, state, Bound(rules, len(some)), likeliest)
    results: list[list[Alternative]] = [[] for _ in found]
    for (number, next_id, log_prob), output in zip(some, outputs, strict=True):
        results[number].append(Alternative(next_id, log_prob, output))
    return results


def forced(
    stepper: Stepper[Any, Any], state: Any, given: Sequence[Sequence[int]]
) -> Iterator[tuple[int, list[int], Tensor]]:
    """Read given tokens: at each position, the rows that have one there, and what the model said.

    Rows that are at their end leave the state.
    """
    rows, position = list(range(len(given))), 0
    tokens = [START] * len(rows)
    while True:
        log_probs, state = stepper.step(state, torch.tensor(tokens))
        yield position, rows, log_probs
        going = [at for at, row in enumerate(rows) if len(given[row]) > position + 1]
        if not going:
            return
        if len(going) < len(rows):
            state = stepper.select(state, torch.tensor(going))
            rows = [rows[at] for at in going]
        tokens = [given[row][position] for row in rows]
        position += 1


def check_inside(ids: Sequence[int], size: int) -> None:
    for one in ids:
        if not 0 <= one < size:
            raise ValueError(f"outputs: there is no id {one} in a vocabulary of {size}")
