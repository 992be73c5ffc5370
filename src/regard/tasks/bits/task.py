"""Sequences of bits that a model reads and then repeats from memory: `copy` and `recall`.

    loss = - sum over answer steps and bits of (x log2 p + (1 - x) log2(1 - p)), per sequence

The input at a step is a vector of bits, 0 or 1, followed by a column for each kind of marker. The
last marker stays on while the model answers, and only these steps count. A model has
`episode(inputs)`, which returns logits for each step.

# differs: in the paper the input is zero at answer steps. A vector of zeros looks the same, and a
# controller without state starts to answer at the first of them: such a model copied all of 150
# sequences but the six that had one. Inputs of -1 and 1 avoid this too, but slow learning down.
b: sequences   t: steps   w: bits of a vector   i: bits and markers
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.observe import observe
from regard.batching.batches import iterate_by_length
from regard.batching.example import Example
from regard.batching.source import BatchSource
from regard.data.corpus import Corpus, Record
from regard.data.synthetic.bits import BitFormat
from regard.files import JsonObject
from regard.metrics.bits import BITS_SIGNATURE, bits_per_sequence, wrong_bits
from regard.models.protocols import Learner
from regard.tasks.base import (
    BatchOptions,
    InputField,
    Metrics,
    Prediction,
    ProgressCallback,
    Task,
    batches_by_length,
)
from regard.tasks.bits import view
from regard.tasks.generation import TOKENS_PER_BATCH
from regard.tasks.loss import Loss, sum_losses
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

ANSWER_STEP = "·"  # the name of a step at which the model answers


@dataclass(frozen=True)
class BitsBatch:
    """Right-padded sequences: the model reads `inputs` and answers `targets` where masked."""

    indices: Int[Tensor, " b"]  # of the examples
    inputs: Float[Tensor, "b t i"]
    targets: Float[Tensor, "b t w"]
    answer_mask: Bool[Tensor, "b t"]


@dataclass(frozen=True)
class BitsPrediction(Prediction):
    """The vectors that a model repeats, and how they differ from the target."""

    source: str
    target: str
    vectors: tuple[int, ...]  # each as the number that its bits spell
    wrong: int  # bits that differ from the target
    loss: float  # -log p(target), in nats
    confidence: float  # probability of the least certain bit
    bit_probabilities: tuple[tuple[float, ...], ...]  # that a bit is 1, for each vector

    def as_dict(self) -> JsonObject:
        return {
            "text": self.text,
            "source": self.source,
            "target": self.target,
            "wrong": self.wrong,
            "bits": bits_per_sequence(self.loss, 1),
            "confidence": self.confidence,
            "probabilities": [list(row) for row in self.bit_probabilities],
        }


class StepAttention(NamedTuple):
    """The name of each step, and the weights [h t n] of each attention over memory slots."""

    steps: list[str]
    weights: dict[str, Tensor]


class BitsTask(Task[Example, BitsBatch, Learner]):
    """A model that reads sequences of one format and repeats a part of them."""

    unit: ClassVar = "sequences"
    example_unit: ClassVar = "sequences"
    input_fields = (InputField("source", "Sequence of bit vectors"),)
    fields: tuple[str, ...] = ("source",)

    def __init__(
        self,
        model: Learner,
        sequence_format: BitFormat,
        *,
        name: str = "copy",
        max_tokens: int = 256,
        test_sizes: Sequence[int] = (),
    ):
        self.model = model
        self.sequence_format = sequence_format
        # two tasks of the catalogue share this class
        self.name = name  # pyright: ignore[reportAttributeAccessIssue]
        self.max_tokens, self.test_sizes = max_tokens, tuple(test_sizes)

    # --- training

    def examples(self, records: Iterable[Record]) -> Iterator[Example]:
        """Yield the sequences that have at most `max_tokens` steps."""
        for example in self.evaluation_examples(records):
            if len(example.source) + len(example.target) <= self.max_tokens:
                yield example

    def evaluation_examples(self, records: Iterable[Record]) -> Iterator[Example]:
        """Yield all sequences, whatever their length."""
        for index, record in enumerate(records):
            yield self.build_example(record["source"], f"record {index + 1}", index)

    def build_example(self, text: str, location: str, index: int = 0) -> Example:
        """Return the input and the target of a sequence, as ids of vectors and markers."""
        sequence_format = self.sequence_format
        inputs = sequence_format.input_ids(text, location)
        return Example(index, inputs, sequence_format.target_ids(text, location))

    def collate(self, examples: Sequence[Example]) -> BitsBatch:
        width, marker_count = self.sequence_format.width, len(self.sequence_format.markers)
        steps = max(len(example.source) + len(example.target) for example in examples)
        symbols = np.zeros((len(examples), steps), np.int64)
        targets, answer_mask = np.zeros_like(symbols), np.zeros(symbols.shape, bool)
        for row, example in enumerate(examples):
            start, end = len(example.source), len(example.source) + len(example.target)
            symbols[row, :start], symbols[row, start:end] = example.source, example.source[-1]
            targets[row, start:end], answer_mask[row, start:end] = example.target, True
        marker_bits = symbols[..., None] == 2**width + np.arange(marker_count)
        vector_bits = to_bits(symbols, width) * (symbols < 2**width)[..., None]
        inputs = np.concatenate([vector_bits, marker_bits], -1)
        return BitsBatch(
            torch.tensor([example.index for example in examples]),
            torch.from_numpy(inputs.astype(np.float32)),
            torch.from_numpy(to_bits(targets, width).astype(np.float32)),
            torch.from_numpy(answer_mask),
        )

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[BitsBatch]:
        return batches_by_length(self, corpus, options)

    def loss(self, batch: BitsBatch, step: int) -> Loss:  # noqa: ARG002 - the same at every step
        return self.cross_entropy(batch)

    def cross_entropy(self, batch: BitsBatch) -> Loss:
        """Return the loss in bits, summed over the batch; it counts sequences."""
        logits = self.model.episode(batch.inputs)[batch.answer_mask]
        targets = batch.targets[batch.answer_mask]
        total = F.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
        return Loss(total / math.log(2), len(batch.inputs))

    @torch.no_grad()
    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        """Return -log2 p(target) of sequences of any length."""
        self.model.eval()
        batches = iterate_by_length(
            list(self.evaluation_examples(records)),
            tokens_per_batch=TOKENS_PER_BATCH,
            collate=self.collate,
            device=self.device,
        )
        losses = [self.cross_entropy(batch) for batch in batches]
        return sum_losses(losses)

    # --- inference

    def parse(self, line: str, location: str) -> Record:
        self.build_example(line, location)  # raises an error if the line is not a sequence
        return {"source": line}

    @torch.no_grad()
    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[BitsPrediction]:
        """Return the vectors that the model repeats; the target follows from the source."""
        self.model.eval()
        examples = list(self.evaluation_examples(records))
        predictions: dict[int, BitsPrediction] = {}
        for batch in iterate_by_length(
            examples,
            tokens_per_batch=TOKENS_PER_BATCH,
            collate=self.collate,
            device=self.device,
        ):
            logits = self.model.episode(batch.inputs)
            for index, row, row_targets, mask in zip(
                batch.indices.tolist(), logits, batch.targets, batch.answer_mask, strict=True
            ):
                predictions[index] = self.to_prediction(
                    row[mask], row_targets[mask], examples[index]
                )
            if on_progress is not None:
                on_progress(len(batch.inputs))
        return [predictions[index] for index in range(len(examples))]

    def to_prediction(
        self,
        logits: Float[Tensor, "a w"],
        targets: Float[Tensor, "a w"],
        example: Example,
    ) -> BitsPrediction:
        """Convert the logits of the answer steps of one sequence."""
        target_vectors = example.target
        loss = F.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
        places = torch.arange(self.sequence_format.width - 1, -1, -1, device=logits.device)
        vectors = ((logits > 0) * 2**places).sum(-1).tolist()
        return BitsPrediction(
            self.sequence_format.format_vectors(vectors),
            source=" ".join(map(self.sequence_format.symbol_name, example.source)),
            target=self.sequence_format.format_vectors(target_vectors),
            vectors=tuple(vectors),
            wrong=wrong_bits(vectors, target_vectors),
            loss=loss.item(),
            confidence=logits.abs().min().sigmoid().item(),
            bit_probabilities=tuple(tuple(row) for row in logits.sigmoid().tolist()),
        )

    def metrics(self, records: Sequence[Record], predictions: Sequence[Prediction]) -> Metrics:
        """Return bits per sequence and wrong bits, over all records and for each tested size."""
        answers = cast("Sequence[BitsPrediction]", predictions)
        metrics = mean_metrics("", answers)
        for size in self.test_sizes:
            pairs = zip(records, answers, strict=True)
            if matching := [answer for record, answer in pairs if record.get("size") == size]:
                metrics |= mean_metrics(f"_{size}", matching)
        return metrics

    def likelihood_metrics(self, records: Sequence[Record]) -> Metrics:  # noqa: ARG002
        """Return no more metrics: `bits` is the likelihood."""
        return {}

    # --- inspection

    @torch.no_grad()
    def step_attention(self, text: str, location: str = "TEXT") -> StepAttention:
        """Return the weights with which the model reads and writes its memory at each step."""
        example = self.build_example(text, location)
        with observe(self.model.eval()) as recorded:
            self.model.episode(self.to_device(self.collate([example]).inputs))
        names = [self.sequence_format.symbol_name(symbol) for symbol in example.source]
        names += [ANSWER_STEP] * len(example.target)
        weights = {name: weights[0] for name, weights in recorded.joined().items()}
        return StepAttention(names, weights)

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:  # noqa: ARG002
        return view.memory_map(self, record["source"])

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,  # noqa: ARG002
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        return view.render_memory(self, record["source"], surface)


def to_bits(numbers: Int[np.ndarray, "b t"], width: int) -> Int[np.ndarray, "b t w"]:
    """Return the last `width` bits of each number, the highest first."""
    return (numbers[..., None] >> np.arange(width - 1, -1, -1)) & 1


def mean_metrics(suffix: str, predictions: Sequence[BitsPrediction]) -> Metrics:
    """Return the metrics of these predictions; `suffix` ends their names."""
    count = len(predictions)
    return {
        f"bits{suffix}": bits_per_sequence(sum(answer.loss for answer in predictions), count),
        f"bits{suffix}_signature": BITS_SIGNATURE,
        f"wrong{suffix}": sum(answer.wrong for answer in predictions) / count,
    }
