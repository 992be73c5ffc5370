"""A run that is shown a few examples of classes it has never met, and tells one of them."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from regard.batching.indexed import IndexedBatches
from regard.config.fewshot import ClassesDataConfig, PublicClassesDataConfig
from regard.config.settings import FewshotSettings, Settings
from regard.data.build import build_corpus as build_corpus
from regard.data.corpus import Corpus, Record
from regard.data.formats.class_folders import find_image_classes
from regard.data.formats.images import ImageReader
from regard.data.synthetic.episodes import EpisodeCorpus, Prototypes
from regard.layers.pictures import PictureEncoder
from regard.metrics.classification import SuccessRate, success_rate
from regard.models.catalogue import build_model as build_model
from regard.models.catalogue import model_settings
from regard.tasks.fewshot import (
    EpisodeClassifier,
    FewshotBatch,
    FewshotPrediction,
    FewshotTask,
    nearest_class,
)
from regard.tasks.loss import Loss
from regard.train.run import Prediction, ProgressCallback, Run

PICTURE_INPUT_FORMAT = (
    "a folder with a folder of pictures for each class, a tab, and the picture to be told"
)
POINT_INPUT_EXAMPLE = '{"support": {"a": [[0.1, …]], …}, "query": [0.2, …]}'


class FewshotRun(Run):
    """The share of episodes whose query was told right, by classes that were never trained on."""

    vocabulary_loaders: ClassVar = {}
    unit: ClassVar = "queries"
    settings: FewshotSettings
    task: FewshotTask

    def build_task(self) -> FewshotTask:
        data, model, embed = self.settings.data, self.settings.model, self.settings.embed
        picture_encoder, width = None, 0
        if data.kind == "prototypes":
            width = data.dim
        else:
            width, hidden = embed.dim, embed.hidden_dim
            picture_encoder = PictureEncoder(
                data.channels, width, layers=embed.layers, hidden_dim=hidden
            )
        options = model.model_dump(exclude={"kind"})
        sizes = {"source_size": width + data.ways, "target_size": data.ways}
        if "steps" in model_settings(model.kind):
            sizes["steps"] = data.ways * data.shots + 1
        learner = build_model(model.kind, {**options, **sizes})
        return FewshotTask(EpisodeClassifier(picture_encoder, learner, data.ways))

    @classmethod
    def build_vocabularies(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG003
        """Classes have no names: each episode has its own."""
        return {}

    def batches(self, corpus: Corpus) -> IndexedBatches:
        if not isinstance(corpus, EpisodeCorpus):
            raise TypeError(f"{type(corpus).__name__} has no episodes")
        train, seed = self.settings.train, self.settings.seed

        def build_batch(index: int) -> FewshotBatch:
            examples_per_batch = train.examples_per_batch or 1
            return self.task.collate(
                corpus.sample_batch(
                    seed, index, examples_per_batch, train.queries, train.vary_shots
                )
            )

        build_batch(0)  # what is wrong with the data is told now
        return IndexedBatches(build_batch)

    def loss(self, batch: FewshotBatch, steps_done: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.task.loss(batch, self.settings.train.label_smoothing)

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.negative_log_likelihood(list(records))

    def validation_metric(self, metric: str, records: Sequence[Record]) -> float:  # noqa: ARG002 - accuracy
        return 100 * self.accuracy(records).value

    def accuracy(
        self, records: Sequence[Record], on_progress: ProgressCallback | None = None
    ) -> SuccessRate:
        pairs = zip(self.task.predict(records, on_progress), records, strict=True)
        return success_rate([guess.label == record["wanted"] for guess, record in pairs])

    def score(
        self, records: Iterable[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        """Accuracy with its 95 % interval over episodes, beside the nearest mean's."""
        record_list = list(records)
        value, half_width = self.accuracy(record_list, on_progress)
        metrics: dict[str, float | str] = {
            "accuracy": 100 * value,
            "accuracy_signature": self.signature(),
            "within": 100 * half_width,
            "nearest": 100
            * success_rate(
                [nearest_class(record) == record["wanted"] for record in record_list]
            ).value,
        }
        corpus = build_corpus(self.settings.data)
        if isinstance(corpus, Prototypes):
            optimal_hits = [corpus.best_class(record) == record["wanted"] for record in record_list]
            metrics["optimal"] = 100 * success_rate(optimal_hits).value
        loss = self.task.negative_log_likelihood(record_list)
        return {**metrics, "loss": loss.total.item() / loss.count, "episodes": len(record_list)}

    def signature(self) -> str:
        data = self.settings.data
        conditions = f"ways:{data.ways}|shots:{data.shots}|queries:1|classes:unseen"
        return f"accuracy|{conditions}|interval:95,episodes|v:1"

    def predict(self, records: Sequence[Record]) -> list[FewshotPrediction]:
        """What the last example of each is taken for."""
        return [self.task.predict([record])[0] for record in records]

    def __call__(self, record: Record) -> FewshotPrediction:
        return self.predict([record])[0]

    def predict_lines(
        self, lines: Sequence[str], location_format: str = "text {}"
    ) -> list[Prediction]:
        """The class by its name, as it stands in the support."""
        predictions = list[Prediction]()
        for number, text in enumerate(lines, 1):
            record = self.parse_record(text, location_format.format(number))
            [guess] = self.task.predict([record])
            names = record["classes"]
            probabilities = dict(zip(names, guess.probabilities, strict=True))
            data = {"input": text, "label": names[guess.label], "probabilities": probabilities}
            predictions.append(Prediction(names[guess.label], data))
        return predictions

    def parse_record(self, text: str, location: str) -> Record:
        """A record with the `classes` and the `names` of what is shown in it."""
        data = self.settings.data
        if data.kind == "prototypes":
            support, query = parse_points(text, location, data.dim)
        else:
            support, query = self.parse_pictures(text, location, data)
        if len(support) != data.ways:
            problem = f"{len(support)} classes in the support"
            raise ValueError(f"{location}: {problem}, but the run tells {data.ways} apart")
        shot_counts = {len(class_examples) for class_examples in support.values()}
        if len(shot_counts) > 1 or not 1 <= max(shot_counts) <= data.shots:
            expected = f"1 to {data.shots}" if data.shots > 1 else "1"
            raise ValueError(
                f"{location}: give {expected} examples of each class, equally many of all"
            )
        shots, classes = max(shot_counts), list(support)
        order = [(way, shot) for shot in range(shots) for way in range(len(classes))]
        support_items = [support[classes[way]][shot] for way, shot in order]
        return {
            "shown": np.stack([*(item for _, item in support_items), query]),
            "labels": np.array([way for way, _ in order]),
            "wanted": 0,
            "classes": classes,
            "names": [
                f"{classes[way]}: {support_items[index][0]}" for index, (way, _) in enumerate(order)
            ],
        }

    def parse_pictures(
        self, text: str, location: str, data: ClassesDataConfig | PublicClassesDataConfig
    ) -> tuple[dict[str, list[tuple[str, Any]]], Any]:
        folder, separator, query = text.partition("\t")
        if not separator:
            folder, _, query = text.strip().rpartition(" ")
        if not folder.strip() or not query.strip():
            raise ValueError(f"{location}: it must be {PICTURE_INPUT_FORMAT}")
        reader = ImageReader(data.image_size, data.channels)
        try:
            support = {
                name: [
                    (Path(path).name, reader.decode(read_bytes(), path))
                    for path, read_bytes in files
                ]
                for name, files in find_image_classes(Path(folder.strip())).items()
            }
            return support, reader(query.strip())
        except ValueError as error:
            raise ValueError(f"{location}: {error}") from None


def parse_points(
    text: str, location: str, dim: int
) -> tuple[dict[str, list[tuple[str, Any]]], Any]:
    """JSON, with numbers for each example."""
    try:
        data = json.loads(text)
        support = {
            str(name): [
                (str(index), np.array(point, np.float32))
                for index, point in enumerate(class_points, 1)
            ]
            for name, class_points in data["support"].items()
        }
        query = np.array(data["query"], np.float32)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError(f"{location}: it must be JSON such as {POINT_INPUT_EXAMPLE}") from None
    for point in [
        query,
        *(point for class_points in support.values() for _, point in class_points),
    ]:
        if point.shape != (dim,):
            raise ValueError(f"{location}: a point has {dim} numbers here, not {point.size}")
    return support, query
