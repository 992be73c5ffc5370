"""Distances that are not known, from those that are: an encoder of pairs with a distogram on it.

    p(bin of d_ij | shown distances) = softmax(W (z_ij + z_ji))      Jumper et al. 2021, 1.9.8
    loss = - sum over hidden pairs i < j of log p(bin of d_ij),   d_ij is told as sum_b p_b c_b

c_b is the middle of a bin; the last bin holds all that is farther, too. Which distances are shown
is drawn anew for each batch in training; else it hangs on the distances themselves.
b: sets   r: points   k: bins   f: features
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attend.tap import named_attentions, observe
from regard.batch.batches import in_order
from regard.batch.pair import Pair, padded
from regard.corpora.points import Distances, distances_of
from regard.corpora.proteins import OTHER
from regard.encode.head import Distogram
from regard.tasks.fold import NUMBERS, PAIRS
from regard.tasks.headed import Headed, OnEncoder
from regard.tasks.loss import Loss

BASES = 16  # places along the way from the nearest to the farthest, by nearness to which it is told
FEATURES = 2 + BASES  # of a pair: whether it is shown, its distance, and where that is
UNKNOWN = -1.0  # in the place of a distance that nobody knows


class Told(NamedTuple):
    """Of one set of points: all distances, probabilities of contacts, and what was shown."""

    distances: list[list[float]]
    contacts: list[list[float]]
    shown: list[list[bool]]


@dataclass(frozen=True)
class Sets:
    """As the encoder wants them. `hidden` are pairs i < j that are known, and not shown."""

    numbers: Int[Tensor, " b"]
    inputs: dict[str, Tensor]
    distances: Float[Tensor, "b r r"]
    shown: Bool[Tensor, "b r r"]
    hidden: Bool[Tensor, "b r r"]


class Measurer(OnEncoder):
    """An encoder of pairs with a head for each of them."""

    def __init__(self, encoder: Any, bins: int, *, dropout: float = 0.0):
        super().__init__(encoder)
        self.head = Distogram(encoder.pair_width, bins, dropout=dropout)

    def forward(self, inputs: Mapping[str, Tensor]) -> Float[Tensor, "b r r k"]:
        return self.head(self.encoder.encode(**inputs).pairs)


class Distance(Headed):
    """`bins` classes from `nearest` to `farthest`; nearer than `contact` is a contact."""

    fields = ("text",)

    def __init__(
        self, model: Measurer, *, bins: int, nearest: float, farthest: float, contact: float
    ):
        self.model, self.farthest, self.contact = model, farthest, contact
        self.edges = torch.linspace(nearest, farthest, bins + 1)
        self.middles = (self.edges[1:] + self.edges[:-1]) / 2

    def pairs(self, records: Iterable[Mapping[str, Any]], longest: int) -> Iterator[Pair]:
        """Tables of distances, one by one, those of more points left out; letters are the target.

        The share that is shown stands behind the letters, in thousandths.
        """
        for number, record in enumerate(records):
            letters, table = distances_of(record["text"], f"record {number + 1}")
            if len(table) <= longest:
                rate = round(1000 * record["shown"])
                yield Pair(number, rows_of(table), [*letter_numbers(letters, len(table)), rate])

    def collate(self, pairs: Sequence[Pair]) -> Sets:
        """What is shown hangs on the distances, so that a score is the same each time."""
        return self.sets(pairs, [draw_for(np.asarray(pair.source)) for pair in pairs])

    def varied(self, pairs: Sequence[Pair]) -> Sets:
        """A batch to learn from: what is shown is drawn by chance."""
        return self.sets(pairs, [torch.rand(2 * [len(pair.source)]) for pair in pairs])

    def sets(self, pairs: Sequence[Pair], draws: Sequence[Tensor | None]) -> Sets:
        """A pair is shown where its draw is less than the share; None: all that is known is."""
        ids, valid = padded([[*pair.target][:-1] for pair in pairs])
        size = ids.shape[1]
        distances = torch.full((len(pairs), size, size), UNKNOWN)
        shown = torch.zeros_like(distances, dtype=torch.bool)
        for row, (pair, draw) in enumerate(zip(pairs, draws, strict=True)):
            many = len(pair.source)
            distances[row, :many, :many] = torch.from_numpy(np.asarray(pair.source))
            if draw is None:
                shown[row] = True
                continue
            chosen = (draw < pair.target[-1] / 1000).triu(1)
            shown[row, :many, :many] = chosen | chosen.mT
        known = distances >= 0
        shown = shown & known | torch.eye(size, dtype=torch.bool) & valid[:, None]
        told = self.features(distances) * shown[..., None]
        inputs = {"ids": ids[:, None], "valid": valid, "told": told}
        hidden = (known & ~shown).triu(1)
        return Sets(torch.tensor([p.number for p in pairs]), inputs, distances, shown, hidden)

    def features(self, distances: Float[Tensor, "b r r"]) -> Float[Tensor, "b r r f"]:
        """1, d, and exp(-((d - c) / w)^2) for places c that are w apart.

        A product with d alone can but rise or fall with it: learning is then far slower (for six
        points on a line, an error of 2.1 after 150 steps beside 1.2).
        """
        places = torch.linspace(float(self.edges[0]), self.farthest, BASES)
        near = (-((distances[..., None] - places) / (places[1] - places[0])).square()).exp()
        plain = torch.stack([torch.ones_like(distances), distances / self.farthest], -1)
        return torch.cat([plain, near], -1)

    def loss(self, batch: Sets, smoothing: float = 0.0) -> Loss:
        logits = self.model(batch.inputs)[batch.hidden]
        wanted = self.binned(batch.distances[batch.hidden])
        total = F.cross_entropy(logits, wanted, reduction="sum", label_smoothing=smoothing)
        return Loss(total, max(1, len(wanted)))

    def binned(self, distances: Float[Tensor, " n"]) -> Int[Tensor, " n"]:
        return torch.bucketize(distances, self.edges[1:-1])

    @torch.no_grad()
    def measured(
        self,
        pairs: Sequence[Pair],
        told: Callable[[int], None] | None = None,
        *,
        all_: bool = False,
    ) -> dict[int, Told]:
        """By number; what is shown is taken over. `all_`: all that is known is shown."""
        self.model.eval()
        collate = self.collate if not all_ else lambda some: self.sets(some, [None] * len(some))
        found: dict[int, Told] = {}
        near = self.middles < self.contact
        for batch in in_order(pairs, tokens=10**9, sentences=self.together(pairs), collate=collate):
            shares = self.model(batch.inputs).softmax(-1)
            distances = torch.where(batch.shown, batch.distances, shares @ self.middles)
            distances.diagonal(dim1=1, dim2=2).zero_()
            contacts = torch.where(
                batch.shown, (batch.distances < self.contact).float(), shares @ near.float()
            )
            for row, number in enumerate(batch.numbers.tolist()):
                many = int(batch.inputs["valid"][row].sum())
                tables = (t[row, :many, :many].tolist() for t in (distances, contacts, batch.shown))
                found[number] = Told(*tables)
            if told is not None:
                told(len(batch.numbers))
        return found

    @torch.no_grad()
    def looked(self, text: str, place: str) -> dict[str, Float[Tensor, "h r r"]]:
        """What edges i, j looked at, as edges i, k: [h j k], in the mean over i; by layer."""
        names = self.edge_attentions()
        if not names:
            raise ValueError("the model's pairs do not look at each other: there is nothing to see")
        letters, table = distances_of(text, place)
        pair = Pair(0, rows_of(table), [*letter_numbers(letters, len(table)), 0])
        with observe(self.model.eval(), names) as seen:
            self.model(self.sets([pair], [None]).inputs)
        return {n.removeprefix("encoder."): w[0].mean(0) for n, w in seen.whole().items()}

    def edge_attentions(self) -> list[str]:
        """By which pairs look at each other, if they do."""
        return [name for name in named_attentions(self.model) if ".edges." in name]

    def in_order(self, pairs: Sequence[Pair]) -> Iterator[Sets]:
        if not pairs:
            return iter(())
        many = self.together(pairs)
        return in_order(pairs, tokens=10**9, sentences=many, collate=self.collate)

    def together(self, pairs: Sequence[Pair]) -> int:
        """Sets whose pairs fit at once."""
        return max(1, PAIRS // max(len(pair.source) for pair in pairs) ** 2)


def rows_of(table: Distances) -> list[Float[np.ndarray, " r"]]:
    """The rows of a table of distances, as numbers."""
    return list(np.array([[UNKNOWN if d is None else d for d in row] for row in table], np.float32))


def letter_numbers(letters: str | None, many: int) -> list[int]:
    return [NUMBERS.get(one, NUMBERS[OTHER]) for one in letters or OTHER * many]


def draw_for(table: Float[np.ndarray, "r r"]) -> Tensor:
    """Numbers from 0 to 1 that hang on the distances alone."""
    seed = int.from_bytes(blake2b(table.tobytes(), digest_size=7).digest())
    return torch.rand(2 * [len(table)], generator=torch.Generator().manual_seed(seed))
