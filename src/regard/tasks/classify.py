"""Classification: a text, or two, into one of some classes; any encoder with a head on it.

b: texts   c: classes
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.batch.pair import Pair
from regard.encode.head import Classifier, Pooling, make_pooling
from regard.tasks.headed import Headed, OnEncoder
from regard.tasks.inputs import BySentence, Inputs, Spelled, split
from regard.tasks.loss import Loss
from regard.tasks.translate import AT_ONCE
from regard.text.labels import Labels


@dataclass(frozen=True)
class Labelled:
    """Texts as their encoder wants them, and the class of each."""

    numbers: Int[Tensor, " b"]  # which texts these are
    inputs: dict[str, Tensor]
    labels: Int[Tensor, " b"]


class Verdict(NamedTuple):
    """The likeliest class, and how likely each is."""

    label: str
    probabilities: dict[str, float]


class Part(NamedTuple):
    """A sentence: how much it was looked at, its tokens, and how much each of them was."""

    weight: float
    tokens: list[str]
    weights: list[float]


class Judge(OnEncoder):
    """Classes from the encoder's pooled vector, or from states pooled here."""

    def __init__(
        self,
        encoder: Any,
        classes: int,
        *,
        pooling: Pooling | None = None,
        hidden_dim: int | None = None,
        dropout: float = 0.0,
        frozen: bool = False,
    ):
        super().__init__(encoder, frozen=frozen)
        own: int | None = encoder.pooled_width
        if own is None and pooling is None:
            pooling = "attention"  # the encoder has no vector of the whole
        self.pooling = None if pooling is None else make_pooling(pooling, encoder.width)
        width: int = encoder.width if pooling is not None or own is None else own
        self.head = Classifier(width, classes, hidden_dim=hidden_dim, dropout=dropout)

    def forward(self, inputs: Mapping[str, Tensor]) -> Float[Tensor, "b c"]:
        found = self.encoder.encode(**inputs)
        pooled = found.pooled if self.pooling is None else self.pooling(found.states, found.valid)
        return self.head(pooled)


class Classify(Headed):
    """A model with a head, how it reads a text, and the names of its classes."""

    fields = ("text", "label")

    def __init__(self, model: Judge, inputs: Inputs, labels: Labels):
        self.model, self.inputs, self.labels = model, inputs, labels
        self.packed = not isinstance(inputs, Spelled)

    def pairs(self, records: Iterable[Mapping[str, str]], longest: int = 256) -> Iterator[Pair]:
        """Texts as ids, one by one; of longer ones the end is cut off."""
        stream = enumerate(records)
        while some := list(islice(stream, AT_ONCE)):
            rows = self.inputs.rows([record for _, record in some], longest)
            for (number, record), row in zip(some, rows, strict=True):
                label = self.labels.number(record["label"], f"record {number + 1}")
                yield Pair(number, row, [label])

    def collate(self, pairs: Sequence[Pair]) -> Labelled:
        return Labelled(
            torch.tensor([pair.number for pair in pairs]),
            self.inputs.tensors([pair.source for pair in pairs]),
            torch.tensor([pair.target[0] for pair in pairs]),
        )

    def loss(self, batch: Labelled, smoothing: float = 0.0) -> Loss:
        logits = self.model(batch.inputs)
        total = F.cross_entropy(logits, batch.labels, reduction="sum", label_smoothing=smoothing)
        return Loss(total, len(batch.labels))

    @torch.no_grad()
    def verdicts(
        self,
        records: Sequence[Mapping[str, str]],
        longest: int = 256,
        told: Callable[[int], None] | None = None,
    ) -> list[Verdict]:
        """What the model takes each text for; labels in the records are not looked at."""
        self.model.eval()
        rows = self.inputs.rows(records, longest) if records else []
        found: list[Verdict] = [Verdict("", {})] * len(rows)
        for batch in self.in_order([Pair(n, row, [0]) for n, row in enumerate(rows)]):
            for number, p in zip(batch.numbers.tolist(), self.model(batch.inputs), strict=True):
                shares = dict(zip(self.labels.names, p.softmax(-1).tolist(), strict=True))
                found[number] = Verdict(max(shares, key=shares.__getitem__), shares)
            if told is not None:
                told(len(batch.numbers))
        return found

    def looked(self, record: Mapping[str, str], longest: int = 256) -> dict[str, Tensor]:
        """Every weight that was paid while the text was read, by the name of the attention."""
        return self.seen(self.inputs.tensors(self.inputs.rows([record], longest)))

    def parts(self, record: Mapping[str, str], longest: int = 256) -> list[Part]:
        """What the verdict rests on: sentences with their words, or one part that is the text.

        Of a transformer's attentions it is what the last layer's first position looked at, in the
        mean of its heads; of several hops, their mean.
        """
        [row] = self.inputs.rows([record], longest)
        seen = self.looked(record, longest)
        if len(seen) == 2 and isinstance(self.inputs, BySentence):
            words, sentences = seen.values()
            return [
                Part(weight, self.inputs.tokens(ids), each[: len(ids)].tolist())
                for weight, ids, each in zip(
                    sentences[0, 0].tolist(), split(row), words[:, 0], strict=True
                )
            ]
        last = list(seen.values())[-1][0]
        weights = last.mean(0)[0] if last.ndim == 3 else last.mean(0)
        return [Part(1.0, self.inputs.tokens(row), weights.tolist())]
