"""A run that tells distances between points from other distances."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from regard.batch.batches import Batches
from regard.batch.pair import Pair
from regard.config.settings import Settings
from regard.corpora.corpus import Corpus, Record
from regard.corpora.points import distances_of
from regard.metric.fold import bounds, top_precision
from regard.tasks.distance import FEATURES, Distance, Measurer, Told, letter_numbers, rows_of
from regard.train.examples import examples
from regard.train.fold import ProteinRun
from regard.train.run import Reply
from regard.train.run import Told as Heard

LIKELY = 0.5  # a contact


class DistanceRun(ProteinRun):
    """Distances of all pairs, and which of them are contacts."""

    kept: ClassVar = {}
    counted: ClassVar = "distances"
    scored: ClassVar = "sets"
    task: Distance

    def asked(self) -> Distance:
        head = self.settings.head
        model = Measurer(self.built(features=FEATURES), head.bins, dropout=head.dropout)
        return Distance(
            model,
            bins=head.bins,
            nearest=head.nearest,
            farthest=head.farthest,
            contact=head.contact,
        )

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG003
        return {}

    def batches(self, corpus: Corpus) -> Batches:
        train = self.settings.train
        for split in set(corpus.splits) - {"train"}:  # seen to be right before any work is done
            for _ in corpus.read(split):
                pass

        def pairs(records: Iterable[Record]) -> Iterator[Pair]:
            return self.task.pairs(records, self.longest)

        return Batches(
            examples(lambda: corpus.read("train"), pairs, ["text"], self.settings, packed=False),
            tokens=train.tokens_per_batch,
            sentences=train.sentences_per_batch,
            seed=self.settings.seed,
            collate=self.task.varied,
        )

    def rate(self, records: Sequence[Record], told: Heard | None = None) -> dict[str, float | str]:
        """Mean absolute error of hidden distances, beside that of bounds; and contacts."""
        pairs = list(self.task.pairs(records, self.longest))
        if not pairs:
            raise ValueError("all sets have more points than train.longest: raise it")
        found = self.task.measured(pairs, told)
        errors, by_bounds, top, fifth = list[float](), list[float](), list[float](), list[float]()
        for pair in pairs:
            true, one = np.asarray(pair.source, np.float64), found[pair.number]
            shown = np.array(one.shown)
            hidden = np.triu((true >= 0) & ~shown, 1)
            if not hidden.any():
                continue
            errors += np.abs(np.array(one.distances) - true)[hidden].tolist()
            by_bounds += np.abs(middle_of(*bounds(true, shown)) - true)[hidden].tolist()
            likely, contact = np.array(one.contacts)[hidden], true[hidden] < self.task.contact
            for many, into in ((len(true), top), (len(true) // 5, fifth)):
                into.append(top_precision(likely.tolist(), contact.tolist(), many))
        return {
            "mae": mean(errors),
            "mae_bounds": mean(by_bounds),
            "contacts": 100 * mean(top),
            "contacts_fifth": 100 * mean(fifth),
            "distances": len(errors),
        }

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:
        """All distances of each set, as JSON; what is given is shown, null is told."""
        return [
            Reply(
                json.dumps({"distances": table}),
                {"distances": table, "contacts": contacts_of(one), "probabilities": one.contacts},
            )
            for one in self.predict(texts, place)
            for table in [[[round(d, 2) for d in row] for row in one.distances]]
        ]

    def predict(self, texts: Sequence[str], place: str = "text {}") -> list[Told]:
        pairs = list[Pair]()
        for number, text in enumerate(texts, 1):
            letters, table = distances_of(text, place.format(number))
            if len(table) > self.longest:
                raise ValueError(
                    f"{place.format(number)}: {len(table)} points, but train.longest = "
                    f"{self.longest}: give fewer"
                )
            pairs.append(Pair(number, rows_of(table), [*letter_numbers(letters, len(table)), 0]))
        found = self.task.measured(pairs, all_=True) if pairs else {}
        return [found[number] for number in range(1, len(texts) + 1)]

    def __call__(self, text: str) -> Told:
        return self.predict([text])[0]


def contacts_of(one: Told) -> list[list[int]]:
    """Pairs of points, from 1, that are likely near each other."""
    return [
        [i + 1, j + 1]
        for i, row in enumerate(one.contacts)
        for j, share in enumerate(row)
        if i < j and share > LIKELY
    ]


def middle_of(
    least: np.ndarray[Any, np.dtype[np.float64]], most: np.ndarray[Any, np.dtype[np.float64]]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Halfway between both; where there is no upper bound, the mean of those that there are."""
    finite = most[np.isfinite(most)]
    return (least + np.where(np.isfinite(most), most, finite.max(initial=0.0))) / 2


def mean(values: Sequence[float]) -> float:
    if not values:
        raise ValueError("no distance is hidden: there is nothing to average over")
    return sum(values) / len(values)
