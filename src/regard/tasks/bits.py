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

from regard.attend.tap import observe
from regard.batch.batches import in_order
from regard.batch.pair import Pair
from regard.corpora.bits import Form
from regard.tasks.loss import Loss
from regard.tasks.translate import ROOM

TELLS = "·"  # a step at which something is told


@dataclass(frozen=True)
class Episodes:
    """Right-padded. The machine is given `inputs`, and where `told` is to say `wanted`."""

    numbers: Int[Tensor, " b"]  # which pairs these are
    inputs: Float[Tensor, "b t i"]
    wanted: Float[Tensor, "b t w"]
    told: Bool[Tensor, "b t"]


class Answer(NamedTuple):
    """What was told, as numbers of vectors; and -log p of what is true, in nats."""

    vectors: list[int]
    loss: float
    sure: float  # the probability of the least sure bit


class Looked(NamedTuple):
    """A name for each step, and by attention what its heads looked at: [h t n]."""

    steps: list[str]
    weights: dict[str, Tensor]


class Recite:
    """A machine that is shown sequences of one form."""

    fields = ("source",)

    def __init__(self, model: nn.Module, form: Form):
        self.model: Any = model  # any with `episode`
        self.form = form

    def pairs(
        self, records: Iterable[Mapping[str, Any]], longest: int | None = None
    ) -> Iterator[Pair]:
        """What is shown, and what is to be told; sequences of more steps are left out."""
        for number, record in enumerate(records):
            pair = self.pair(record["source"], f"record {number + 1}", number)
            if longest is None or len(pair.source) + len(pair.target) <= longest:
                yield pair

    def pair(self, text: str, place: str, number: int = 0) -> Pair:
        return Pair(number, self.form.shown(text, place), self.form.answer(text, place))

    def collate(self, pairs: Sequence[Pair]) -> Episodes:
        width, marks = self.form.width, len(self.form.marks)
        steps = max(len(pair.source) + len(pair.target) for pair in pairs)
        shown = np.zeros((len(pairs), steps), np.int64)
        wanted, told = np.zeros_like(shown), np.zeros(shown.shape, bool)
        for row, pair in enumerate(pairs):
            start, end = len(pair.source), len(pair.source) + len(pair.target)
            shown[row, :start], shown[row, start:end] = pair.source, pair.source[-1]
            wanted[row, start:end], told[row, start:end] = pair.target, True
        mark = shown[..., None] == 2**width + np.arange(marks)
        inputs = np.concatenate([bits(shown, width) * (shown < 2**width)[..., None], mark], -1)
        return Episodes(
            torch.tensor([pair.number for pair in pairs]),
            torch.from_numpy(inputs.astype(np.float32)),
            torch.from_numpy(bits(wanted, width).astype(np.float32)),
            torch.from_numpy(told),
        )

    def loss(self, batch: Episodes) -> Loss:
        """In bits, summed; counted are sequences."""
        logits, wanted = self.model.episode(batch.inputs)[batch.told], batch.wanted[batch.told]
        total = F.binary_cross_entropy_with_logits(logits, wanted, reduction="sum")
        return Loss(total / math.log(2), len(batch.inputs))

    @torch.no_grad()
    def likelihood(self, pairs: Sequence[Pair]) -> Loss:
        self.model.eval()
        batches = in_order(pairs, tokens=ROOM, collate=self.collate)
        losses = [self.loss(batch) for batch in batches]
        total = torch.stack([loss.total.double() for loss in losses]).sum()
        return Loss(total, sum(loss.tokens for loss in losses))

    @torch.no_grad()
    def answers(
        self, pairs: Sequence[Pair], told: Callable[[int], None] | None = None
    ) -> list[Answer]:
        """What the machine tells of each, in their order."""
        self.model.eval()
        found: dict[int, Answer] = {}
        numbered = [pair._replace(number=place) for place, pair in enumerate(pairs)]
        weights = 2 ** torch.arange(self.form.width - 1, -1, -1)
        for batch in in_order(numbered, tokens=ROOM, collate=self.collate):
            logits = self.model.episode(batch.inputs)
            for number, row, wanted, where in zip(
                batch.numbers.tolist(), logits, batch.wanted, batch.told, strict=True
            ):
                there, true = row[where], wanted[where]
                missed = F.binary_cross_entropy_with_logits(there, true, reduction="sum")
                vectors = ((there > 0) * weights).sum(-1).tolist()
                sure = there.abs().min().sigmoid().item()
                found[number] = Answer(vectors, missed.item(), sure)
            if told is not None:
                told(len(batch.inputs))
        return [found[place] for place in range(len(pairs))]

    @torch.no_grad()
    def looked(self, text: str, place: str = "TEXT") -> Looked:
        """The weightings that the machine read and wrote with."""
        pair = self.pair(text, place)
        with observe(self.model.eval()) as seen:
            self.model.episode(self.collate([pair]).inputs)
        names = [self.form.name(number) for number in pair.source]
        names += [TELLS] * len(pair.target)
        return Looked(names, {name: one[0] for name, one in seen.whole().items()})


def bits(numbers: Int[np.ndarray, "b t"], width: int) -> Int[np.ndarray, "b t w"]:
    """Of each number its last `width` bits, the highest first."""
    return (numbers[..., None] >> np.arange(width - 1, -1, -1)) & 1
