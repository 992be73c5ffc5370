"""Answering a question by a stretch of a context; any encoder with a head on it.

    p(start), p(end) = softmax over [none; the parts of the context]
    loss = -log p(start) - log p(end);  none where the answer is not in the window
b: windows   p: 1 + parts of a context; the first place is for none   d: width
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.batch.pair import Pair
from regard.encode.head import Classifier
from regard.encode.span import best_spans
from regard.encode.states import SpanStates
from regard.tasks.answer_inputs import Cut, Layout, covered, windows
from regard.tasks.headed import Headed, OnEncoder
from regard.tasks.loss import Loss
from regard.tasks.translate import AT_ONCE

KEPT = 5  # answers that are told
BESIDE = 6  # parts of the context, on each side of an answer, that are shown with it


class Read(NamedTuple):
    """How much speaks for each place as the first of an answer, and as its last; -inf: padding."""

    starts: Float[Tensor, "b p"]
    ends: Float[Tensor, "b p"]


class Stretch(NamedTuple):
    """context[start:end], its probability, and the log of its odds against no answer."""

    text: str
    start: int
    end: int
    probability: float
    score: float


class Answer(NamedTuple):
    """What is said (None: that there is no answer), the best stretches, and p(no answer)."""

    said: Stretch | None
    stretches: list[Stretch]
    none: float

    @property
    def text(self) -> str:
        return "" if self.said is None else self.said.text


class Asking(NamedTuple):
    """`weights[j][t]`: how much part t of the context looked at part j of the question."""

    weights: list[list[float]]
    question: list[str]
    context: list[str]


@dataclass(frozen=True)
class Questions:
    """As an encoder wants them, and where their answers are: 0 is none, else from 1."""

    numbers: Int[Tensor, " b"]
    inputs: dict[str, Tensor]
    starts: Int[Tensor, " b"]
    ends: Int[Tensor, " b"]


class Reader(OnEncoder):
    """An encoder with a head for the first and one for the last part of an answer.

    No answer is the first position of a row (BERT's [CLS]); where the encoder has the context
    `apart`, it has one energy for all contexts (Levy et al. 2017, 3.2). `threshold` is the score
    below which a question is left without an answer.
    """

    threshold: Tensor

    def __init__(
        self,
        encoder: Any,
        *,
        apart: bool = False,
        hidden_dim: int | None = None,
        dropout: float = 0.0,
        frozen: bool = False,
    ):
        super().__init__(encoder, frozen=frozen)
        self.start, self.end = (
            Classifier(encoder.width, 1, hidden_dim=hidden_dim, dropout=dropout) for _ in range(2)
        )
        self.none = nn.Parameter(torch.zeros(2)) if apart else None
        self.register_buffer("threshold", torch.zeros(()))

    def forward(self, inputs: Mapping[str, Tensor]) -> Read:
        given = {name: one for name, one in inputs.items() if name not in ("begins", "counts")}
        found = self.encoder.encode(**given)
        ends = found.ends if isinstance(found, SpanStates) else found.states
        sides = self.start(found.states)[..., 0], self.end(ends)[..., 0]
        if self.none is None:
            return Read(*(picked(side, inputs["begins"], inputs["counts"]) for side in sides))
        energies = (side.masked_fill(~found.valid, -torch.inf) for side in sides)
        first = self.none[:, None, None].expand(2, len(found.valid), 1)
        return Read(*(torch.cat(both, 1) for both in zip(first, energies, strict=True)))


def picked(
    energy: Float[Tensor, "b t"], begins: Int[Tensor, " b"], counts: Int[Tensor, " b"]
) -> Float[Tensor, "b p"]:
    """That of the first position, and those of the context."""
    step = torch.arange(max(1, int(counts.max())), device=energy.device)
    places = (begins[:, None] + step).clamp(max=energy.shape[1] - 1)
    inside = energy.gather(1, places).masked_fill(step >= counts[:, None], -torch.inf)
    return torch.cat([energy[:, :1], inside], 1)


class Answering(Headed):
    """A model, how it reads, how long an answer and a window may be, and whether there is one."""

    def __init__(
        self,
        model: Reader,
        layout: Layout,
        *,
        longest: int = 30,
        stride: int = 128,
        no_answer: bool = False,
    ):
        self.model, self.layout = model, layout
        self.longest, self.stride, self.no_answer = longest, stride, no_answer
        self.packed = layout.packed

    def cut(self, records: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Any, Cut, Cut]]:
        """Records with their question and their context in parts; each context is cut once."""
        stream = iter(records)
        while some := list(islice(stream, AT_ONCE)):
            contexts = list(dict.fromkeys(record["text"] for record in some))
            known = dict(zip(contexts, self.layout.cut(contexts), strict=True))
            asked = self.layout.cut([record["question"] for record in some])
            for record, question in zip(some, asked, strict=True):
                yield record, question, known[record["text"]]

    def windows(self, question: Cut, context: Cut, longest: int) -> Iterator[tuple[int, int]]:
        """Of the context; a question has half of all positions, at most."""
        room = self.layout.room(min(len(question.parts), longest // 2), longest)
        return windows(len(context.parts), room, self.stride)

    def pairs(self, records: Iterable[Mapping[str, Any]], longest: int = 384) -> Iterator[Pair]:
        """Windows with the first answer of each question, as [begin, first, last]; 0: none.

        A question whose answer is in no window as a whole is left out.
        """
        for number, (record, question, context) in enumerate(self.cut(records)):
            true = None
            if record["answers"]:
                answer = record["answers"][0]
                end = answer["start"] + len(answer["text"])
                true = covered(context.places, answer["start"], end)
            found = list(self.windows(question, context, longest))
            if record["answers"] and not any(true and holds(one, true) for one in found):
                continue
            for first, last in found:
                row, begin = self.row(question, context, first, last, longest)
                here = [0, 0]
                if true is not None and holds((first, last), true):
                    here = [place - first + 1 for place in true]
                yield Pair(number, row, [begin, *here])

    def row(
        self, question: Cut, context: Cut, first: int, last: int, longest: int
    ) -> tuple[list[Any], int]:
        asked = question.parts[: longest // 2]
        return self.layout.row(asked, context.parts[first:last]), self.layout.begin(asked)

    def collate(self, pairs: Sequence[Pair]) -> Questions:
        begins, starts, ends = zip(*(pair.target for pair in pairs), strict=True)
        return Questions(
            torch.tensor([pair.number for pair in pairs]),
            self.layout.tensors([pair.source for pair in pairs], begins),
            torch.tensor(starts),
            torch.tensor(ends),
        )

    def loss(self, batch: Questions, smoothing: float = 0.0) -> Loss:
        read = self.model(batch.inputs)
        first = surprise(read.starts, batch.starts, smoothing)
        return Loss(first + surprise(read.ends, batch.ends, smoothing), len(batch.numbers))

    @torch.no_grad()
    def answers(
        self,
        records: Sequence[Mapping[str, Any]],
        longest: int = 384,
        told: Callable[[int], None] | None = None,
    ) -> list[Answer]:
        """To each question; true answers in the records are not looked at."""
        self.model.eval()
        cut = list(self.cut(records))
        pairs, where = list[Pair](), list[tuple[int, int]]()
        for number, (_, question, context) in enumerate(cut):
            for first, last in self.windows(question, context, longest):
                row, begin = self.row(question, context, first, last, longest)
                pairs.append(Pair(len(pairs), row, [begin, 0, 0]))
                where.append((number, first))
        found: list[dict[tuple[int, int], float]] = [{} for _ in cut]
        totals: list[list[float]] = [[] for _ in cut]
        for batch in self.in_order(pairs):
            read = self.model(batch.inputs)
            spans = best_spans(read.starts, read.ends, self.longest)
            for at, window in enumerate(batch.numbers.tolist()):
                number, first = where[window]
                totals[number].append(spans.total[at].item())
                rows = (one[at].tolist() for one in spans[:3])
                for score, start, end in zip(*rows, strict=True):
                    span = first + start, first + end
                    if score > found[number].get(span, -math.inf):  # the better of two windows
                        found[number][span] = score
            if told is not None:  # a question counts with its first window
                told(sum(where[n][1] == 0 for n in batch.numbers.tolist()))
        return [
            self.chosen(record["text"], context.places, scores, total)
            for (record, _, context), scores, total in zip(cut, found, totals, strict=True)
        ]

    def chosen(
        self,
        text: str,
        places: Sequence[tuple[int, int]],
        scores: Mapping[tuple[int, int], float],
        totals: Sequence[float],
    ) -> Answer:
        """The best of all windows. Probabilities are of all that may be said, in any window."""
        everything = log_sum([*totals, *([0.0] if self.no_answer else [])])
        ordered = sorted(scores.items(), key=lambda one: (-one[1], one[0]))[:KEPT]
        best = [
            stretch(text, places[s][0], places[e][1], math.exp(score - everything), score)
            for (s, e), score in ordered
        ]
        none = math.exp(-everything) if self.no_answer else 0.0
        leave = not best or (self.no_answer and best[0].score < self.model.threshold.item())
        return Answer(None if leave else best[0], best, none)

    def asks(self, record: Mapping[str, Any], longest: int = 384) -> Asking | None:
        """What parts of the context at the best answer look at in the question; None: nothing.

        Of a transformer's attentions it is the last layer's, in the mean of its heads.
        """
        [(_, question, context)] = self.cut([record])
        [answer] = self.answers([record], longest)
        near = answer.stretches[0]
        here = covered(context.places, near.start, near.end) or (0, 0)
        found = list(self.windows(question, context, longest))
        first, last = next((one for one in found if holds(one, here)), found[0])
        row, begin = self.row(question, context, first, last, longest)
        seen = self.seen(self.layout.tensors([row], [begin]))
        low, high = max(first, here[0] - BESIDE), min(last, here[1] + 1 + BESIDE)
        asked = question.places[: longest // 2]
        if "encoder.c2q" in seen:
            table = seen["encoder.c2q"][0, low - first : high - first]
        else:
            square = [w[0] for w in seen.values() if w.shape[-1] == w.shape[-2] == len(row)]
            if not square:
                return None
            whole = square[-1].mean(0) if square[-1].ndim == 3 else square[-1]
            table = whole[begin + low - first : begin + high - first, 1 : 1 + len(asked)]
        return Asking(
            table.mT.tolist(),
            [record["question"][start:end] for start, end in asked],
            [record["text"][start:end] for start, end in context.places[low:high]],
        )


def surprise(energy: Tensor, true: Tensor, smoothing: float) -> Tensor:
    """-log p of what is true, summed; a share `smoothing` of it goes to all places that are."""
    logs = energy.log_softmax(-1)
    wanted = -logs.gather(1, true[:, None]).sum()
    if not smoothing:
        return wanted
    real = energy > -torch.inf
    even = -(logs.masked_fill(~real, 0.0).sum(1) / real.sum(1)).sum()
    return (1 - smoothing) * wanted + smoothing * even


def holds(window: tuple[int, int], answer: tuple[int, int]) -> bool:
    return window[0] <= answer[0] and answer[1] < window[1]


def log_sum(scores: Sequence[float]) -> float:
    top = max(scores, default=-math.inf)
    return top + math.log(sum(math.exp(one - top) for one in scores)) if top > -math.inf else top


def stretch(text: str, start: int, end: int, probability: float, score: float) -> Stretch:
    """Without white space at its ends, which some tokens have."""
    said = text[start:end]
    start += len(said) - len(said.lstrip())
    said = said.strip()
    return Stretch(said, start, start + len(said), probability, score)
