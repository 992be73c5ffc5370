"""A run that tells what is in a picture: one of the classes of its data."""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import safetensors.torch

from regard.batch.batches import Batches, Stored
from regard.batch.pictures import Pictures
from regard.config.image import check_patches
from regard.config.load import load as load_settings
from regard.config.settings import ImageSettings, Settings
from regard.corpora.corpus import Corpus, Record, place
from regard.corpora.pictures import Picture, Reader
from regard.encode.lora import add_lora
from regard.encode.picture import regrid
from regard.metric.classes import accuracy, macro_f1
from regard.models.catalogue import build as build_model
from regard.tasks.classify import Judge, Verdict
from regard.tasks.image import Image
from regard.tasks.loss import Loss
from regard.text.labels import Labels
from regard.train.base import INNER, taken_over
from regard.train.headed import HeadedRun
from regard.train.run import CONFIG, WEIGHTS, Reply, Told, check_files

IN_MEMORY = 1 << 30  # bytes of pixels that are kept; pictures beyond are read anew each time
POSITIONS = "position.weight"


class ImageRun(HeadedRun):
    """Pictures of clothes, of animals, of shapes: any label."""

    kept: ClassVar = {"labels": Labels.load}
    counted: ClassVar = "pictures"
    scored: ClassVar = "pictures"
    marks: ClassVar = 0
    settings: ImageSettings
    task: Image

    def asked(self) -> Image:
        labels, head, start = self.vocabularies["labels"], self.settings.head, self.settings.start
        reading, model = self.settings.picture, self.settings.model
        wanted = model.model_dump(exclude={"kind"})
        sizes = {"size": reading.size, "channels": reading.channels}
        encoder = build_model(model.kind, {**wanted, **sizes})
        judge = Judge(
            encoder,
            labels.size,
            pooling=head.pooling,
            hidden_dim=head.hidden_dim,
            dropout=head.dropout,
            frozen=start.freeze,
        )
        if start.lora:
            add_lora(encoder, start.lora)
        reader = Reader(reading.size, reading.channels, reading.fit)
        return Image(judge, Pictures(reader, reading.mean, reading.std), labels)

    @classmethod
    def settled(cls, settings: Any) -> Any:
        """With the model of the run that it starts from, and its way of reading."""
        start, own = settings.start.run, settings.picture
        if start is None:
            return settings
        base = base_of(start)
        given = {name: getattr(own, name) for name in own.model_fields_set}
        reading = base.picture.model_copy(update=given)
        if reading.channels != base.picture.channels:
            raise ValueError(
                f"picture.channels = {reading.channels}, but {start} has read pictures of "
                f"{base.picture.channels}: leave it out"
            )
        check_patches(reading.size, base.model.patch)
        return settings.model_copy(update={"model": base.model, "picture": reading})

    def inherit(self) -> None:
        """The encoder of the run that it starts from, its positions brought to this size."""
        if (start := self.settings.start.run) is None:
            return
        found = safetensors.torch.load_file(Path(start) / WEIGHTS)
        weights = {n[len(INNER) :]: w for n, w in found.items() if n.startswith(INNER)}
        encoder = self.task.model.encoder
        grids = [encoder.grid(*size) for size in (base_of(start).picture.size, encoder.size)]
        weights[POSITIONS] = regrid(weights[POSITIONS], grids[0], grids[1])
        taken_over(encoder, weights, Path(start) / WEIGHTS)

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG003
        return {"labels": Labels.learn(record["label"] for record in corpus.read("train"))}

    def batches(self, corpus: Corpus) -> Batches:
        """The labels of dev and test are looked at first, then all pictures, if they are kept."""
        train, labels = self.settings.train, self.task.labels
        for split in set(corpus.splits) - {"train"}:
            for number, record in enumerate(corpus.read(split)):
                if record["label"] not in labels.numbers:
                    labels.number(record["label"], place(corpus, split, number))
        count = sum(1 for _ in corpus.read("train"))
        each = math.prod(self.settings.picture.size) * self.settings.picture.channels
        pairs = list(self.task.pairs(corpus.read("train"), read=count * each <= IN_MEMORY))
        return Batches(
            Stored(pairs, self.settings.seed),
            sentences=train.sentences_per_batch,
            seed=self.settings.seed,
            collate=partial(self.task.varied, crop=train.crop, flip=train.flip),
        )

    def likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.likelihood(list(self.task.pairs(records, read=False)))

    def rate(self, records: Sequence[Record], told: Told | None = None) -> dict[str, float | str]:
        """Accuracy and macro F1."""
        said = [one.label for one in self.predict([r["picture"] for r in records], told)]
        true = [record["label"] for record in records]
        return {
            "accuracy": 100 * accuracy(said, true),
            "accuracy_signature": self.signature(),
            "f1": 100 * macro_f1(said, true),
        }

    def signature(self) -> str:
        """What else than the model a share of right answers hangs on."""
        height, width = self.settings.picture.size
        of = f"classes:{self.task.labels.size}|top:1|crops:1"
        return f"accuracy|{of}|size:{height}x{width}|fit:{self.settings.picture.fit}|v:1"

    def predict(
        self,
        pictures: Sequence[Picture],
        told: Told | None = None,
        places: Sequence[str] | None = None,
    ) -> list[Verdict]:
        """What each picture (a path or an array) is taken for."""
        return self.task.verdicts(pictures, places, told)

    def __call__(self, picture: Picture) -> Verdict:
        return self.predict([picture])[0]

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:
        """Texts are paths; one label for each."""
        places = [f"{place.format(n)}: {text}" for n, text in enumerate(texts, 1)]
        for text, where in zip(texts, places, strict=True):
            if not Path(text).is_file():
                raise ValueError(f"{where}: there is no such picture; a line is the path of one")
        return [
            Reply(
                one.label,
                {"picture": text, "label": one.label, "probabilities": one.probabilities},
            )
            for text, one in zip(texts, self.predict(texts, places=places), strict=True)
        ]


def base_of(folder: Path | str) -> ImageSettings:
    """The settings of a run whose encoder others can start from."""
    check_files(Path(folder), (CONFIG, WEIGHTS))
    base = load_settings(Path(folder) / CONFIG)
    if not isinstance(base, ImageSettings):
        raise ValueError(f"{folder}: holds a run of task {base.task!r}, which reads no pictures")
    return base
