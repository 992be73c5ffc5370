"""Beam search: the `width` likeliest beginnings of each input go on, side by side in one batch.

a: inputs that still search   n: rows, beams of all of them   v: vocabulary
"""

import heapq
import math
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decode.front import Found, Front, begun
from regard.decode.greedy import check_count
from regard.decode.penalty import check_penalty, length_penalty
from regard.decode.phrases import Keeper
from regard.decode.rules import FREE, Bound, Rules
from regard.decode.stepper import Hypothesis, Stepper, check_told
from regard.decode.top import best
from regard.text.special import END, START


@torch.inference_mode()
def beam(
    stepper: Stepper[Any, Any],
    memory: Any,
    count: int,
    width: int = 5,
    *,
    n_best: int = 1,
    alpha: float = 0.0,
    patience: float = 1.0,
    rules: Rules = FREE,
) -> list[list[Hypothesis]]:
    """Up to `n_best` outputs for each of the `count` inputs of the memory, best first.

    An output ends when its end is among the `width` best candidates of its input; the `width` best
    others go on. They are ranked by log P / lp (`alpha`: see penalty.py). An input is searched
    until `patience * width` outputs have ended (Kasai et al. 2022; 1 is the usual rule, infinity
    searches on), or until no unfinished one can be among the n best, even if all that it has yet to
    say were certain. Then it leaves the batch.
    """
    check_settings(width, n_best, alpha, patience)
    if not check_count(count):
        return []
    bound = Bound(rules, count)
    ended = Ended(bound, n_best, alpha, enough=patience * width)
    keeper = Keeper(bound, width) if rules.phrases else None
    front = begun(count)
    state, tokens = stepper.start(memory), torch.full((count,), START)
    while True:
        log_probs, state = stepper.step(state, tokens)
        found = look(log_probs, front, bound, width, keeper)
        ended.take(front, found, width)
        found = found.unended(width)
        going = ended.hopeful(front, found)
        if not len(going):
            return ended.results()
        front, parents, rows = front.onwards(found, going)
        state, tokens = stepper.select(state, rows), front.history[..., -1].flatten()
        if keeper:
            keeper.follow(front, parents)


def look(
    log_probs: Float[Tensor, "n v"], front: Front, bound: Bound, width: int, keeper: Keeper | None
) -> Found:
    """The best 2 * width candidates: as each beam ends at most once, `width` of them go on."""
    if keeper:
        keeper.ask(log_probs, front)
    bound.apply(log_probs, front.inputs, front.history.flatten(0, 1))
    found = Found(*best(log_probs, front.scores, 2 * width))
    check_told(found.values[:, 0], front.position)
    return keeper.choose(log_probs, front, found) if keeper else found


class Ended:
    """Finished outputs, and what an unfinished one would have to reach."""

    def __init__(self, bound: Bound, n_best: int, alpha: float, enough: float):
        self.n_best, self.alpha, self.enough = n_best, alpha, enough
        self.outputs: list[list[Hypothesis]] = [[] for _ in range(bound.count)]
        self.tops: list[list[float]] = [[] for _ in range(bound.count)]  # heaps of the n best
        self.bars = torch.full((bound.count,), -torch.inf, dtype=torch.float64)
        self.gentlest = torch.tensor(
            [length_penalty(limit + 1, alpha) for limit in bound.limits.tolist()],
            dtype=torch.float64,
        )

    def take(self, front: Front, found: Found, width: int) -> None:
        """Outputs whose end is among the `width` best candidates."""
        ends = found.ids[:, :width] == END
        if not ends.any():
            return
        at, rank = (ends & (found.values[:, :width] > -torch.inf)).nonzero(as_tuple=True)
        penalty = length_penalty(front.position + 1, self.alpha)
        outputs = front.history[at, found.parents[at, rank]].tolist()
        log_probs, inputs = found.values[at, rank].tolist(), front.inputs[at].tolist()
        for number, ids, log_prob in zip(inputs, outputs, log_probs, strict=True):
            self.add(number, Hypothesis(ids, log_prob / penalty, log_prob))

    def add(self, number: int, output: Hypothesis) -> None:
        self.outputs[number].append(output)
        top = self.tops[number]
        if len(top) < self.n_best:
            heapq.heappush(top, output.score)
        else:
            heapq.heappushpop(top, output.score)
        if len(self.outputs[number]) >= self.enough:
            self.bars[number] = torch.inf
        elif len(top) == self.n_best:
            self.bars[number] = top[0]

    def hopeful(self, front: Front, found: Found) -> Int[Tensor, " k"]:
        """Which inputs of the front are to be searched on."""
        settled = self.settled(front.inputs, found.values[:, 0])
        for at in settled.nonzero()[:, 0].tolist():
            number = int(front.inputs[at])
            if not self.outputs[number]:  # the rules left nothing to say: an output ends there
                ids = front.history[at, 0].tolist()
                self.outputs[number] = [Hypothesis(ids, -math.inf, -math.inf)]
        return (~settled).nonzero()[:, 0]

    def settled(
        self, inputs: Int[Tensor, " a"], leaders: Float[Tensor, " a"]
    ) -> Bool[Tensor, " a"]:
        """No more is wanted, or none can come: log-probabilities only fall, lp only grows."""
        return self.bars[inputs] >= leaders / self.gentlest[inputs]

    def results(self) -> list[list[Hypothesis]]:
        """The n best of each input; among equals, the one that ended first."""
        ranked = (sorted(outputs, key=lambda one: -one.score) for outputs in self.outputs)
        return [outputs[: self.n_best] for outputs in ranked]


def check_settings(width: int, n_best: int, alpha: float, patience: float) -> None:
    if width < 1:
        raise ValueError(f"width must be 1 or more, not {width}")
    if not 1 <= n_best <= width:
        raise ValueError(f"n_best must be in 1 to width ({width}), not {n_best}")
    check_penalty("alpha", alpha)
    if not patience > 0:
        raise ValueError(f"patience must be positive, not {patience}")
