"""The state of a beam search between two steps.

a: active inputs   b: beams   m: candidates   t: tokens so far   n = a * b: rows
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.batching.device import CPU
from regard.text.special import END


class Candidates(NamedTuple):
    """Candidates for the next beams, best first: score, the beam that each extends, and the id.

    A score of -inf marks an empty slot.
    """

    values: Float[Tensor, "a m"]
    parents: Int[Tensor, "a m"]
    ids: Int[Tensor, "a m"]

    def first(self, width: int) -> "Candidates":
        """Return the best candidates, at most `width` of them."""
        return Candidates(*(part[:, :width] for part in self))

    def without_finished(self, ends: Bool[Tensor, "a m"], width: int) -> "Candidates":
        """Return the best candidates that do not end, at most `width` of them."""
        order = ends.sort(dim=1, stable=True)[1][:, :width]
        values, parents, ids = (part.gather(1, order) for part in self)
        return Candidates(values.masked_fill(ids == END, -torch.inf), parents, ids)


class Beams(NamedTuple):
    """Unfinished hypotheses, best first in each input; a score of -inf marks an empty slot."""

    inputs: Int[Tensor, " a"]
    scores: Float[Tensor, "a b"]  # float64
    history: Int[Tensor, "a b t"]

    @property
    def position(self) -> int:
        return self.history.shape[2]

    def advance(
        self, candidates: Candidates, active: Sequence[int]
    ) -> tuple["Beams", Int[Tensor, "k b"], Int[Tensor, " n"]]:
        """Return the next beams of the active inputs, their parent beams, and rows of the state."""
        inputs, beams = self.inputs, self.scores.shape[1]
        first_rows = torch.arange(0, len(inputs) * beams, beams, device=inputs.device)
        if len(active) < len(inputs):
            kept = torch.tensor(active, device=inputs.device)
            candidates = Candidates(*(part[kept] for part in candidates))
            inputs, first_rows = inputs[kept], first_rows[kept]
        if -math.inf in candidates.values[:, -1].tolist():
            candidates = candidates.first(int((candidates.values > -torch.inf).sum(1).max()))
        values, parents, ids = candidates
        rows = (parents + first_rows.unsqueeze(1)).flatten()
        history = self.history.flatten(0, 1).index_select(0, rows).unflatten(0, ids.shape)
        return Beams(inputs, values, torch.cat([history, ids.unsqueeze(2)], 2)), parents, rows


def initial_beams(count: int, device: torch.device = CPU) -> Beams:
    """Return one empty hypothesis for each input."""
    return Beams(
        torch.arange(count, device=device),
        torch.zeros(count, 1, dtype=torch.float64, device=device),
        torch.empty(count, 1, 0, dtype=torch.long, device=device),
    )
