"""The state of each residue of a protein: helix, strand or coil; any encoder with a head on it.

    loss = - sum over residues of log p(state | all residues of the window)

A protein longer than `longest` is read in windows that overlap by half. In training every residue
of a window counts; else each is told by that window in whose middle it is most.
b: windows   s: sequences   r: residues   k: states
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.attend.tap import named_attentions, observe
from regard.batch.batches import in_order
from regard.batch.pair import Pair, padded
from regard.corpora.proteins import ALPHABET, OTHER, UNTOLD
from regard.encode.head import Classifier
from regard.tasks.headed import Headed, OnEncoder
from regard.tasks.loss import Loss
from regard.tasks.translate import ROOM
from regard.text.labels import Labels

UNSEEN = -100  # a state that does not count
PAIRS = 2**17  # pairs of residues that are thought of at once, when none is learnt from
NUMBERS = {letter: number for number, letter in enumerate(ALPHABET, 1)}  # 0 is padding
SIZE = len(ALPHABET) + 1


class Folded(NamedTuple):
    """A sequence, the likeliest state of each residue, and the probabilities of all states."""

    sequence: str
    states: str
    probabilities: list[list[float]]


class Window(NamedTuple):
    """Residues that are read, and those that are told of them."""

    read: range
    told: range


@dataclass(frozen=True)
class Residues:
    """Windows as an encoder wants them, and the states of their residues."""

    numbers: Int[Tensor, " b"]
    inputs: dict[str, Tensor]
    states: Int[Tensor, "b r"]


class Teller(OnEncoder):
    """An encoder with a head for each residue."""

    def __init__(
        self, encoder: Any, states: int, *, hidden_dim: int | None = None, dropout: float = 0.0
    ):
        super().__init__(encoder)
        self.head = Classifier(encoder.width, states, hidden_dim=hidden_dim, dropout=dropout)

    def forward(self, inputs: Mapping[str, Tensor]) -> Float[Tensor, "b r k"]:
        return self.head(self.encoder.encode(**inputs).states)


class Fold(Headed):
    """`aligned`: the encoder reads aligned sequences; else of each protein the first alone."""

    fields = ("text", "states")

    def __init__(self, model: Teller, states: Labels, *, aligned: bool):
        self.model, self.states, self.aligned = model, states, aligned

    def pairs(
        self, records: Iterable[Mapping[str, str]], longest: int, *, every: bool = True
    ) -> Iterator[Pair]:
        """Windows of columns of letters, with states; of all residues, or of those told there."""
        numbers = {**self.states.numbers, UNTOLD: UNSEEN}
        for number, record in enumerate(records):
            columns = self.columns(record["text"])
            states = [numbers.get(state, UNSEEN) for state in record["states"]]
            for window in windows(len(columns), longest):
                counted = window.read if every else window.told
                yield Pair(
                    number,
                    columns[window.read.start : window.read.stop],
                    [states[at] if at in counted else UNSEEN for at in window.read],
                )

    def columns(self, text: str) -> list[tuple[int, ...]]:
        """For each residue, the letters of all sequences there, as numbers."""
        rows = text.split() if self.aligned else text.split()[:1]
        numbers = [[NUMBERS.get(letter, NUMBERS[OTHER]) for letter in row] for row in rows]
        return list(zip(*numbers, strict=True))

    def collate(self, pairs: Sequence[Pair]) -> Residues:
        states, _ = padded([[*pair.target] for pair in pairs])
        inputs = self.tensors([pair.source for pair in pairs])
        return Residues(
            torch.tensor([pair.number for pair in pairs]),
            inputs,
            states.masked_fill(~inputs["valid"], UNSEEN),
        )

    def tensors(self, windows: Sequence[Sequence[tuple[int, ...]]]) -> dict[str, Tensor]:
        if not self.aligned:
            ids, valid = padded([[column[0] for column in one] for one in windows])
            return {"ids": ids, "valid": valid}
        lengths = torch.tensor([len(one) for one in windows])
        many = torch.tensor([len(one[0]) for one in windows])
        ids = torch.zeros(len(windows), int(many.max()), int(lengths.max()), dtype=torch.int64)
        for row, columns in enumerate(windows):
            ids[row, : many[row], : lengths[row]] = torch.tensor(columns).T
        return {
            "ids": ids,
            "valid": torch.arange(ids.shape[2]) < lengths[:, None],
            "real": torch.arange(ids.shape[1]) < many[:, None],
        }

    def loss(self, batch: Residues, smoothing: float = 0.0) -> Loss:
        logits, counted = self.model(batch.inputs), batch.states != UNSEEN
        total = F.cross_entropy(
            logits[counted], batch.states[counted], reduction="sum", label_smoothing=smoothing
        )
        return Loss(total, int(counted.sum()))

    @torch.no_grad()
    def folded(
        self,
        texts: Sequence[str],
        longest: int,
        told: Callable[[int], None] | None = None,
    ) -> list[Folded]:
        """What the model says of each protein, window by window, put together again."""
        self.model.eval()
        cut = [windows(len(text.split()[0]), longest) for text in texts]
        places = [(n, window) for n, some in enumerate(cut) for window in some]
        columns = [self.columns(text) for text in texts]
        rows = [torch.zeros(len(one), self.states.size, dtype=torch.float64) for one in columns]
        pairs = [
            Pair(at, columns[n][window.read.start : window.read.stop], [0] * len(window.read))
            for at, (n, window) in enumerate(places)
        ]
        for batch in self.in_order(pairs):
            shares = self.model(batch.inputs).softmax(-1).double()
            for at, number in enumerate(batch.numbers.tolist()):
                n, window = places[number]
                first = window.told.start - window.read.start
                part = shares[at, first : first + len(window.told)]
                rows[n][window.told.start : window.told.stop] = part
            if told is not None:  # a protein is counted when its last window is
                ends = (places[one] for one in batch.numbers.tolist())
                told(sum(window.told.stop == len(rows[n]) for n, window in ends))
        names = self.states.names
        return [
            Folded(
                text.split()[0],
                "".join(names[one] for one in table.argmax(-1).tolist()),
                table.tolist(),
            )
            for text, table in zip(texts, rows, strict=True)
        ]

    @torch.no_grad()
    def looked(self, text: str, longest: int) -> dict[str, Float[Tensor, "h r r"]]:
        """What residues looked at, of the first sequence, by layer; of the first window."""
        try:
            known = named_attentions(self.model.eval())
        except ValueError:
            return {}
        names = [name for name in known if not re.search(r"\b(edges|columns|pooling)\b", name)]
        with observe(self.model, names) as seen:
            self.model(self.tensors([self.columns(text)[:longest]]))
        return {
            name.removeprefix("encoder."): weights[0, 0] if weights.ndim == 5 else weights[0]
            for name, weights in seen.whole().items()
        }

    def in_order(self, pairs: Sequence[Pair]) -> Iterator[Residues]:
        """So many at once that their pairs fit, where there are pairs."""
        if not pairs:
            return iter(())
        most = max(len(pair.source) for pair in pairs)
        together = max(1, PAIRS // most**2) if self.aligned else None
        return in_order(pairs, tokens=max(ROOM, most + 1), sentences=together, collate=self.collate)


def windows(length: int, longest: int) -> list[Window]:
    """Overlapping by half; a residue is told where it is nearest to the middle."""
    if length <= longest:
        return [Window(range(length), range(length))]
    starts = [*range(0, length - longest, max(1, longest // 2)), length - longest]
    ends = [(a + b + longest) // 2 for a, b in pairwise(starts)]
    return [
        Window(range(start, start + longest), range(low, high))
        for start, low, high in zip(starts, [0, *ends], [*ends, length], strict=True)
    ]
