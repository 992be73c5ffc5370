"""Outputs that must contain given phrases: how far each hypothesis has come, and who may stay.

After Post & Vilar 2018 (dynamic beam allocation): the beam is shared out among banks, one for each
number of phrase tokens that are in place, so that hypotheses which took up a phrase early are not
crowded out by likelier ones that have not.
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
from regard.text.special import END


class PhraseProgress(NamedTuple):
    """What a hypothesis has yet to say, and the beginning of it that it ends with."""

    missing: frozenset[tuple[int, ...]]
    tail: tuple[int, ...] = ()  # the longest end of the output that begins an unmet phrase

    @property
    def total(self) -> int:
        return sum(map(len, self.missing))

    @property
    def remaining(self) -> int:
        """So many tokens are sure to be enough: finish the phrase begun, then say the others."""
        return self.total - len(self.tail)

    @property
    def next_ids(self) -> set[int]:
        """Tokens that bring a phrase forward; one that has been begun is gone on with."""
        n_begun = len(self.tail)
        return {phrase[n_begun] for phrase in self.missing if phrase[:n_begun] == self.tail}

    def advance(self, next_id: int) -> "PhraseProgress":
        """What is left when this has been said. Phrases may overlap."""
        recent_ids = (*self.tail, next_id)
        missing = frozenset(
            phrase for phrase in self.missing if recent_ids[-len(phrase) :] != phrase
        )
        for start in range(len(recent_ids)):
            if any(phrase[: len(recent_ids) - start] == recent_ids[start:] for phrase in missing):
                return PhraseProgress(missing, recent_ids[start:])
        return PhraseProgress(missing)


class PhraseCandidate(NamedTuple):
    """One way to go on. In order: the likelier, then the earlier beam, then the lower id."""

    cost: float  # the log-probability so far, its sign turned
    parent: int  # the beam that it extends
    id: int
    remaining: int  # phrase tokens left to say then


EMPTY_CANDIDATE = PhraseCandidate(math.inf, 0, 0, 0)


class PhraseTracker:
    """Watches over the phrases of every input of a beam search."""

    def __init__(self, batch_constraints: BatchConstraints, width: int):
        self.batch_constraints, self.width = batch_constraints, width
        self.limits = batch_constraints.limits.tolist()
        self.progress = [
            [start]
            for start in map(
                initial_progress, batch_constraints.phrases, batch_constraints.prefixes
            )
        ]
        self.phrase_candidates: dict[int, list[PhraseCandidate]] = {}  # by place in the front
        for input_index, ([start], limit) in enumerate(
            zip(self.progress, self.limits, strict=True)
        ):
            prefix_length = len(batch_constraints.prefixes[input_index])
            if prefix_length + start.remaining > limit:
                raise ValueError(
                    f"input {input_index}: its phrases need {start.remaining} ids after a "
                    "prefix of "
                    f"{prefix_length}, more than max_length {limit}: raise it"
                )

    def collect_candidates(self, log_probs: Float[Tensor, "n v"], current_beams: Beams) -> None:
        """Note the candidates that bring phrases forward, before other rules forbid any."""
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
        rows, parents, ids, _ = torch.tensor(extensions).unbind(1)
        extension_log_probs = log_probs[rows * n_beams + parents, ids].clamp(
            min=MIN_FORCED_LOG_PROB
        )
        costs = (-extension_log_probs - current_beams.scores[rows, parents]).tolist()
        for (row, *extension), cost in zip(extensions, costs, strict=True):
            self.phrase_candidates.setdefault(row, []).append(PhraseCandidate(cost, *extension))

    def has_missing_phrases(self, input_index: int, position: int) -> bool:
        """Whether this input has something left to keep, its prefix being over."""
        is_past_prefix = position >= len(self.batch_constraints.prefixes[input_index])
        return is_past_prefix and any(progress.missing for progress in self.progress[input_index])

    def merge_candidates(
        self, log_probs: Float[Tensor, "n v"], current_beams: Beams, candidates: Candidates
    ) -> Candidates:
        """Candidates as found, but for busy inputs: first those that end, then those that go on."""
        if not self.phrase_candidates:
            return candidates
        input_rows, n_beams = (
            torch.tensor(list(self.phrase_candidates)),
            current_beams.scores.shape[1],
        )
        beam_rows = (input_rows[:, None] * n_beams + torch.arange(n_beams)).flatten()
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
        costs, parents, ids, _ = torch.tensor(selected, dtype=torch.float64).unbind(2)
        candidates = padded_candidates(candidates, n_candidates)
        candidates.values[input_rows] = -costs
        candidates.parents[input_rows], candidates.ids[input_rows] = parents.long(), ids.long()
        return candidates

    def select_candidates(
        self, row: int, current_beams: Beams, costs: list[list[float]], ids: list[list[int]]
    ) -> list[PhraseCandidate]:
        """Of one input: the ends and the others that get a place each."""
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
                # whoever fits has a wanted token that fits too: every output gets its phrases
                fits = remaining == 0 if next_id == END else remaining <= tokens_left
                if fits and cost < torch.inf and (parent, next_id) not in already_listed:
                    fitting.append(PhraseCandidate(cost, parent, next_id, remaining))
        fitting.sort()
        ends = [candidate for candidate in share_beams(fitting, self.width) if candidate.id == END]
        return ends + share_beams(
            [candidate for candidate in fitting if candidate.id != END], self.width
        )

    def update(self, current_beams: Beams, parents: Int[Tensor, "a b"]) -> None:
        """What the hypotheses of the new front have kept."""
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
            else:  # the progress was begun after the prefix
                self.progress[input_index] = [previous[beam] for beam in parent_beams]


def initial_progress(phrases: Iterable[Sequence[int]], prefix: Sequence[int]) -> PhraseProgress:
    """Where an output stands after its forced prefix. A phrase given twice need occur once."""
    progress = PhraseProgress(frozenset(map(tuple, phrases)))
    for next_id in prefix:
        progress = progress.advance(next_id)
    return progress


def remaining_by_id(progress: PhraseProgress) -> tuple[dict[int, int], int]:
    """What would remain to be said after each id that matters, and after any other."""
    relevant_ids = {next_id for phrase in progress.missing for next_id in phrase}
    return {
        next_id: progress.advance(next_id).remaining for next_id in relevant_ids
    }, progress.total


def padded_candidates(candidates: Candidates, count: int) -> Candidates:
    """Room for this many candidates, which a small vocabulary may not give."""
    n_missing = max(count - candidates.values.shape[1], 0)
    return Candidates(
        F.pad(candidates.values, (0, n_missing), value=-torch.inf),
        F.pad(candidates.parents, (0, n_missing)),
        F.pad(candidates.ids, (0, n_missing)),
    )


def share_beams(candidates: Iterable[PhraseCandidate], width: int) -> list[PhraseCandidate]:
    """At most `width` of the sorted candidates, in turn from each bank, the fullest bank first."""
    banks: dict[int, list[PhraseCandidate]] = {}
    for candidate in candidates:
        banks.setdefault(candidate.remaining, []).append(candidate)
    rounds = zip_longest(*(banks[remaining] for remaining in sorted(banks)))
    turns = (candidate for turn in rounds for candidate in turn if candidate is not None)
    return sorted(islice(turns, width))
