"""One token at a time, and never back: the loop that greedy search and sampling share.

n: rows that still speak   v: vocabulary
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decode.rules import FREE, Bound, Rules
from regard.decode.stepper import Hypothesis, Stepper, check_told
from regard.decode.top import first
from regard.text.special import END, START

# (log-probabilities [n v], which rows these are [n], position) -> the next token of each row
Choice = Callable[[Tensor, Tensor, int], Tensor]


@torch.inference_mode()
def greedy(
    stepper: Stepper[Any, Any], memory: Any, count: int, rules: Rules = FREE
) -> list[list[Hypothesis]]:
    """y_t = argmax p(y | y_<t); one output for each of the `count` inputs of the memory.

    Among equals the lowest id is taken.
    """
    if not check_count(count):
        return []
    bound = Bound(rules, count)
    return [[output] for output in roll(stepper, stepper.start(memory), bound, likeliest)]


def likeliest(
    log_probs: Float[Tensor, "n v"],
    rows: Int[Tensor, " n"],  # noqa: ARG001
    position: int,  # noqa: ARG001
) -> Int[Tensor, " n"]:
    return first(log_probs)


def roll(
    stepper: Stepper[Any, Any], state: Any, bound: Bound, choose: Choice, copies: int = 1
) -> list[Hypothesis]:
    """Choose tokens until every row has ended; rows that have ended leave the state.

    The state has `copies` rows for each input, side by side. A row for which the rules leave
    nothing to say ends there, with a log-probability of -inf.
    """
    if bound.rules.phrases:
        raise ValueError("phrases are kept by beam search only: use beam, or leave them out")
    rows = torch.arange(bound.count * copies)
    outputs = [Hypothesis([], 0.0, 0.0)] * len(rows)
    owners, tokens = rows // copies, torch.full_like(rows, START)
    history = torch.empty(len(rows), bound.longest + 1, dtype=torch.long)
    sums = torch.zeros(len(rows), dtype=torch.float64)
    for position in range(bound.longest + 1):
        log_probs, state = stepper.step(state, tokens)
        bound.apply(log_probs, owners, history[:, :position])
        tokens = choose(log_probs, rows, position)
        gained = log_probs.gather(1, tokens[:, None])[:, 0]
        check_told(gained, position)
        sums += gained
        history[:, position] = tokens
        ended = (tokens == END) | (gained == -torch.inf)
        if not ended.any():
            continue
        ids, log_probs = history[ended, :position].tolist(), sums[ended].tolist()
        for row, one, log_prob in zip(rows[ended].tolist(), ids, log_probs, strict=True):
            outputs[row] = Hypothesis(one, log_prob, log_prob)
        going = (~ended).nonzero()[:, 0]
        if not len(going):
            break
        rows, owners, tokens = rows[going], owners[going], tokens[going]
        history, sums, state = history[going], sums[going], stepper.select(state, going)
    return outputs


def check_count(count: int) -> int:
    """How many inputs there are; none is fine, and gives no output."""
    if count < 0:
        raise ValueError(f"count must be the number of inputs in the memory, not {count}")
    return count
