"""Sequences of bits, shown step by step and told from memory: `copy` and `recall`.

    loss = - sum over told steps and columns of (x log2 p + (1 - x) log2(1 - p)), of a sequence

A step is a vector of bits, 0 or 1, with a column for each kind of mark behind them. The last mark
stays while the machine is to tell, and only those steps count. A model has `episode(inputs)`, which
says logits at each step.

# differs: in the paper nothing is shown then. A vector of zeros looks the same, and a controller
# without a state begins to tell at the first one: of 150 sequences such a machine copied all but
# the six that had one. Bits as -1 and 1 tell the two apart as well, but slow its learning down.
b: sequences   t: steps   w: bits of a vector   i: bits and marks
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.batching.batches import iterate_by_length
from regard.batching.example import Example
from regard.data.synthetic.bits import BitFormat
from regard.tasks.loss import Loss
from regard.tasks.translate import TOKENS_PER_BATCH

ANSWER_STEP = "·"  # a step at which something is told


@dataclass(frozen=True)
class BitCopyBatch:
    """Right-padded. The machine is given `inputs`, and where `told` is to say `wanted`."""

    indices: Int[Tensor, " b"]  # which pairs these are
    inputs: Float[Tensor, "b t i"]
    targets: Float[Tensor, "b t w"]
    answer_mask: Bool[Tensor, "b t"]


class BitCopyPrediction(NamedTuple):
    """What was told, as numbers of vectors; and -log p of what is true, in nats."""

    vectors: list[int]
    loss: float
    confidence: float  # the probability of the least sure bit


class StepAttention(NamedTuple):
    """A name for each step, and by attention what its heads looked at: [h t n]."""

    steps: list[str]
    weights: dict[str, Tensor]


class BitCopyTask:
    """A machine that is shown sequences of one form."""

    fields = ("source",)

    def __init__(self, model: nn.Module, form: BitFormat):
        self.model: Any = model  # any with `episode`
        self.form = form

    def examples(
        self, records: Iterable[Mapping[str, Any]], max_steps: int | None = None
    ) -> Iterator[Example]:
        """What is shown, and what is to be told; sequences of more steps are left out."""
        for index, record in enumerate(records):
            example = self.build_example(record["source"], f"record {index + 1}", index)
            if max_steps is None or len(example.source) + len(example.target) <= max_steps:
                yield example

    def build_example(self, text: str, location: str, index: int = 0) -> Example:
        return Example(
            index, self.form.input_ids(text, location), self.form.target_ids(text, location)
        )

    def collate(self, examples: Sequence[Example]) -> BitCopyBatch:
        width, mark_count = self.form.width, len(self.form.markers)
        steps = max(len(example.source) + len(example.target) for example in examples)
        symbols = np.zeros((len(examples), steps), np.int64)
        targets, answer_mask = np.zeros_like(symbols), np.zeros(symbols.shape, bool)
        for row, example in enumerate(examples):
            start, end = len(example.source), len(example.source) + len(example.target)
            symbols[row, :start], symbols[row, start:end] = example.source, example.source[-1]
            targets[row, start:end], answer_mask[row, start:end] = example.target, True
        mark_bits = symbols[..., None] == 2**width + np.arange(mark_count)
        inputs = np.concatenate(
            [to_bits(symbols, width) * (symbols < 2**width)[..., None], mark_bits], -1
        )
        return BitCopyBatch(
            torch.tensor([example.index for example in examples]),
            torch.from_numpy(inputs.astype(np.float32)),
            torch.from_numpy(to_bits(targets, width).astype(np.float32)),
            torch.from_numpy(answer_mask),
        )

    def loss(self, batch: BitCopyBatch) -> Loss:
        """In bits, summed; counted are sequences."""
        logits, targets = (
            self.model.episode(batch.inputs)[batch.answer_mask],
            batch.targets[batch.answer_mask],
        )
        total = F.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
        return Loss(total / math.log(2), len(batch.inputs))

    @torch.no_grad()
    def negative_log_likelihood(self, examples: Sequence[Example]) -> Loss:
        self.model.eval()
        batches = iterate_by_length(
            examples, tokens_per_batch=TOKENS_PER_BATCH, collate=self.collate
        )
        losses = [self.loss(batch) for batch in batches]
        total = torch.stack([loss.total.double() for loss in losses]).sum()
        return Loss(total, sum(loss.count for loss in losses))

    @torch.no_grad()
    def predict(
        self, examples: Sequence[Example], on_progress: Callable[[int], None] | None = None
    ) -> list[BitCopyPrediction]:
        """What the machine tells of each, in their order."""
        self.model.eval()
        predictions: dict[int, BitCopyPrediction] = {}
        indexed = [example._replace(index=position) for position, example in enumerate(examples)]
        weights = 2 ** torch.arange(self.form.width - 1, -1, -1)
        for batch in iterate_by_length(
            indexed, tokens_per_batch=TOKENS_PER_BATCH, collate=self.collate
        ):
            logits = self.model.episode(batch.inputs)
            for index, row, row_targets, mask in zip(
                batch.indices.tolist(), logits, batch.targets, batch.answer_mask, strict=True
            ):
                answer_logits, targets = row[mask], row_targets[mask]
                loss = F.binary_cross_entropy_with_logits(answer_logits, targets, reduction="sum")
                vectors = ((answer_logits > 0) * weights).sum(-1).tolist()
                confidence = answer_logits.abs().min().sigmoid().item()
                predictions[index] = BitCopyPrediction(vectors, loss.item(), confidence)
            if on_progress is not None:
                on_progress(len(batch.inputs))
        return [predictions[position] for position in range(len(examples))]

    @torch.no_grad()
    def step_attention(self, text: str, location: str = "TEXT") -> StepAttention:
        """The weightings that the machine read and wrote with."""
        example = self.build_example(text, location)
        with observe(self.model.eval()) as recorded:
            self.model.episode(self.collate([example]).inputs)
        names = [self.form.symbol_name(symbol) for symbol in example.source]
        names += [ANSWER_STEP] * len(example.target)
        return StepAttention(
            names, {name: weights[0] for name, weights in recorded.joined().items()}
        )


def to_bits(numbers: Int[np.ndarray, "b t"], width: int) -> Int[np.ndarray, "b t w"]:
    """Of each number its last `width` bits, the highest first."""
    return (numbers[..., None] >> np.arange(width - 1, -1, -1)) & 1
