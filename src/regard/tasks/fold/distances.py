"""Distances between points, predicted from other distances: a distogram on an encoder of pairs.

    p(bin of d_ij | visible ones)    = softmax(W (z_ij + z_ji))      Jumper et al. 2021, 1.9.8
    loss = - sum over hidden pairs i < j of log p(bin of d_ij),   d_ij is predicted as sum_b p_b c_b

c_b is the center of a bin; the last bin also holds all larger distances. Training chooses the
visible distances at random for each batch. In evaluation, the choice depends on distances alone.
b: sets   r: points   k: bins   f: features   h: heads
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.observe import named_attentions, observe
from regard.batching.batches import iterate_by_length
from regard.batching.example import padded
from regard.batching.source import BatchSource
from regard.data.corpus import Corpus, Record
from regard.data.synthetic.points import parse_distances
from regard.errors import InputError
from regard.files import JsonObject
from regard.metrics.fold import DistanceMatrix, top_precision, triangle_bounds
from regard.tasks.base import (
    BatchOptions,
    InputField,
    Metrics,
    Prediction,
    ProgressCallback,
    batches_by_length,
)
from regard.tasks.encoding import EncoderTask
from regard.tasks.fold import view
from regard.tasks.fold.distance_examples import (
    UNKNOWN_DISTANCE,
    DistanceExample,
    build_example,
    reproducible_draws,
)
from regard.tasks.fold.model import MAX_PAIRS_PER_BATCH, PairClassifier
from regard.tasks.loss import Loss
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

RADIAL_BASIS_COUNT = 16  # centers between the lowest and the highest bin edge
FEATURE_COUNT = 2 + RADIAL_BASIS_COUNT  # of a pair: 1 if it is visible, distance, radial bases
MIN_CONTACT_PROBABILITY = 0.5  # above which a pair is reported as a contact
UNLIMITED_TOKENS = 10**9  # the number of pairs limits a batch, not that of tokens


@dataclass(frozen=True)
class DistanceBatch:
    """The inputs of an encoder; `hidden` are pairs i < j that are known and not visible."""

    indices: Int[Tensor, " b"]
    inputs: dict[str, Tensor]
    distances: Float[Tensor, "b r r"]
    visible: Bool[Tensor, "b r r"]
    hidden: Bool[Tensor, "b r r"]


@dataclass(frozen=True)
class DistancePrediction(Prediction):
    """All distances of a set, the probabilities of contacts, and which distances were visible.

    `text` is JSON. Visible distances are those of the input.
    """

    distances: list[list[float]]
    contact_probabilities: list[list[float]]
    visible: list[list[bool]]

    @property
    def contacts(self) -> list[list[int]]:
        """Pairs of points, counted from 1, that are probably a contact."""
        return [
            [i + 1, j + 1]
            for i, row in enumerate(self.contact_probabilities)
            for j, probability in enumerate(row)
            if i < j and probability > MIN_CONTACT_PROBABILITY
        ]

    def as_dict(self) -> JsonObject:
        return {
            "distances": rounded(self.distances),
            "contacts": self.contacts,
            "probabilities": self.contact_probabilities,
        }


class DistanceTask(EncoderTask[DistanceExample, DistanceBatch, PairClassifier]):
    """A classifier of pairs into bins of distance; a pair below `contact_distance` is a contact."""

    name: ClassVar = "fold"
    input_fields = (InputField("text", "Points or distances, as JSON", "lines"),)
    unit: ClassVar = "distances"
    example_unit: ClassVar = "sets"

    def __init__(
        self,
        model: PairClassifier,
        *,
        bins: int,
        min_distance: float,
        max_distance: float,
        contact_distance: float,
        max_tokens: int = 128,
        label_smoothing: float = 0.0,
    ):
        super().__init__(model, max_tokens=max_tokens, label_smoothing=label_smoothing)
        self.max_distance, self.contact_distance = max_distance, contact_distance
        self.bin_edges = torch.linspace(min_distance, max_distance, bins + 1)
        self.bin_centers = (self.bin_edges[1:] + self.bin_edges[:-1]) / 2

    # --- training

    def examples(self, records: Iterable[Record]) -> Iterator[DistanceExample]:
        """Yield tables of distances; sets of more than `max_tokens` points are left out."""
        for index, record in enumerate(records):
            example = build_example(index, record)
            if len(example.residues) <= self.max_tokens:
                yield example

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[DistanceBatch]:
        """Check the other splits; return batches of sets of about equal size."""
        for split in corpus.splits:
            if split != "train":
                for _ in corpus.read(split):
                    pass
        return batches_by_length(self, corpus, options, collate=self.collate_for_training)

    def collate(self, examples: Sequence[DistanceExample]) -> DistanceBatch:
        """Return a batch whose visible distances are the same in every call."""
        return self.build_batch(examples, [reproducible_draws(e.distances) for e in examples])

    def collate_for_training(self, examples: Sequence[DistanceExample]) -> DistanceBatch:
        """Return a batch whose visible distances are chosen at random."""
        return self.build_batch(examples, [torch.rand(2 * [len(e.residues)]) for e in examples])

    def build_batch(
        self, examples: Sequence[DistanceExample], draws: Sequence[Tensor]
    ) -> DistanceBatch:
        """Return a batch in which a pair is visible if its draw is below the visible fraction."""
        ids, valid = padded([example.residues for example in examples])
        size = ids.shape[1]
        distances = torch.full((len(examples), size, size), UNKNOWN_DISTANCE)
        visible = torch.zeros_like(distances, dtype=torch.bool)
        for row, (example, draw) in enumerate(zip(examples, draws, strict=True)):
            count = len(example.residues)
            distances[row, :count, :count] = torch.from_numpy(example.distances)
            if example.visible_fraction is None:
                visible[row] = True
                continue
            chosen = (draw < example.visible_fraction).triu(1)
            visible[row, :count, :count] = chosen | chosen.mT
        known = distances >= 0
        visible = visible & known | torch.eye(size, dtype=torch.bool) & valid[:, None]
        features = self.features(distances) * visible[..., None]
        return DistanceBatch(
            torch.tensor([example.index for example in examples]),
            {"ids": ids[:, None], "valid": valid, "pair_features": features},
            distances,
            visible,
            (known & ~visible).triu(1),
        )

    def features(self, distances: Float[Tensor, "b r r"]) -> Float[Tensor, "b r r f"]:
        """1, d, and exp(-((d - c) / w)^2) for centers c that are w apart.

        A linear function of d alone is monotonic, and learning is far slower: for six points on a
        line, the error after 150 steps is 2.1 instead of 1.2.
        """
        centers = torch.linspace(float(self.bin_edges[0]), self.max_distance, RADIAL_BASIS_COUNT)
        closeness = (-((distances[..., None] - centers) / (centers[1] - centers[0])).square()).exp()
        linear = torch.stack([torch.ones_like(distances), distances / self.max_distance], -1)
        return torch.cat([linear, closeness], -1)

    def cross_entropy(self, batch: DistanceBatch, smoothing: float = 0.0) -> Loss:
        """Return the loss of the hidden distances."""
        logits = self.model(batch.inputs)[batch.hidden]
        targets = self.bin_indices(batch.distances[batch.hidden])
        total = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
        return Loss(total, max(1, len(targets)))

    def bin_indices(self, distances: Float[Tensor, " n"]) -> Int[Tensor, " n"]:
        """Return the bin of each distance."""
        return torch.bucketize(distances, self.bin_edges[1:-1].to(distances.device))

    def iterate_by_length(self, examples: Sequence[DistanceExample]) -> Iterator[DistanceBatch]:
        """Yield every example once, in batches of a limited number of pairs."""
        if not examples:
            return iter(())
        max_pairs = max(len(example.residues) for example in examples) ** 2
        return iterate_by_length(
            examples,
            tokens_per_batch=UNLIMITED_TOKENS,
            examples_per_batch=max(1, MAX_PAIRS_PER_BATCH // max_pairs),
            collate=self.collate,
            device=self.device,
        )

    # --- inference

    def parse(self, line: str, location: str) -> Record:
        """Convert JSON with points or distances to a record; null distances are predicted."""
        _, table = parse_distances(line, location)
        self.check_size(len(table), location)
        return {"text": line}

    def check_size(self, count: int, location: str) -> None:
        if count > self.max_tokens:
            raise InputError(
                f"{location}: {count} points, but train.max_tokens = {self.max_tokens}; give fewer"
            )

    @torch.no_grad()
    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[DistancePrediction]:
        """Return all distances of each set.

        A record of a corpus has a `visible_fraction`, and the other distances are hidden from the
        model. Without it, all known distances are visible.
        """
        self.model.eval()
        examples = [build_example(index, record) for index, record in enumerate(records)]
        for number, example in enumerate(examples, 1):
            self.check_size(len(example.residues), f"record {number}")
        predictions: dict[int, DistancePrediction] = {}
        for batch in self.iterate_by_length(examples):
            distances, contacts = self.predicted_tables(batch)
            for row, index in enumerate(batch.indices.tolist()):
                count = int(batch.inputs["valid"][row].sum())
                predictions[index] = to_prediction(
                    *(t[row, :count, :count].tolist() for t in (distances, contacts, batch.visible))
                )
            if on_progress is not None:
                on_progress(len(batch.indices))
        return [predictions[index] for index in range(len(records))]

    def predicted_tables(
        self, batch: DistanceBatch
    ) -> tuple[Float[Tensor, "b r r"], Float[Tensor, "b r r"]]:
        """Return distances and probabilities of contacts; visible pairs keep those of the input."""
        probabilities = self.model(batch.inputs).softmax(-1)
        centers = self.bin_centers.to(probabilities.device)
        contact_bins = (centers < self.contact_distance).float()
        distances = torch.where(batch.visible, batch.distances, probabilities @ centers)
        distances.diagonal(dim1=1, dim2=2).zero_()
        visible_contacts = (batch.distances < self.contact_distance).float()
        return distances, torch.where(batch.visible, visible_contacts, probabilities @ contact_bins)

    def metrics(self, records: Sequence[Record], predictions: Sequence[Prediction]) -> Metrics:
        """Return the mean absolute error of hidden distances, beside that of triangle bounds.

        `contacts` is the precision of the L likeliest contacts, for L points, and `contacts_fifth`
        that of the L / 5 likeliest.
        """
        errors, bound_errors = list[float](), list[float]()
        precisions, fifth_precisions = list[float](), list[float]()
        for record, item in zip(records, predictions, strict=True):
            prediction = cast("DistancePrediction", item)
            true_distances = build_example(0, record).distances.astype(np.float64)
            visible = np.array(prediction.visible)
            hidden = np.triu((true_distances >= 0) & ~visible, 1)
            if not hidden.any():
                continue
            targets = true_distances[hidden]
            bounds = bound_midpoints(*triangle_bounds(true_distances, visible))
            errors += np.abs(np.array(prediction.distances)[hidden] - targets).tolist()
            bound_errors += np.abs(bounds[hidden] - targets).tolist()
            probabilities = np.array(prediction.contact_probabilities)[hidden].tolist()
            is_contact, count = (targets < self.contact_distance).tolist(), len(true_distances)
            precisions.append(top_precision(probabilities, is_contact, count))
            fifth_precisions.append(top_precision(probabilities, is_contact, count // 5))
        return {
            "mae": mean(errors),
            "mae_bounds": mean(bound_errors),
            "contacts": 100 * mean(precisions),
            "contacts_fifth": 100 * mean(fifth_precisions),
            "distances": len(errors),
        }

    def score(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> Metrics:
        """Return the metrics of the sets of at most `max_tokens` points; count all sets."""
        metrics = super().score(self.small_sets(records), on_progress=on_progress)
        return {**metrics, self.example_unit: len(records)}

    def validation_metric(self, name: str, records: Sequence[Record]) -> float:
        return super().validation_metric(name, self.small_sets(records))

    def small_sets(self, records: Sequence[Record]) -> list[Record]:
        """Return the records of at most `max_tokens` points."""
        small = [records[example.index] for example in self.examples(records)]
        if records and not small:
            raise InputError("all sets have more points than train.max_tokens; raise it")
        return small

    # --- inspection

    def attention_names(self) -> tuple[str, ...]:
        """Return the names of the attentions among pairs, if there are any."""
        return tuple(name for name in named_attentions(self.model) if ".edges." in name)

    def has_attention(self) -> bool:
        return bool(self.attention_names())

    @torch.no_grad()
    def attention_weights(self, record: Record) -> dict[str, Float[Tensor, "h r r"]]:
        """Return the attention of edges (i, j) to edges (i, k), averaged over i, by layer."""
        names = self.attention_names()
        if not names:
            raise InputError("model has no attention among pairs; set model.triangles = 'both'")
        with observe(self.model.eval(), names) as recorded:
            self.model(self.to_device(self.collate([build_example(0, record)]).inputs))
        return {name: w[0].mean(0) for name, w in recorded.joined().items()}

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:  # noqa: ARG002
        return view.distance_map(self, record)

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,  # noqa: ARG002
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        return view.render_distances(self, record, surface)


def to_prediction(
    distances: list[list[float]], contacts: list[list[float]], visible: list[list[bool]]
) -> DistancePrediction:
    """Return a prediction whose text is its distances as JSON."""
    text = json.dumps({"distances": rounded(distances)})
    return DistancePrediction(text, distances, contacts, visible)


def rounded(table: Sequence[Sequence[float]]) -> list[list[float]]:
    return [[round(distance, 2) for distance in row] for row in table]


def bound_midpoints(lower: DistanceMatrix, upper: DistanceMatrix) -> DistanceMatrix:
    """Return the middle of two bounds; the largest finite upper bound replaces infinite ones."""
    finite = upper[np.isfinite(upper)]
    return (lower + np.where(np.isfinite(upper), upper, finite.max(initial=0.0))) / 2


def mean(values: Sequence[float]) -> float:
    if not values:
        raise InputError(
            "no distance is hidden: there is no error to average; lower visible_fraction"
        )
    return sum(values) / len(values)
