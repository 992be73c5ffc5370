"""The state of a beam search between two steps.

a: active inputs   b: beams   m: candidates   t: tokens so far   n = a * b: rows
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
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

    def without_finished(self, width: int) -> "Candidates":
        """Return the candidates that do not end, at most `width` of them."""
        ends = self.ids == END
        if not ends.any():
            return Candidates(*(part[:, :width] for part in self))
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
        self, candidates: Candidates, active: Int[Tensor, " k"]
    ) -> tuple["Beams", Int[Tensor, "k b"], Int[Tensor, " n"]]:
        """Return the next beams of the active inputs, their parent beams, and rows of the state."""
        if len(active) < len(self.inputs):
            candidates = Candidates(*(part[active] for part in candidates))
        values, parents, ids = candidates
        max_alive = int((values > -torch.inf).sum(1).max())
        values, parents, ids = values[:, :max_alive], parents[:, :max_alive], ids[:, :max_alive]
        rows = active[:, None] * self.scores.shape[1] + parents
        history = torch.cat([self.history.flatten(0, 1)[rows], ids[..., None]], 2)
        return Beams(self.inputs[active], values, history), parents, rows.flatten()


def initial_beams(count: int, device: torch.device = CPU) -> Beams:
    """Return one empty hypothesis for each input."""
    return Beams(
        torch.arange(count, device=device),
        torch.zeros(count, 1, dtype=torch.float64, device=device),
        torch.empty(count, 1, 0, dtype=torch.long, device=device),
    )
