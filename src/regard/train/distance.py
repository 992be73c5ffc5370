"""A run that tells distances between points from other distances."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from regard.batching.batches import Batches
from regard.batching.example import Example
from regard.config.settings import Settings
from regard.data.corpus import Corpus, Record
from regard.data.synthetic.points import parse_distances
from regard.metrics.fold import top_precision, triangle_bounds
from regard.tasks.distance import (
    FEATURE_COUNT,
    DistanceHead,
    DistancePrediction,
    DistanceTask,
    distance_rows,
    residue_ids,
)
from regard.train.fold import ProteinRun
from regard.train.run import Prediction
from regard.train.run import ProgressCallback as Heard
from regard.training.examples import build_examples

MIN_CONTACT_PROBABILITY = 0.5  # a contact


class DistanceRun(ProteinRun):
    """Distances of all pairs, and which of them are contacts."""

    vocabulary_loaders: ClassVar = {}
    unit: ClassVar = "distances"
    example_unit: ClassVar = "sets"
    task: DistanceTask

    def build_task(self) -> DistanceTask:
        head = self.settings.head
        model = DistanceHead(
            self.build_protein_encoder(features=FEATURE_COUNT), head.bins, dropout=head.dropout
        )
        return DistanceTask(
            model,
            bins=head.bins,
            min_distance=head.min_distance,
            max_distance=head.max_distance,
            contact_distance=head.contact_distance,
        )

    @classmethod
    def build_vocabularies(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG003
        return {}

    def batches(self, corpus: Corpus) -> Batches:
        train = self.settings.train
        for split in set(corpus.splits) - {"train"}:  # seen to be right before any work is done
            for _ in corpus.read(split):
                pass

        def to_examples(records: Iterable[Record]) -> Iterator[Example]:
            return self.task.examples(records, self.max_tokens)

        return Batches(
            build_examples(
                lambda: corpus.read("train"), to_examples, ["text"], self.settings, packed=False
            ),
            tokens_per_batch=train.tokens_per_batch,
            examples_per_batch=train.examples_per_batch,
            seed=self.settings.seed,
            collate=self.task.collate_for_training,
        )

    def metrics(
        self, records: Sequence[Record], on_progress: Heard | None = None
    ) -> dict[str, float | str]:
        """Mean absolute error of hidden distances, beside that of bounds; and contacts."""
        examples = list(self.task.examples(records, self.max_tokens))
        if not examples:
            raise ValueError("all sets have more points than train.max_tokens: raise it")
        predictions = self.task.predict(examples, on_progress)
        errors, bound_errors, top_precisions, top_fifth_precisions = (
            list[float](),
            list[float](),
            list[float](),
            list[float](),
        )
        for example in examples:
            true_distances, prediction = (
                np.asarray(example.source, np.float64),
                predictions[example.index],
            )
            given_mask = np.array(prediction.shown)
            hidden_mask = np.triu((true_distances >= 0) & ~given_mask, 1)
            if not hidden_mask.any():
                continue
            errors += np.abs(np.array(prediction.distances) - true_distances)[hidden_mask].tolist()
            bound_errors += np.abs(
                bound_midpoints(*triangle_bounds(true_distances, given_mask)) - true_distances
            )[hidden_mask].tolist()
            contact_probabilities, is_contact = (
                np.array(prediction.contacts)[hidden_mask],
                true_distances[hidden_mask] < self.task.contact_distance,
            )
            for count, precisions in (
                (len(true_distances), top_precisions),
                (len(true_distances) // 5, top_fifth_precisions),
            ):
                precisions.append(
                    top_precision(contact_probabilities.tolist(), is_contact.tolist(), count)
                )
        return {
            "mae": mean(errors),
            "mae_bounds": mean(bound_errors),
            "contacts": 100 * mean(top_precisions),
            "contacts_fifth": 100 * mean(top_fifth_precisions),
            "distances": len(errors),
        }

    def predict_lines(
        self, lines: Sequence[str], location_format: str = "text {}"
    ) -> list[Prediction]:
        """All distances of each set, as JSON; what is given is shown, null is told."""
        return [
            Prediction(
                json.dumps({"distances": table}),
                {
                    "distances": table,
                    "contacts": likely_contacts(prediction),
                    "probabilities": prediction.contacts,
                },
            )
            for prediction in self.predict(lines, location_format)
            for table in [[[round(d, 2) for d in row] for row in prediction.distances]]
        ]

    def predict(
        self, texts: Sequence[str], location_format: str = "text {}"
    ) -> list[DistancePrediction]:
        examples = list[Example]()
        for number, text in enumerate(texts, 1):
            letters, table = parse_distances(text, location_format.format(number))
            if len(table) > self.max_tokens:
                raise ValueError(
                    f"{location_format.format(number)}: {len(table)} points, but "
                    "train.max_tokens = "
                    f"{self.max_tokens}: give fewer"
                )
            examples.append(
                Example(number, distance_rows(table), [*residue_ids(letters, len(table)), 0])
            )
        predictions = self.task.predict(examples, show_all=True) if examples else {}
        return [predictions[number] for number in range(1, len(texts) + 1)]

    def __call__(self, text: str) -> DistancePrediction:
        return self.predict([text])[0]


def likely_contacts(prediction: DistancePrediction) -> list[list[int]]:
    """Pairs of points, from 1, that are likely near each other."""
    return [
        [i + 1, j + 1]
        for i, row in enumerate(prediction.contacts)
        for j, probability in enumerate(row)
        if i < j and probability > MIN_CONTACT_PROBABILITY
    ]


def bound_midpoints(
    lower: np.ndarray[Any, np.dtype[np.float64]], upper: np.ndarray[Any, np.dtype[np.float64]]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Halfway between both; where there is no upper bound, the mean of those that there are."""
    finite = upper[np.isfinite(upper)]
    return (lower + np.where(np.isfinite(upper), upper, finite.max(initial=0.0))) / 2


def mean(values: Sequence[float]) -> float:
    if not values:
        raise ValueError("no distance is hidden: there is nothing to average over")
    return sum(values) / len(values)
