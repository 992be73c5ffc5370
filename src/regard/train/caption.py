"""A run that says what is in a picture: its words are those of the captions that it learnt from."""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from regard.batching.batches import Batches, InMemoryExamples
from regard.batching.example import Example
from regard.batching.pictures import PicturePreprocessor
from regard.config.decode import DecodeConfig
from regard.config.settings import CaptionSettings, Settings
from regard.data.corpus import Corpus, Record
from regard.data.formats.captions import record_captions
from regard.data.formats.images import ImageLike, ImageReader, image_size
from regard.metrics.caption import Box, bleu_1_to_4, cider, pointing_accuracy
from regard.metrics.language import perplexity
from regard.metrics.translation import exact_match
from regard.models.catalogue import build_model as build_model
from regard.tasks.caption import CaptionBatch, CaptionTask
from regard.tasks.generation import build_constraints, build_search
from regard.tasks.loss import Loss
from regard.tasks.translate import TextPrediction
from regard.text.tokenizer import Tokenizer
from regard.train.run import (
    MAX_VOCABULARY_RECORDS,
    Prediction,
    ProgressCallback,
    Run,
    take,
    train_tokenizer_on_texts,
)

MAX_PIXEL_BYTES_IN_MEMORY = (
    1 << 30
)  # bytes of pixels that are kept; pictures beyond are read anew each time


class CaptionRun(Run):
    """A picture into a sentence on it."""

    vocabulary_loaders: ClassVar = {"text": Tokenizer.load}
    settings: CaptionSettings
    task: CaptionTask

    def build_task(self) -> CaptionTask:
        tokenizer, picture_config, model = (
            self.vocabularies["text"],
            self.settings.image,
            self.settings.model,
        )
        sizes = {
            "target_size": tokenizer.size,
            "size": picture_config.size,
            "channels": picture_config.channels,
        }
        captioning_model = build_model(model.kind, {**model.model_dump(exclude={"kind"}), **sizes})
        reader = ImageReader(picture_config.size, picture_config.channels, picture_config.fit)
        return CaptionTask(
            captioning_model,
            PicturePreprocessor(reader, picture_config.mean, picture_config.std),
            tokenizer,
        )

    @classmethod
    def build_vocabularies(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:
        records = take(corpus.read("train"), MAX_VOCABULARY_RECORDS)
        texts = (caption for record in records for caption in record_captions(record))
        return {"text": train_tokenizer_on_texts(settings.text, texts)}

    def batches(self, corpus: Corpus) -> Batches:
        """Captions of about equal length together; as many pictures as fit are read first."""
        train, picture_config = self.settings.train, self.settings.image
        max_pictures_in_memory = MAX_PIXEL_BYTES_IN_MEMORY // (
            math.prod(picture_config.size) * picture_config.channels
        )
        records = corpus.read("train")
        examples = list(
            self.task.examples(islice(records, max_pictures_in_memory), self.max_tokens)
        )
        examples += self.task.examples(records, self.max_tokens, load_pictures=False)
        if not examples:
            raise ValueError(
                "train: no caption is left; is the data empty, or train.max_tokens small?"
            )
        return Batches(
            InMemoryExamples(examples, self.settings.seed),
            examples_per_batch=train.examples_per_batch,
            seed=self.settings.seed,
            collate=partial(self.task.collate, crop=train.crop_padding),
        )

    def loss(self, batch: CaptionBatch, steps_done: int) -> Loss:
        train = self.settings.train
        return self.task.loss(
            batch,
            train.label_smoothing,
            train.doubly_stochastic_weight,
            soft=steps_done < train.soft_attention_steps,
        )

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        return self.task.negative_log_likelihood(
            list(self.task.examples(records, self.max_tokens, load_pictures=False))
        )

    def score(
        self, records: Iterable[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        """BLEU-1 to 4, CIDEr, exact match, perplexity and, where it is known, pointing."""
        records = list(records)
        if not records:
            raise ValueError("records are missing: there is nothing to score")
        outputs = [
            best[0].text for best in self.predict([r["picture"] for r in records], on_progress)
        ]
        references = [list(record_captions(record)) for record in records]
        metrics: dict[str, float | str] = {}
        for order, score in enumerate(bleu_1_to_4(outputs, references), 1):
            metrics[f"bleu{order}"] = score.value
            metrics[f"bleu{order}_signature"] = f"{score.signature}|order:{order}"
        metrics["cider"] = cider(outputs, references)
        metrics["cider_signature"] = "cider|d|sigma:6|tok:words|case:lc|v:1"
        metrics["exact"] = exact_match(outputs, references)
        if (pointing_accuracy := self.pointing_accuracy(records)) is not None:
            metrics["pointing"] = pointing_accuracy
        loss = self.negative_log_likelihood(records)
        metrics["perplexity"] = perplexity(loss.total.item(), loss.count)
        metrics["pictures"] = len(records)
        return metrics

    def validation_metric(self, metric: str, records: Sequence[Record]) -> float:
        metrics = self.score(records)
        if metric not in metrics:
            raise ValueError(
                f"train.metric = {metric!r} is not known of these data and this model: "
                "there are no boxes, or there is no attention"
            )
        return float(metrics[metric])

    def pointing_accuracy(self, records: Sequence[Record]) -> float | None:
        """Of words whose place is known, those that looked there, the caption being read."""
        if not self.model.cross_attentions or not all("boxes" in record for record in records):
            return None
        captions = [record_captions(record)[0] for record in records]
        encoded_captions = self.task.text.encode_with_offsets(captions)
        attention_weights = self.task.attention_weights(
            [
                Example(0, [r["picture"]], ids)
                for r, (ids, _) in zip(records, encoded_captions, strict=True)
            ]
        )
        attended_points: list[tuple[float, float]] = []
        boxes: list[Box] = []
        for index, record in enumerate(records):
            spans, weights = encoded_captions[index][1], attention_weights[index]
            for token_index, box in boxed_tokens(captions[index], spans, record["boxes"]):
                attended_points.append(self.task.attention_peak(weights[token_index]))
                boxes.append(self.box_in_model_pixels(box, record["picture"]))
        return pointing_accuracy(attended_points, boxes)

    def box_in_model_pixels(self, box: Box, picture: ImageLike) -> Box:
        """A box of the picture as it came, in the pixels of the picture as it is read."""
        (height, width), (model_height, model_width) = image_size(picture), self.settings.image.size
        row_scale, column_scale = model_height / height, model_width / width
        if self.settings.image.fit != "stretch":
            scale = (
                max(row_scale, column_scale)
                if self.settings.image.fit == "crop"
                else min(row_scale, column_scale)
            )
            row_scale = column_scale = scale
        top_offset, left_offset = (
            (model_height - height * row_scale) / 2,
            (model_width - width * column_scale) / 2,
        )
        top, left, bottom, right_edge = box
        return (
            top * row_scale + top_offset,
            left * column_scale + left_offset,
            bottom * row_scale + top_offset,
            right_edge * column_scale + left_offset,
        )

    def predict(
        self,
        pictures: Sequence[ImageLike],
        on_progress: ProgressCallback | None = None,
        locations: Sequence[str] | None = None,
        decode: DecodeConfig | None = None,
    ) -> list[list[TextPrediction]]:
        """The captions of each picture (a path or an array), best first."""
        search_settings = decode or self.settings.decode
        constraints = build_constraints(search_settings, search_settings.max_length)
        return self.task.predict(
            pictures,
            build_search(search_settings),
            constraints,
            locations=locations,
            on_progress=on_progress,
        )

    def __call__(self, picture: ImageLike) -> TextPrediction:
        return self.predict([picture])[0][0]

    def predict_lines(
        self, lines: Sequence[str], location_format: str = "text {}"
    ) -> list[Prediction]:
        """Texts are paths; a caption for each."""
        locations = [f"{location_format.format(n)}: {text}" for n, text in enumerate(lines, 1)]
        for text, location in zip(lines, locations, strict=True):
            if not Path(text).is_file():
                raise ValueError(f"{location}: there is no such picture; a line is the path of one")
        predictions = []
        for text, outputs in zip(lines, self.predict(lines, locations=locations), strict=True):
            hypotheses = [
                {"text": o.text, "score": o.score, "log_prob": o.log_prob} for o in outputs
            ]
            predictions.append(
                Prediction(outputs[0].text, {"picture": text, "captions": hypotheses})
            )
        return predictions


def boxed_tokens(
    caption: str, spans: Sequence[tuple[int, int]], boxes: Iterable[tuple[int, Box]]
) -> Iterable[tuple[int, Box]]:
    """The first token of each word that has a box, and the box."""
    starts, position = list[int](), 0
    for word in caption.split():
        position = caption.index(word, position)
        starts.append(position)
        position += len(word)
    tokens = {start: index for index, (start, end) in reversed([*enumerate(spans)]) if end > start}
    for word, box in boxes:
        if starts[word] in tokens:
            yield tokens[starts[word]], box
