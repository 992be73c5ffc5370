"""A run that says what is in a picture: its words are those of the captions that it learnt from."""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from regard.batch.batches import Batches, Stored
from regard.batch.pair import Pair
from regard.batch.pictures import Pictures
from regard.config.decode import Decode
from regard.config.settings import CaptionSettings, Settings
from regard.corpora.captions import captions_of
from regard.corpora.corpus import Corpus, Record
from regard.corpora.pictures import Picture, Reader, size_of
from regard.metric.caption import Box, bleus, cider, pointing
from regard.metric.language import perplexity
from regard.metric.translation import exact_match
from regard.models.catalogue import build as build_model
from regard.tasks.caption import Captioned, Captioner
from regard.tasks.loss import Loss
from regard.tasks.translate import Translation
from regard.text.tokeniser import Tokeniser
from regard.train.run import LEARNT, Reply, Run, Told, first, learnt
from regard.train.search import rules_of, search_of

IN_MEMORY = 1 << 30  # bytes of pixels that are kept; pictures beyond are read anew each time


class CaptionRun(Run):
    """A picture into a sentence on it."""

    kept: ClassVar = {"text": Tokeniser.load}
    settings: CaptionSettings
    task: Captioner

    def asked(self) -> Captioner:
        text, reading, model = self.vocabularies["text"], self.settings.picture, self.settings.model
        sizes = {"target_size": text.size, "size": reading.size, "channels": reading.channels}
        made = build_model(model.kind, {**model.model_dump(exclude={"kind"}), **sizes})
        reader = Reader(reading.size, reading.channels, reading.fit)
        return Captioner(made, Pictures(reader, reading.mean, reading.std), text)

    @classmethod
    def learn(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:
        records = first(corpus.read("train"), LEARNT)
        texts = (caption for record in records for caption in captions_of(record))
        return {"text": learnt(settings.text, texts)}

    def batches(self, corpus: Corpus) -> Batches:
        """Captions of about equal length together; as many pictures as fit are read first."""
        train, reading = self.settings.train, self.settings.picture
        room = IN_MEMORY // (math.prod(reading.size) * reading.channels)
        records = corpus.read("train")
        pairs = list(self.task.pairs(islice(records, room), self.longest))
        pairs += self.task.pairs(records, self.longest, read=False)
        if not pairs:
            raise ValueError(
                "train: no caption is left; is the data empty, or train.longest small?"
            )
        return Batches(
            Stored(pairs, self.settings.seed),
            sentences=train.sentences_per_batch,
            seed=self.settings.seed,
            collate=partial(self.task.collate, crop=train.crop),
        )

    def loss(self, batch: Captioned, done: int) -> Loss:
        train = self.settings.train
        return self.task.loss(
            batch, train.label_smoothing, train.doubly, soft=done < train.soft_steps
        )

    def likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.likelihood(list(self.task.pairs(records, self.longest, read=False)))

    def score(self, records: Iterable[Record], told: Told | None = None) -> dict[str, float | str]:
        """BLEU-1 to 4, CIDEr, exact match, perplexity and, where it is known, pointing."""
        records = list(records)
        if not records:
            raise ValueError("records are missing: there is nothing to score")
        outputs = [best[0].text for best in self.predict([r["picture"] for r in records], told)]
        references = [list(captions_of(record)) for record in records]
        found: dict[str, float | str] = {}
        for order, score in enumerate(bleus(outputs, references), 1):
            found[f"bleu{order}"] = score.value
            found[f"bleu{order}_signature"] = f"{score.signature}|order:{order}"
        found["cider"] = cider(outputs, references)
        found["cider_signature"] = "cider|d|sigma:6|tok:words|case:lc|v:1"
        found["exact"] = exact_match(outputs, references)
        if (share := self.pointed(records)) is not None:
            found["pointing"] = share
        loss = self.likelihood(records)
        found["perplexity"] = perplexity(loss.total.item(), loss.tokens)
        found["pictures"] = len(records)
        return found

    def measured(self, metric: str, records: Sequence[Record]) -> float:
        found = self.score(records)
        if metric not in found:
            raise ValueError(
                f"train.metric = {metric!r} is not known of these data and this model: "
                "there are no boxes, or there is no attention"
            )
        return float(found[metric])

    def pointed(self, records: Sequence[Record]) -> float | None:
        """Of words whose place is known, those that looked there, the caption being read."""
        if not self.model.cross or not all("boxes" in record for record in records):
            return None
        captions = [captions_of(record)[0] for record in records]
        texts = self.task.text.placed(captions)
        looks = self.task.attended(
            [Pair(0, [r["picture"]], ids) for r, (ids, _) in zip(records, texts, strict=True)]
        )
        places: list[tuple[float, float]] = []
        boxes: list[Box] = []
        for number, record in enumerate(records):
            spans, weights = texts[number][1], looks[number]
            for at, box in words_at(captions[number], spans, record["boxes"]):
                places.append(self.task.looked_at(weights[at]))
                boxes.append(self.laid(box, record["picture"]))
        return pointing(places, boxes)

    def laid(self, box: Box, picture: Picture) -> Box:
        """A box of the picture as it came, in the pixels of the picture as it is read."""
        (height, width), (tall, wide) = size_of(picture), self.settings.picture.size
        rows, columns = tall / height, wide / width
        if self.settings.picture.fit != "stretch":
            both = max(rows, columns) if self.settings.picture.fit == "crop" else min(rows, columns)
            rows = columns = both
        down, right = (tall - height * rows) / 2, (wide - width * columns) / 2
        top, left, bottom, end = box
        return (
            top * rows + down,
            left * columns + right,
            bottom * rows + down,
            end * columns + right,
        )

    def predict(
        self,
        pictures: Sequence[Picture],
        told: Told | None = None,
        places: Sequence[str] | None = None,
        decode: Decode | None = None,
    ) -> list[list[Translation]]:
        """The captions of each picture (a path or an array), best first."""
        how = decode or self.settings.decode
        rules = rules_of(how, how.max_length)
        return self.task.describe(pictures, search_of(how), rules, places=places, told=told)

    def __call__(self, picture: Picture) -> Translation:
        return self.predict([picture])[0][0]

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:
        """Texts are paths; a caption for each."""
        places = [f"{place.format(n)}: {text}" for n, text in enumerate(texts, 1)]
        for text, where in zip(texts, places, strict=True):
            if not Path(text).is_file():
                raise ValueError(f"{where}: there is no such picture; a line is the path of one")
        found = []
        for text, outputs in zip(texts, self.predict(texts, places=places), strict=True):
            told = [{"text": o.text, "score": o.score, "log_prob": o.log_prob} for o in outputs]
            found.append(Reply(outputs[0].text, {"picture": text, "captions": told}))
        return found


def words_at(
    caption: str, spans: Sequence[tuple[int, int]], boxes: Iterable[tuple[int, Box]]
) -> Iterable[tuple[int, Box]]:
    """The first token of each word that has a box, and the box."""
    starts, at = list[int](), 0
    for word in caption.split():
        at = caption.index(word, at)
        starts.append(at)
        at += len(word)
    tokens = {
        start: number for number, (start, end) in reversed([*enumerate(spans)]) if end > start
    }
    for word, box in boxes:
        if starts[word] in tokens:
            yield tokens[starts[word]], box
