"""Beam search: extend the `width` likeliest prefixes of each input, all in one batch.

a: active inputs   n: rows, which are the beams of all active inputs   v: vocabulary
"""

import heapq
import math
from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.decoding.beams import Beams, Candidates, initial_beams
from regard.decoding.constraints import UNCONSTRAINED, BatchConstraints, Constraints
from regard.decoding.greedy import check_count
from regard.decoding.listen import notify_step
from regard.decoding.penalties import LengthNormalization, check_penalty, length_penalty
from regard.decoding.phrases import PhraseTracker
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


@torch.inference_mode()
def beam_search(
    stepper: Stepper[MemoryT, StateT],
    memory: MemoryT,
    count: int,
    width: int = 5,
    *,
    n_best: int = 1,
    alpha: float = 0.0,
    normalization: LengthNormalization = "gnmt",
    patience: float = 1.0,
    constraints: Constraints = UNCONSTRAINED,
) -> list[list[Hypothesis]]:
    """Return up to `n_best` outputs for each of the `count` inputs of the memory, best first.

    A hypothesis is finished when its end token is among the `width` best candidates of its input.
    The `width` best other candidates are extended. Finished hypotheses are ranked by log P / lp
    (`alpha` and `normalization`, see penalties.py).

    The search of an input stops when `patience * width` hypotheses are finished (Kasai et al.
    2022): 1 is the usual rule, infinity searches on. It also stops when no unfinished hypothesis
    can reach the n best, even if all further tokens had probability 1. Then the input leaves the
    batch.
    """
    check_settings(width, n_best, alpha, patience)
    if not check_count(count):
        return []
    stepper, device = place_search(stepper, memory)
    batch_constraints = BatchConstraints(constraints, count, device)
    finished = FinishedOutputs(
        batch_constraints,
        n_best,
        max_outputs=patience * width,
        penalty=partial(length_penalty, alpha=alpha, normalization=normalization),
    )
    tracker = PhraseTracker(batch_constraints, width) if constraints.phrases else None
    beams = initial_beams(count, device)
    state, tokens = stepper.start(memory), torch.full((count,), START, device=device)
    while True:
        log_probs, state = stepper.step(state, tokens)
        candidates = find_candidates(log_probs, beams, batch_constraints, width, tracker)
        ends = candidates.ids == END
        if ends.any():
            finished.add_finished(beams, candidates, ends[:, :width])
            candidates = candidates.without_finished(ends, width)
        else:
            candidates = candidates.first(width)
        active = finished.active_inputs(beams, candidates)
        if not active:
            return finished.results()
        beams, parents, rows = beams.advance(candidates, active)
        notify_step(beams.history[:, 0], count)
        state, tokens = stepper.select(state, rows), beams.history[..., -1].flatten()
        if tracker:
            tracker.update(beams, parents)


def find_candidates(
    log_probs: Float[Tensor, "n v"],
    beams: Beams,
    batch_constraints: BatchConstraints,
    width: int,
    tracker: PhraseTracker | None,
) -> Candidates:
    """Return the best 2 * width candidates.

    Each beam ends at most once, so at least `width` of them can be extended.
    """
    if tracker:
        tracker.collect_candidates(log_probs, beams)
    batch_constraints.apply(log_probs, beams.inputs, beams.history.flatten(0, 1))
    candidates = Candidates(*topk_candidates(log_probs, beams.scores, 2 * width))
    check_log_probs(candidates.values[:, 0].tolist(), beams.position)
    return tracker.merge_candidates(log_probs, beams, candidates) if tracker else candidates


class FinishedOutputs:
    """Finished outputs, and the score that an unfinished one has to reach."""

    def __init__(
        self,
        batch_constraints: BatchConstraints,
        n_best: int,
        max_outputs: float,
        penalty: Callable[[int], float],
    ):
        self.n_best, self.max_outputs, self.penalty = n_best, max_outputs, penalty
        self.outputs: list[list[Hypothesis]] = [[] for _ in range(batch_constraints.count)]
        # a heap of the n best scores for each input
        self.best_scores: list[list[float]] = [[] for _ in range(batch_constraints.count)]
        self.required_scores = [-math.inf] * batch_constraints.count
        self.max_length_penalties = [
            penalty(limit + 1) for limit in batch_constraints.limits.tolist()
        ]

    def add_finished(self, beams: Beams, candidates: Candidates, ends: Bool[Tensor, "a b"]) -> None:
        """Add the outputs of the best candidates that end."""
        is_real = candidates.values[:, : ends.shape[1]] > -torch.inf
        row, rank = (ends & is_real).nonzero(as_tuple=True)
        penalty = self.penalty(beams.position + 1)
        outputs = beams.history[row, candidates.parents[row, rank]].tolist()
        log_probs, inputs = candidates.values[row, rank].tolist(), beams.inputs[row].tolist()
        for input_index, ids, log_prob in zip(inputs, outputs, log_probs, strict=True):
            self.add(input_index, Hypothesis(ids, log_prob / penalty, log_prob))

    def add(self, input_index: int, output: Hypothesis) -> None:
        self.outputs[input_index].append(output)
        best_scores = self.best_scores[input_index]
        if len(best_scores) < self.n_best:
            heapq.heappush(best_scores, output.score)
        else:
            heapq.heappushpop(best_scores, output.score)
        if len(self.outputs[input_index]) >= self.max_outputs:
            self.required_scores[input_index] = math.inf
        elif len(best_scores) == self.n_best:
            self.required_scores[input_index] = best_scores[0]

    def active_inputs(self, beams: Beams, candidates: Candidates) -> list[int]:
        """Return the inputs whose search continues, as indices into `beams`."""
        active = list[int]()
        best_values = candidates.values[:, 0].tolist()  # of a few, lists are faster than operations
        for row, input_index in enumerate(beams.inputs.tolist()):
            if not self.is_decided(input_index, best_values[row]):
                active.append(row)
            elif not self.outputs[input_index]:  # the constraints forbid every token
                ids = beams.history[row, 0].tolist()
                self.outputs[input_index] = [Hypothesis(ids, -math.inf, -math.inf)]
        return active

    def is_decided(self, input_index: int, best_value: float) -> bool:
        """Return whether an input has enough outputs, or cannot get a better one.

        The log-probability of a hypothesis never increases, and lp never decreases.
        """
        best_score = best_value / self.max_length_penalties[input_index]
        return self.required_scores[input_index] >= best_score

    def results(self) -> list[list[Hypothesis]]:
        """Return the n best outputs of each input; among equals, the one that ended first."""
        ranked = (sorted(outputs, key=lambda output: -output.score) for outputs in self.outputs)
        return [outputs[: self.n_best] for outputs in ranked]


def check_settings(width: int, n_best: int, alpha: float, patience: float) -> None:
    if width < 1:
        raise InputError(f"width must be 1 or more, not {width}")
    if not 1 <= n_best <= width:
        raise InputError(f"n_best must be from 1 to width ({width}), not {n_best}")
    check_penalty("alpha", alpha)
    if not patience > 0:
        raise InputError(f"patience must be positive, not {patience}")
