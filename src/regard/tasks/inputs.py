"""Texts as encoders want them: in a row, with marks, by sentence, by letters.

Each way makes one row of ids of a text (and of a second one, if the record has a `pair`), which is
what is kept and sorted by length; and, of many rows, the tensors that `encode` takes.
b: texts   t: positions   s: sentences   w: words of a sentence   c: characters of a word
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regard.batch.pair import padded
from regard.text.marks import AnyTokeniser
from regard.text.sentences import sentences
from regard.text.special import END, PAD, START
from regard.text.spelling import NO_WORD, spell_sentence

T = TypeVar("T")


@runtime_checkable
class Inputs(Protocol):
    """Rows hold at most `longest` ids of text; what is more is cut off at the end.

    Where letters are read, they hold words.
    """

    def rows(self, records: Sequence[Mapping[str, str]], longest: int) -> list[list[Any]]: ...

    def tensors(self, rows: Sequence[Sequence[Any]]) -> dict[str, Tensor]: ...

    def tokens(self, row: Sequence[Any]) -> list[str]:
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


class Spelled:
    """Words by their letters, known or not: ELMo's. Two texts have an empty word between them."""

    def __init__(self, text: AnyTokeniser):
        self.text = text

    def rows(self, records: Sequence[Mapping[str, str]], longest: int) -> list[list[str]]:
        found = []
        for record in records:
            first = self.text.words(record["text"])
            if "pair" not in record:
                found.append(first[:longest] or [""])  # a text without words is an empty one
                continue
            a, b = shared(first, self.text.words(record["pair"]), longest)
            found.append([*a, "", *b])
        return found

    def tensors(self, rows: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        spelled = [spell_sentence(row) for row in rows]
        lengths = torch.tensor([len(words) for words in spelled])
        characters = pad_sequence([torch.tensor(one) for one in spelled], True, NO_WORD)
        valid = torch.arange(characters.shape[1]) < lengths[:, None]
        return {"characters": characters, "valid": valid}

    def tokens(self, row: Sequence[str]) -> list[str]:
        return list(row)


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
    first: Sequence[T], second: Sequence[T], longest: int
) -> tuple[Sequence[T], Sequence[T]]:
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
