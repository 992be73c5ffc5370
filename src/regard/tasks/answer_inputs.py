"""Questions with their contexts as encoders want them, and where each part of a text stands.

Each way cuts texts into parts, makes one row of a question and a window of its context, and of many
rows the tensors that `encode` takes. `begin` is where the context begins in a row.
b: rows   t: positions of a row, or of the context   j: words of a question   c: characters
"""

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from regard.batch.pair import padded
from regard.text.marks import AnyTokeniser
from regard.text.special import UNKNOWN
from regard.text.spelling import LONGEST, NO_WORD, spell

WORD = re.compile(r"\w+|[^\w\s]")  # letters and digits, or one mark


class Cut(NamedTuple):
    """A text in parts (ids; words, where letters are read), and from where to where each goes."""

    parts: list[Any]
    places: list[tuple[int, int]]


@runtime_checkable
class Layout(Protocol):
    packed: bool

    def cut(self, texts: Sequence[str]) -> list[Cut]: ...

    def room(self, asked: int, longest: int) -> int:
        """Parts of a context that fit beside a question of so many, in `longest` positions."""
        ...

    def row(self, question: Sequence[Any], context: Sequence[Any]) -> list[Any]: ...

    def begin(self, question: Sequence[Any]) -> int: ...

    def tensors(self, rows: Sequence[Sequence[Any]], begins: Sequence[int]) -> dict[str, Tensor]:
        """Those that the encoder takes; and `begins` and `counts`, if context is but a part."""
        ...


class Joined:
    """START question END context END, in one row; BERT's, with segments.

    A vocabulary of words is given words and marks apart; any other cuts a text itself.
    """

    packed = True

    def __init__(
        self, text: AnyTokeniser, start: int, end: int, *, segments: bool, words: bool = False
    ):
        self.text, self.start, self.end = text, start, end
        self.segments, self.words = segments, words

    def cut(self, texts: Sequence[str]) -> list[Cut]:
        if not self.words:
            return [Cut(*one) for one in self.text.placed(texts)]
        return [Cut(numbers(self.text, parts), places) for parts, places in map(words_of, texts)]

    def room(self, asked: int, longest: int) -> int:
        return longest - asked

    def row(self, question: Sequence[int], context: Sequence[int]) -> list[int]:
        return [self.start, *question, self.end, *context, self.end]

    def begin(self, question: Sequence[int]) -> int:
        return len(question) + 2

    def tensors(self, rows: Sequence[Sequence[int]], begins: Sequence[int]) -> dict[str, Tensor]:
        ids, valid = padded(rows)
        first = torch.tensor(begins)
        found = {"ids": ids, "valid": valid, "begins": first}
        found["counts"] = valid.sum(1) - first - 1
        if self.segments:
            found["segments"] = (valid & (torch.arange(ids.shape[1]) >= first[:, None])).long()
        return found


class Apart:
    """Question and context each by itself, as words with their letters: BiDAF's."""

    packed = False

    def __init__(self, text: AnyTokeniser):
        self.text = text

    def cut(self, texts: Sequence[str]) -> list[Cut]:
        return [words_of(text) for text in texts]

    def room(self, asked: int, longest: int) -> int:  # noqa: ARG002 - they do not share it
        return longest

    def row(self, question: Sequence[str], context: Sequence[str]) -> list[str]:
        return [*question, *context]

    def begin(self, question: Sequence[str]) -> int:
        return len(question)

    def tensors(self, rows: Sequence[Sequence[str]], begins: Sequence[int]) -> dict[str, Tensor]:
        both = list(zip(rows, begins, strict=True))
        asked = self.spelled([row[:begin] for row, begin in both])
        context = self.spelled([row[begin:] for row, begin in both])
        return context | {f"question_{name}": one for name, one in asked.items()}

    def spelled(self, rows: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """Ids and letters; each different word is looked up once."""
        words = sorted({word for row in rows for word in row})
        which = {word: number for number, word in enumerate(words)}
        places, valid = padded([[which[word] for word in row] for row in rows])
        ids = torch.tensor(numbers(self.text, words))
        letters = torch.tensor([spell(word) for word in words])
        none = torch.full((LONGEST,), NO_WORD)
        return {
            "ids": ids[places].masked_fill(~valid, 0),
            "characters": torch.where(valid[..., None], letters[places], none),
            "valid": valid,
        }


def words_of(text: str) -> Cut:
    found = list(WORD.finditer(text))
    return Cut([sys.intern(one[0]) for one in found], [one.span() for one in found])


def numbers(text: AnyTokeniser, words: Sequence[str]) -> list[int]:
    """The ids of words; of one with several or none it is that of the unknown."""
    if not words:
        return []
    return [ids[0] if len(ids) == 1 else UNKNOWN for ids in text.ids(list(words))]


def windows(count: int, room: int, stride: int) -> Iterator[tuple[int, int]]:
    """From where to where: all of `count` parts, at most `room` at a time."""
    first, step = 0, min(stride, room)
    while first + room < count:
        yield first, first + room
        first += step
    yield first, count


def covered(places: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int] | None:
    """The first and the last part that have a character of text[start:end]; None if none has."""
    inside = [n for n, (a, b) in enumerate(places) if a < end and b > start]
    return (inside[0], inside[-1]) if inside else None
