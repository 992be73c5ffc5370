"""A run that is shown a few examples of classes it has never met, and tells one of them."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from regard.batch.numbered import Numbered
from regard.config.fewshot import ClassesData, NamedClasses
from regard.config.settings import FewshotSettings, Settings
from regard.corpora.build import build as build_corpus
from regard.corpora.corpus import Corpus, Record
from regard.corpora.episodes import Episodes, Prototypes
from regard.corpora.gallery import classes_of
from regard.corpora.pictures import Reader
from regard.encode.picture import Picture
from regard.metric.classes import Share, share_right
from regard.models.catalogue import build as build_model
from regard.models.catalogue import settings_of
from regard.tasks.fewshot import Asked, Fewshot, Guess, Recogniser, nearest
from regard.tasks.loss import Loss
from regard.train.run import Reply, Run, Told

FORM = "a folder with a folder of pictures for each class, a tab, and the picture to be told"
POINTS = '{"support": {"a": [[0.1, …]], …}, "query": [0.2, …]}'


class FewshotRun(Run):
    """The share of episodes whose query was told right, by classes that were never trained on."""

    kept: ClassVar = {}
    counted: ClassVar = "queries"
    settings: FewshotSettings
    task: Fewshot

    def asked(self) -> Fewshot:
        data, model, embed = self.settings.data, self.settings.model, self.settings.embed
        eye, width = None, 0
        if data.kind == "prototypes":
            width = data.dim
        else:
            width, hidden = embed.dim, embed.hidden_dim
            eye = Picture(data.channels, width, layers=embed.layers, hidden_dim=hidden)
        wanted = model.model_dump(exclude={"kind"})
        sizes = {"source_size": width + data.ways, "target_size": data.ways}
        if "steps" in settings_of(model.kind):
            sizes["steps"] = data.ways * data.shots + 1
        learner = build_model(model.kind, {**wanted, **sizes})
        return Fewshot(Recogniser(eye, learner, data.ways))

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG003
        """Classes have no names: each episode has its own."""
        return {}

    def batches(self, corpus: Corpus) -> Numbered:
        if not isinstance(corpus, Episodes):
            raise TypeError(f"{type(corpus).__name__} has no episodes")
        train, seed = self.settings.train, self.settings.seed

        def made(number: int) -> Asked:
            many = train.sentences_per_batch or 1
            return self.task.collate(corpus.batch(seed, number, many, train.queries, train.varied))

        made(0)  # what is wrong with the data is told now
        return Numbered(made)

    def loss(self, batch: Asked, done: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.task.loss(batch, self.settings.train.label_smoothing)

    def likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.likelihood(list(records))

    def measured(self, metric: str, records: Sequence[Record]) -> float:  # noqa: ARG002 - accuracy
        return 100 * self.right(records).value

    def right(self, records: Sequence[Record], told: Told | None = None) -> Share:
        found = zip(self.task.guesses(records, told), records, strict=True)
        return share_right([guess.label == record["wanted"] for guess, record in found])

    def score(self, records: Iterable[Record], told: Told | None = None) -> dict[str, float | str]:
        """Accuracy with its 95 % interval over episodes, beside the nearest mean's."""
        held = list(records)
        value, within = self.right(held, told)
        found: dict[str, float | str] = {
            "accuracy": 100 * value,
            "accuracy_signature": self.signature(),
            "within": 100 * within,
            "nearest": 100 * share_right([nearest(one) == one["wanted"] for one in held]).value,
        }
        corpus = build_corpus(self.settings.data)
        if isinstance(corpus, Prototypes):
            best = [corpus.best(one) == one["wanted"] for one in held]
            found["optimal"] = 100 * share_right(best).value
        loss = self.task.likelihood(held)
        return {**found, "loss": loss.total.item() / loss.tokens, "episodes": len(held)}

    def signature(self) -> str:
        data = self.settings.data
        of = f"ways:{data.ways}|shots:{data.shots}|queries:1|classes:unseen"
        return f"accuracy|{of}|interval:95,episodes|v:1"

    def predict(self, records: Sequence[Record]) -> list[Guess]:
        """What the last example of each is taken for."""
        return [self.task.guesses([record])[0] for record in records]

    def __call__(self, record: Record) -> Guess:
        return self.predict([record])[0]

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:
        """The class by its name, as it stands in the support."""
        found = list[Reply]()
        for number, text in enumerate(texts, 1):
            record = self.read(text, place.format(number))
            [guess] = self.task.guesses([record])
            names = record["classes"]
            shares = dict(zip(names, guess.probabilities, strict=True))
            facts = {"input": text, "label": names[guess.label], "probabilities": shares}
            found.append(Reply(names[guess.label], facts))
        return found

    def read(self, text: str, place: str) -> Record:
        """A record with the `classes` and the `names` of what is shown in it."""
        data = self.settings.data
        if data.kind == "prototypes":
            support, query = points(text, place, data.dim)
        else:
            support, query = self.pictures(text, place, data)
        if len(support) != data.ways:
            has = f"{len(support)} classes in the support"
            raise ValueError(f"{place}: {has}, but the run tells {data.ways} apart")
        each = {len(some) for some in support.values()}
        if len(each) > 1 or not 1 <= max(each) <= data.shots:
            most = f"1 to {data.shots}" if data.shots > 1 else "1"
            raise ValueError(f"{place}: give {most} examples of each class, equally many of all")
        shots, classes = max(each), list(support)
        turns = [(way, shot) for shot in range(shots) for way in range(len(classes))]
        shown = [support[classes[way]][shot] for way, shot in turns]
        return {
            "shown": np.stack([*(one for _, one in shown), query]),
            "labels": np.array([way for way, _ in turns]),
            "wanted": 0,
            "classes": classes,
            "names": [f"{classes[way]}: {shown[n][0]}" for n, (way, _) in enumerate(turns)],
        }

    def pictures(
        self, text: str, place: str, data: ClassesData | NamedClasses
    ) -> tuple[dict[str, list[tuple[str, Any]]], Any]:
        folder, tab, query = text.partition("\t")
        if not tab:
            folder, _, query = text.strip().rpartition(" ")
        if not folder.strip() or not query.strip():
            raise ValueError(f"{place}: it must be {FORM}")
        reader = Reader(data.size, data.channels)
        try:
            support = {
                name: [(Path(where).name, reader.decoded(read(), where)) for where, read in some]
                for name, some in classes_of(Path(folder.strip())).items()
            }
            return support, reader(query.strip())
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None


def points(text: str, place: str, dim: int) -> tuple[dict[str, list[tuple[str, Any]]], Any]:
    """JSON, with numbers for each example."""
    try:
        given = json.loads(text)
        support = {
            str(name): [(str(n), np.array(one, np.float32)) for n, one in enumerate(some, 1)]
            for name, some in given["support"].items()
        }
        query = np.array(given["query"], np.float32)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError(f"{place}: it must be JSON such as {POINTS}") from None
    for one in [query, *(one for some in support.values() for _, one in some)]:
        if one.shape != (dim,):
            raise ValueError(f"{place}: a point has {dim} numbers here, not {one.size}")
    return support, query
