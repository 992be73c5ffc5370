"""Beam search with phrases that must occur: dynamic beam allocation (Post & Vilar 2018).

The beam is divided among banks, one for each number of phrase tokens that are still missing. So
likelier hypotheses that contain no phrase do not displace those that have begun one.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import islice, zip_longest
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.decoding.beams import Beams, Candidates
from regard.decoding.constraints import MIN_FORCED_LOG_PROB, BatchConstraints
from regard.decoding.topk import topk_candidates
from regard.errors import InputError
from regard.text.special import END


class PhraseProgress(NamedTuple):
    """The missing phrases of a hypothesis, and the beginning of one that it ends with."""

    missing: frozenset[tuple[int, ...]]
    tail: tuple[int, ...] = ()  # the longest suffix of the output that begins a missing phrase

    @property
    def total(self) -> int:
        return sum(map(len, self.missing))

    @property
    def remaining(self) -> int:
        """Return how many tokens suffice: finish the phrase at the tail, then add the others."""
        return self.total - len(self.tail)

    @property
    def next_ids(self) -> set[int]:
        """Return the tokens that extend a phrase, or the one at the tail if there is one."""
        n_begun = len(self.tail)
        return {phrase[n_begun] for phrase in self.missing if phrase[:n_begun] == self.tail}

    def advance(self, next_id: int) -> "PhraseProgress":
        """Return the progress after one more token. Phrases may overlap."""
        recent_ids = (*self.tail, next_id)
        missing = frozenset(
            phrase for phrase in self.missing if recent_ids[-len(phrase) :] != phrase
        )
        for start in range(len(recent_ids)):
            if any(phrase[: len(recent_ids) - start] == recent_ids[start:] for phrase in missing):
                return PhraseProgress(missing, recent_ids[start:])
        return PhraseProgress(missing)


class PhraseCandidate(NamedTuple):
    """An extension of a beam; sorted by probability, then by beam, then by id."""

    cost: float  # the negative log-probability of the hypothesis
    parent: int  # the beam that it extends
    id: int
    remaining: int  # phrase tokens that are missing after it


EMPTY_CANDIDATE = PhraseCandidate(math.inf, 0, 0, 0)


class PhraseTracker:
    """Tracks the phrases of every input of a beam search."""

    def __init__(self, batch_constraints: BatchConstraints, width: int):
        self.batch_constraints, self.width = batch_constraints, width
        self.limits = batch_constraints.limits.tolist()
        self.progress = [
            [start]
            for start in map(
                initial_progress, batch_constraints.phrases, batch_constraints.prefixes
            )
        ]
        self.phrase_candidates: dict[int, list[PhraseCandidate]] = {}  # by row of the beams
        for input_index, ([start], limit) in enumerate(
            zip(self.progress, self.limits, strict=True)
        ):
            prefix_length = len(batch_constraints.prefixes[input_index])
            if prefix_length + start.remaining > limit:
                raise InputError(
                    f"input {input_index}: phrases of {start.remaining} ids do not fit after a "
                    f"prefix of {prefix_length}; raise max_length ({limit})"
                )

    def collect_candidates(self, log_probs: Float[Tensor, "n v"], current_beams: Beams) -> None:
        """Collect the candidates that extend phrases, before other constraints forbid them."""
        self.phrase_candidates = {}
        input_indices, n_beams = current_beams.inputs.tolist(), current_beams.scores.shape[1]
        extensions = [
            (row, parent, next_id, progress.advance(next_id).remaining)
            for row, input_index in enumerate(input_indices)
            if self.has_missing_phrases(input_index, current_beams.position)
            for parent, progress in enumerate(self.progress[input_index])
            for next_id in progress.next_ids
        ]
        if not extensions:
            return
        rows, parents, ids, _ = torch.tensor(extensions, device=log_probs.device).unbind(1)
        extension_log_probs = log_probs[rows * n_beams + parents, ids].clamp(
            min=MIN_FORCED_LOG_PROB
        )
        costs = (-extension_log_probs - current_beams.scores[rows, parents]).tolist()
        for (row, *extension), cost in zip(extensions, costs, strict=True):
            self.phrase_candidates.setdefault(row, []).append(PhraseCandidate(cost, *extension))

    def has_missing_phrases(self, input_index: int, position: int) -> bool:
        """Return whether an input has missing phrases, after its prefix."""
        is_past_prefix = position >= len(self.batch_constraints.prefixes[input_index])
        return is_past_prefix and any(progress.missing for progress in self.progress[input_index])

    def merge_candidates(
        self, log_probs: Float[Tensor, "n v"], current_beams: Beams, candidates: Candidates
    ) -> Candidates:
        """Replace the candidates of inputs with missing phrases: first those that end."""
        if not self.phrase_candidates:
            return candidates
        input_rows, n_beams = (
            torch.tensor(list(self.phrase_candidates), device=log_probs.device),
            current_beams.scores.shape[1],
        )
        beam = torch.arange(n_beams, device=log_probs.device)
        beam_rows = (input_rows[:, None] * n_beams + beam).flatten()
        values, _, ids = topk_candidates(
            log_probs[beam_rows], current_beams.scores[input_rows].view(-1, 1), self.width + 1
        )
        shape = (len(input_rows), n_beams, -1)
        costs, ids = (-values).view(shape).tolist(), ids.view(shape).tolist()
        n_candidates = 2 * self.width
        selected = []
        for row, *costs_and_ids in zip(self.phrase_candidates, costs, ids, strict=True):
            row_candidates = self.select_candidates(row, current_beams, *costs_and_ids)
            selected.append(
                row_candidates + [EMPTY_CANDIDATE] * (n_candidates - len(row_candidates))
            )
        table = torch.tensor(selected, dtype=torch.float64, device=log_probs.device)
        costs, parents, ids, _ = table.unbind(2)
        candidates = padded_candidates(candidates, n_candidates)
        candidates.values[input_rows] = -costs
        candidates.parents[input_rows], candidates.ids[input_rows] = parents.long(), ids.long()
        return candidates

    def select_candidates(
        self, row: int, current_beams: Beams, costs: list[list[float]], ids: list[list[int]]
    ) -> list[PhraseCandidate]:
        """Return the candidates of one input, first those that end."""
        input_index = int(current_beams.inputs[row])
        tokens_left = self.limits[input_index] - current_beams.position - 1
        fitting = [
            candidate for candidate in self.phrase_candidates[row] if candidate.cost < torch.inf
        ]
        already_listed = {(candidate.parent, candidate.id) for candidate in fitting}
        for parent, costs_and_ids in enumerate(zip(costs, ids, strict=True)):
            remaining_after, remaining_default = remaining_by_id(self.progress[input_index][parent])
            for cost, next_id in zip(*costs_and_ids, strict=True):
                remaining = remaining_after.get(next_id, remaining_default)
                # a hypothesis that fits always has a phrase token that fits, so no phrase is lost
                fits = remaining == 0 if next_id == END else remaining <= tokens_left
                if fits and cost < torch.inf and (parent, next_id) not in already_listed:
                    fitting.append(PhraseCandidate(cost, parent, next_id, remaining))
        fitting.sort()
        ends = [candidate for candidate in share_beams(fitting, self.width) if candidate.id == END]
        return ends + share_beams(
            [candidate for candidate in fitting if candidate.id != END], self.width
        )

    def update(self, current_beams: Beams, parents: Int[Tensor, "a b"]) -> None:
        """Update the progress of all hypotheses to the new beams."""
        last_ids = current_beams.history[..., -1].tolist()
        for input_index, parent_beams, ids in zip(
            current_beams.inputs.tolist(), parents.tolist(), last_ids, strict=True
        ):
            previous = self.progress[input_index]
            if current_beams.position > len(self.batch_constraints.prefixes[input_index]):
                pairs = zip(parent_beams, ids, strict=True)
                self.progress[input_index] = [
                    previous[beam].advance(next_id) for beam, next_id in pairs
                ]
            else:  # `initial_progress` has read the prefix
                self.progress[input_index] = [previous[beam] for beam in parent_beams]


def initial_progress(phrases: Iterable[Sequence[int]], prefix: Sequence[int]) -> PhraseProgress:
    """Return the progress after the prefix. A phrase that is given twice must occur once."""
    progress = PhraseProgress(frozenset(map(tuple, phrases)))
    for next_id in prefix:
        progress = progress.advance(next_id)
    return progress


def remaining_by_id(progress: PhraseProgress) -> tuple[dict[int, int], int]:
    """Return the missing tokens after each id of a phrase, and after any other id."""
    relevant_ids = {next_id for phrase in progress.missing for next_id in phrase}
    return {
        next_id: progress.advance(next_id).remaining for next_id in relevant_ids
    }, progress.total


def padded_candidates(candidates: Candidates, count: int) -> Candidates:
    """Pad to `count` candidates; a small vocabulary may have fewer."""
    n_missing = max(count - candidates.values.shape[1], 0)
    return Candidates(
        F.pad(candidates.values, (0, n_missing), value=-torch.inf),
        F.pad(candidates.parents, (0, n_missing)),
        F.pad(candidates.ids, (0, n_missing)),
    )


def share_beams(candidates: Iterable[PhraseCandidate], width: int) -> list[PhraseCandidate]:
    """Return at most `width` sorted candidates, in turn from each bank.

    The bank with the fewest missing tokens comes first.
    """
    banks: dict[int, list[PhraseCandidate]] = {}
    for candidate in candidates:
        banks.setdefault(candidate.remaining, []).append(candidate)
    rounds = zip_longest(*(banks[remaining] for remaining in sorted(banks)))
    turns = (candidate for turn in rounds for candidate in turn if candidate is not None)
    return sorted(islice(turns, width))
