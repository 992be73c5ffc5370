"""Texts as encoders want them: in a row, with marks, by sentence.

Each way makes one row of ids of a text (and of a second one, if the record has a `pair`), which is
what is kept and sorted by length; and, of many rows, the tensors that `encode` takes.
b: texts   t: positions   s: sentences   w: words of a sentence
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from regard.batch.pair import padded
from regard.text.marks import AnyTokeniser
from regard.text.sentences import sentences
from regard.text.special import END, PAD, START


@runtime_checkable
class Inputs(Protocol):
    """Rows hold at most `longest` ids of text; what is more is cut off at the end."""

    def rows(self, records: Sequence[Mapping[str, str]], longest: int) -> list[list[int]]: ...

    def tensors(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]: ...

    def tokens(self, row: Sequence[int]) -> list[str]:
        """What stands at each position that a model sees."""
        ...


class Plain:
    """a END, or a END b END."""

    def __init__(self, text: AnyTokeniser, end: int = END):
        self.text, self.end = text, end

    def rows(self, records: Sequence[Mapping[str, str]], longest: int) -> list[list[int]]:
        firsts = self.text.ids([record["text"] for record in records])
        if not records or "pair" not in records[0]:
            return [[*ids[:longest], self.end] for ids in firsts]
        seconds = self.text.ids([record["pair"] for record in records])
        both = (shared(a, b, longest) for a, b in zip(firsts, seconds, strict=True))
        return [[*a, self.end, *b, self.end] for a, b in both]

    def tensors(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        ids, valid = padded(rows)
        return {"ids": ids, "valid": valid}

    def tokens(self, row: Sequence[int]) -> list[str]:
        return [self.text.token(number) for number in row]


class Marked(Plain):
    """START a END, or START a END b END, with the number of the segment: BERT's [CLS] and [SEP]."""

    def __init__(
        self, text: AnyTokeniser, start: int = START, end: int = END, *, segments: bool = True
    ):
        super().__init__(text, end)
        self.start, self.segments = start, segments

    def rows(self, records: Sequence[Mapping[str, str]], longest: int) -> list[list[int]]:
        return [[self.start, *row] for row in super().rows(records, longest)]

    def tensors(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        ids, valid = padded(rows)
        if not self.segments:
            return {"ids": ids, "valid": valid}
        ends = (ids == self.end).int()
        segments = (ends.cumsum(1) - ends).clamp(max=1) * valid  # a mark belongs to what it ends
        return {"ids": ids, "valid": valid, "segments": segments.long()}


class BySentence:
    """Sentences, each with END behind it; as a table of sentences for each text."""

    def __init__(self, text: AnyTokeniser):
        self.text = text

    def rows(self, records: Sequence[Mapping[str, str]], longest: int) -> list[list[int]]:
        found = []
        for record in records:
            parts = self.text.ids(sentences(record["text"]))
            row = [number for ids in parts for number in (*ids, END)]
            found.append(row[:longest] if len(row) <= longest else [*row[: longest - 1], END])
        return found

    def tensors(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        documents = [split(row) for row in rows]
        most = max(len(sentence) for document in documents for sentence in document)
        count = max(map(len, documents))
        ids = torch.full((len(rows), count, most), PAD)
        valid = torch.zeros(ids.shape, dtype=torch.bool)
        for i, document in enumerate(documents):
            for j, sentence in enumerate(document):
                ids[i, j, : len(sentence)] = torch.tensor(sentence)
                valid[i, j, : len(sentence)] = True
        return {"ids": ids, "valid": valid}

    def tokens(self, row: Sequence[int]) -> list[str]:
        return [self.text.token(number) for number in row]


def split(row: Sequence[int]) -> list[list[int]]:
    """The sentences of a row, each with its END."""
    found, sentence = list[list[int]](), list[int]()
    for number in row:
        sentence.append(number)
        if number == END:
            found.append(sentence)
            sentence = []
    return found


def shared(
    first: Sequence[int], second: Sequence[int], longest: int
) -> tuple[Sequence[int], Sequence[int]]:
    """Both within `longest`: the longer one gives way, down to half, as in BERT."""
    half = longest // 2
    over = len(first) + len(second) - longest
    if over <= 0:
        return first, second
    if len(second) <= half:
        return first[: longest - len(second)], second
    if len(first) <= longest - half:
        return first, second[: longest - len(first)]
    return first[: longest - half], second[:half]
