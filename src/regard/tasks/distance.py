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

from regard.attention.observe import named_attentions, observe
from regard.batching.batches import iterate_by_length
from regard.batching.example import Example, padded
from regard.data.formats.proteins import UNKNOWN_RESIDUE
from regard.data.synthetic.points import Distances, parse_distances
from regard.layers.output_heads import DistogramHead
from regard.tasks.fold import MAX_PAIRS_PER_BATCH, RESIDUE_IDS
from regard.tasks.headed import EncoderTask, EncoderWithHead
from regard.tasks.loss import Loss

RADIAL_BASIS_COUNT = (
    16  # places along the way from the nearest to the farthest, by nearness to which it is told
)
FEATURE_COUNT = (
    2 + RADIAL_BASIS_COUNT
)  # of a pair: whether it is shown, its distance, and where that is
UNKNOWN_DISTANCE = -1.0  # in the place of a distance that nobody knows


class DistancePrediction(NamedTuple):
    """Of one set of points: all distances, probabilities of contacts, and what was shown."""

    distances: list[list[float]]
    contacts: list[list[float]]
    shown: list[list[bool]]


@dataclass(frozen=True)
class DistanceBatch:
    """As the encoder wants them. `hidden` are pairs i < j that are known, and not shown."""

    indices: Int[Tensor, " b"]
    inputs: dict[str, Tensor]
    distances: Float[Tensor, "b r r"]
    shown: Bool[Tensor, "b r r"]
    hidden: Bool[Tensor, "b r r"]


class DistanceHead(EncoderWithHead):
    """An encoder of pairs with a head for each of them."""

    def __init__(self, encoder: Any, bins: int, *, dropout: float = 0.0):
        super().__init__(encoder)
        self.head = DistogramHead(encoder.pair_width, bins, dropout=dropout)

    def forward(self, inputs: Mapping[str, Tensor]) -> Float[Tensor, "b r r k"]:
        return self.head(self.encoder.encode(**inputs).pairs)


class DistanceTask(EncoderTask):
    """`bins` classes from `min_distance` to `max_distance`; nearer than `contact_distance` is a
    contact."""

    fields = ("text",)

    def __init__(
        self,
        model: DistanceHead,
        *,
        bins: int,
        min_distance: float,
        max_distance: float,
        contact_distance: float,
    ):
        self.model = model
        self.max_distance, self.contact_distance = max_distance, contact_distance
        self.bin_edges = torch.linspace(min_distance, max_distance, bins + 1)
        self.bin_centers = (self.bin_edges[1:] + self.bin_edges[:-1]) / 2

    def examples(self, records: Iterable[Mapping[str, Any]], max_points: int) -> Iterator[Example]:
        """Tables of distances, one by one, those of more points left out; letters are the target.

        The share that is shown stands behind the letters, in thousandths.
        """
        for index, record in enumerate(records):
            letters, table = parse_distances(record["text"], f"record {index + 1}")
            if len(table) <= max_points:
                shown_rate = round(1000 * record["shown"])
                yield Example(
                    index, distance_rows(table), [*residue_ids(letters, len(table)), shown_rate]
                )

    def collate(self, examples: Sequence[Example]) -> DistanceBatch:
        """What is shown hangs on the distances, so that a score is the same each time."""
        return self.build_batch(
            examples, [reproducible_draws(np.asarray(example.source)) for example in examples]
        )

    def collate_for_training(self, examples: Sequence[Example]) -> DistanceBatch:
        """A batch to learn from: what is shown is drawn by chance."""
        return self.build_batch(
            examples, [torch.rand(2 * [len(example.source)]) for example in examples]
        )

    def build_batch(
        self, examples: Sequence[Example], draws: Sequence[Tensor | None]
    ) -> DistanceBatch:
        """A pair is shown where its draw is less than the share; None: all that is known is."""
        ids, valid = padded([[*example.target][:-1] for example in examples])
        size = ids.shape[1]
        distances = torch.full((len(examples), size, size), UNKNOWN_DISTANCE)
        shown = torch.zeros_like(distances, dtype=torch.bool)
        for row, (example, draw) in enumerate(zip(examples, draws, strict=True)):
            count = len(example.source)
            distances[row, :count, :count] = torch.from_numpy(np.asarray(example.source))
            if draw is None:
                shown[row] = True
                continue
            chosen = (draw < example.target[-1] / 1000).triu(1)
            shown[row, :count, :count] = chosen | chosen.mT
        known = distances >= 0
        shown = shown & known | torch.eye(size, dtype=torch.bool) & valid[:, None]
        features = self.features(distances) * shown[..., None]
        inputs = {"ids": ids[:, None], "valid": valid, "pair_features": features}
        hidden = (known & ~shown).triu(1)
        return DistanceBatch(
            torch.tensor([p.index for p in examples]), inputs, distances, shown, hidden
        )

    def features(self, distances: Float[Tensor, "b r r"]) -> Float[Tensor, "b r r f"]:
        """1, d, and exp(-((d - c) / w)^2) for places c that are w apart.

        A product with d alone can but rise or fall with it: learning is then far slower (for six
        points on a line, an error of 2.1 after 150 steps beside 1.2).
        """
        centers = torch.linspace(float(self.bin_edges[0]), self.max_distance, RADIAL_BASIS_COUNT)
        closeness = (-((distances[..., None] - centers) / (centers[1] - centers[0])).square()).exp()
        linear = torch.stack([torch.ones_like(distances), distances / self.max_distance], -1)
        return torch.cat([linear, closeness], -1)

    def loss(self, batch: DistanceBatch, smoothing: float = 0.0) -> Loss:
        logits = self.model(batch.inputs)[batch.hidden]
        targets = self.bin_indices(batch.distances[batch.hidden])
        total = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
        return Loss(total, max(1, len(targets)))

    def bin_indices(self, distances: Float[Tensor, " n"]) -> Int[Tensor, " n"]:
        return torch.bucketize(distances, self.bin_edges[1:-1])

    @torch.no_grad()
    def predict(
        self,
        examples: Sequence[Example],
        on_progress: Callable[[int], None] | None = None,
        *,
        show_all: bool = False,
    ) -> dict[int, DistancePrediction]:
        """By number; what is shown is taken over. `all_`: all that is known is shown."""
        self.model.eval()
        collate = (
            self.collate
            if not show_all
            else lambda chunk: self.build_batch(chunk, [None] * len(chunk))
        )
        predictions: dict[int, DistancePrediction] = {}
        contact_bins = self.bin_centers < self.contact_distance
        for batch in iterate_by_length(
            examples,
            tokens_per_batch=10**9,
            examples_per_batch=self.examples_per_batch(examples),
            collate=collate,
        ):
            probabilities = self.model(batch.inputs).softmax(-1)
            distances = torch.where(batch.shown, batch.distances, probabilities @ self.bin_centers)
            distances.diagonal(dim1=1, dim2=2).zero_()
            contacts = torch.where(
                batch.shown,
                (batch.distances < self.contact_distance).float(),
                probabilities @ contact_bins.float(),
            )
            for row, index in enumerate(batch.indices.tolist()):
                count = int(batch.inputs["valid"][row].sum())
                tables = (
                    t[row, :count, :count].tolist() for t in (distances, contacts, batch.shown)
                )
                predictions[index] = DistancePrediction(*tables)
            if on_progress is not None:
                on_progress(len(batch.indices))
        return predictions

    @torch.no_grad()
    def attention_weights(self, text: str, location: str) -> dict[str, Float[Tensor, "h r r"]]:
        """What edges i, j looked at, as edges i, k: [h j k], in the mean over i; by layer."""
        names = self.edge_attentions()
        if not names:
            raise ValueError("the model's pairs do not look at each other: there is nothing to see")
        letters, table = parse_distances(text, location)
        example = Example(0, distance_rows(table), [*residue_ids(letters, len(table)), 0])
        with observe(self.model.eval(), names) as recorded:
            self.model(self.build_batch([example], [None]).inputs)
        return {n.removeprefix("encoder."): w[0].mean(0) for n, w in recorded.joined().items()}

    def edge_attentions(self) -> list[str]:
        """By which pairs look at each other, if they do."""
        return [name for name in named_attentions(self.model) if ".edges." in name]

    def iterate_by_length(self, examples: Sequence[Example]) -> Iterator[DistanceBatch]:
        if not examples:
            return iter(())
        batch_size = self.examples_per_batch(examples)
        return iterate_by_length(
            examples, tokens_per_batch=10**9, examples_per_batch=batch_size, collate=self.collate
        )

    def examples_per_batch(self, examples: Sequence[Example]) -> int:
        """Sets whose pairs fit at once."""
        return max(1, MAX_PAIRS_PER_BATCH // max(len(example.source) for example in examples) ** 2)


def distance_rows(table: Distances) -> list[Float[np.ndarray, " r"]]:
    """The rows of a table of distances, as numbers."""
    return list(
        np.array([[UNKNOWN_DISTANCE if d is None else d for d in row] for row in table], np.float32)
    )


def residue_ids(letters: str | None, count: int) -> list[int]:
    return [
        RESIDUE_IDS.get(letter, RESIDUE_IDS[UNKNOWN_RESIDUE])
        for letter in letters or UNKNOWN_RESIDUE * count
    ]


def reproducible_draws(table: Float[np.ndarray, "r r"]) -> Tensor:
    """Numbers from 0 to 1 that hang on the distances alone."""
    seed = int.from_bytes(blake2b(table.tobytes(), digest_size=7).digest())
    return torch.rand(2 * [len(table)], generator=torch.Generator().manual_seed(seed))
