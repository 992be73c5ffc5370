"""Few-shot recognition: the class of a query, from a few labeled examples of new classes.

    loss = - log p(class of the query | x_1..T)              at the last step only

`classifier.py` has the model. e: episodes   s: labeled examples   q: queries   n: s + q
"""

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.attention.observe import observe
from regard.batching.indexed import IndexedBatches
from regard.batching.source import BatchSource
from regard.data.corpus import Corpus, Record
from regard.data.synthetic.episodes import EpisodeCorpus, SampledEpisodes
from regard.errors import InputError
from regard.files import JsonObject
from regard.metrics.classification import success_rate
from regard.tasks.base import BatchOptions, InputField, Metrics, Prediction, ProgressCallback, Task
from regard.tasks.fewshot import view
from regard.tasks.fewshot.classifier import EpisodeClassifier, FewshotBatch
from regard.tasks.fewshot.episode import (
    ExampleArray,
    FewshotEpisode,
    SupportParser,
    parse_episode,
    to_episode,
)
from regard.tasks.image_tools import png_bytes
from regard.tasks.loss import Loss, sum_losses
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

EPISODES_PER_BATCH = 64  # in prediction and evaluation
INPUT = "input"  # field of a line of input; records of a corpus have other fields


@dataclass(frozen=True)
class FewshotPrediction(Prediction):
    """The name and number (from 0) of a class, and the probability of each class by name."""

    label: int
    probabilities: dict[str, float]
    episode: FewshotEpisode

    def as_dict(self) -> JsonObject:
        *support, query = map(example_value, self.episode.examples)
        labels = [self.episode.classes[label] for label in self.episode.support_labels]
        pairs = zip(labels, support, strict=True)
        return {
            "label": self.text,
            "probabilities": self.probabilities,
            "support": [{"label": label, "example": example} for label, example in pairs],
            "query": query,
        }


class FewshotTask(Task[FewshotEpisode, FewshotBatch, EpisodeClassifier]):
    """A model that learns classes from examples in its input.

    `input_fields` are empty for images, whose lines of input name files. `optimal_class` returns
    the likeliest class of an episode, if the data allows to compute it.
    """

    name: ClassVar = "fewshot"
    unit: ClassVar = "queries"
    example_unit: ClassVar = "episodes"

    def __init__(
        self,
        model: EpisodeClassifier,
        *,
        shots: int,
        parse_support: SupportParser,
        input_fields: tuple[InputField, ...] = (),
        queries: int = 5,
        vary_shots: bool = False,
        label_smoothing: float = 0.0,
        optimal_class: Callable[[Record], int] | None = None,
    ):
        self.model = model
        self.ways, self.shots, self.parse_support = model.ways, shots, parse_support
        self.input_fields = input_fields
        self.queries, self.vary_shots, self.label_smoothing = queries, vary_shots, label_smoothing
        self.optimal_class = optimal_class

    # --- training

    def examples(self, records: Iterable[Record]) -> Iterator[FewshotEpisode]:
        for record in records:
            yield self.episode(record)

    def episode(self, record: Record) -> FewshotEpisode:
        """Convert a record of a corpus, or a line of input."""
        if INPUT in record:
            return self.parse_episode(record[INPUT], INPUT)
        return to_episode(record, self.ways)

    def collate(self, examples: Sequence[FewshotEpisode]) -> FewshotBatch:
        """Return a batch of episodes with one query each; unknown targets are 0."""
        labels = np.stack([episode.support_labels for episode in examples])
        targets = np.array([[episode.target or 0] for episode in examples])
        order = np.broadcast_to(np.arange(labels.shape[1]), (len(examples), 1, labels.shape[1]))
        arrays = np.stack([episode.examples for episode in examples])
        return self.collate_sampled(SampledEpisodes(arrays, labels, targets, order))

    def collate_sampled(self, episodes: SampledEpisodes) -> FewshotBatch:
        """Return a batch of sampled episodes, with one or more queries each."""
        examples = torch.from_numpy(np.ascontiguousarray(episodes.examples))
        arrays = (episodes.support_labels, episodes.query_labels, episodes.support_order)
        return FewshotBatch(
            to_floats(examples), *(torch.from_numpy(array.copy()) for array in arrays)
        )

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[FewshotBatch]:
        """Return an endless source of new episodes of the training classes."""
        if not isinstance(corpus, EpisodeCorpus):
            raise TypeError(f"{type(corpus).__name__} has no episodes")

        def build_batch(index: int) -> FewshotBatch:
            count = options.examples_per_batch or 1
            return self.collate_sampled(
                corpus.sample_batch(options.seed, index, count, self.queries, self.vary_shots)
            )

        build_batch(0)  # raises an error if there are too few images
        return IndexedBatches(build_batch)

    def loss(self, batch: FewshotBatch, step: int) -> Loss:  # noqa: ARG002 - the same at every step
        return self.cross_entropy(batch, self.label_smoothing)

    def cross_entropy(self, batch: FewshotBatch, smoothing: float = 0.0) -> Loss:
        """Return the loss summed over queries, and their number."""
        logits, targets = self.model(batch).flatten(0, 1), batch.targets.flatten()
        total = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
        return Loss(total, len(targets))

    @torch.no_grad()
    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        self.model.eval()
        if not (chunks := list(self.episode_chunks(list(records)))):
            raise InputError("records are missing: there is nothing to score")
        losses = [self.cross_entropy(self.to_device(self.collate(chunk))) for chunk in chunks]
        return sum_losses(losses)

    # --- inference

    def parse(self, line: str, location: str) -> Record:
        self.parse_episode(line, location)  # raises an error if the line is no episode
        return {INPUT: line}

    def parse_episode(self, line: str, location: str) -> FewshotEpisode:
        return parse_episode(line, location, self.parse_support, self.ways, self.shots)

    def episode_chunks(self, records: Sequence[Record]) -> Iterator[list[FewshotEpisode]]:
        """Yield episodes of one size; a line of input may have another size and is alone."""
        chunk: list[FewshotEpisode] = []
        for record in records:
            if chunk and (INPUT in record or len(chunk) == EPISODES_PER_BATCH):
                yield chunk
                chunk = []
            chunk.append(self.episode(record))
            if INPUT in record:
                yield chunk
                chunk = []
        if chunk:
            yield chunk

    @torch.no_grad()
    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[FewshotPrediction]:
        """Return the class of the query of each episode."""
        self.model.eval()
        predictions: list[FewshotPrediction] = []
        for chunk in self.episode_chunks(records):
            batch = self.to_device(self.collate(chunk))
            rows = self.model(batch)[:, 0].softmax(-1).tolist()
            for episode, row in zip(chunk, rows, strict=True):
                label = int(np.argmax(row))
                probabilities = dict(zip(episode.classes, row, strict=True))
                predictions.append(
                    FewshotPrediction(episode.classes[label], label, probabilities, episode)
                )
            if on_progress is not None:
                on_progress(len(chunk))
        return predictions

    def metrics(self, records: Sequence[Record], predictions: Sequence[Prediction]) -> Metrics:
        """Return accuracy with its 95 % interval, and that of the nearest mean, in percent."""
        guesses = [guess.label for guess in cast("Sequence[FewshotPrediction]", predictions)]
        value, half_width = success_rate(hits(guesses, records))
        nearest = success_rate(hits([nearest_class(record) for record in records], records))
        metrics: Metrics = {
            "accuracy": 100 * value,
            "accuracy_signature": self.signature(),
            "within": 100 * half_width,
            "nearest": 100 * nearest.value,
        }
        if self.optimal_class is not None:
            optimal = success_rate(hits([self.optimal_class(r) for r in records], records))
            metrics["optimal"] = 100 * optimal.value
        return metrics

    def signature(self) -> str:
        """Return the conditions under which accuracy is measured."""
        conditions = f"ways:{self.ways}|shots:{self.shots}|queries:1|classes:unseen"
        return f"accuracy|{conditions}|interval:95,episodes|v:1"

    def validation_metric(self, name: str, records: Sequence[Record]) -> float:  # noqa: ARG002
        """Return the accuracy in percent."""
        guesses = [prediction.label for prediction in self.predict(records)]
        return 100 * success_rate(hits(guesses, records)).value

    # --- inspection

    @torch.no_grad()
    def attention_weights(self, episode: FewshotEpisode) -> dict[str, Tensor]:
        """Return the weights [s+1 s+1] of each step, by attention; the last step is the query."""
        with observe(self.model.eval()) as recorded:
            self.model(self.to_device(self.collate([episode])))
        return {name: weights[0] for name, weights in recorded.joined().items()}

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:  # noqa: ARG002
        return view.episode_map(self, record)

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,  # noqa: ARG002
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        return view.render_episode(self, record, surface)


def hits(labels: Sequence[int], records: Sequence[Record]) -> list[bool]:
    """Return whether each label is the class of the query."""
    return [label == record["target"] for label, record in zip(labels, records, strict=True)]


def example_value(example: ExampleArray) -> list[float] | str:
    """Return a point, or an image as the data URL of a PNG."""
    if example.dtype != np.uint8:
        return [round(float(value), 4) for value in example.ravel()]
    png = png_bytes(example.astype(np.uint8))
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def to_floats(examples: Tensor) -> Float[Tensor, "e n *of"]:
    """Convert pixels [… h w c] to [… c h w], white to 0 and black to 1; keep points."""
    if examples.dtype != torch.uint8:
        return examples
    return examples.movedim(-1, 2).float().div_(-255).add_(1)


def nearest_class(record: Record) -> int:
    """Return the class whose examples have the mean that is nearest to the query."""
    arrays: ExampleArray = record["examples"]
    examples = arrays.astype(np.float64).reshape(len(arrays), -1)
    labels = record["support_labels"]
    means = np.stack([examples[:-1][labels == way].mean(0) for way in range(labels.max() + 1)])
    return int(((means - examples[-1]) ** 2).sum(-1).argmin())
