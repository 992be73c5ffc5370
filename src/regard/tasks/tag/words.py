"""Words of ordinary text, split as the training data is.

`Ada met Bob.` is three words or four: the training data decides whether the period is a word.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from regard.errors import InputError
from regard.files import write_atomic
from regard.parsing import read_json

WORD = re.compile(r"\S+")


class Word(NamedTuple):
    """A word and its characters in a text: `text[start:end]`."""

    text: str
    start: int
    end: int


class WordSplitter:
    """Splits text at white space, and splits `marks` from words; words in `exceptions` are kept.

    >>> splitter = WordSplitter([",", "."], ["U.S."])
    >>> [word.text for word in splitter.split("Ada left the U.S., then London.")]
    ['Ada', 'left', 'the', 'U.S.', ',', 'then', 'London', '.']
    """

    def __init__(self, marks: Iterable[str] = (), exceptions: Iterable[str] = ()):
        self.marks, self.exceptions = frozenset(marks), frozenset(exceptions)

    @classmethod
    def from_data(cls, sentences: Iterable[Iterable[str]]) -> "WordSplitter":
        """Learn which marks are words of their own more often than part of another word."""
        counts = Counter(word for sentence in sentences for word in sentence)
        alone, attached = Counter[str](), Counter[str]()
        marked_words: list[str] = []
        for word, count in counts.items():
            ends = {mark for mark in (word[0], word[-1]) if is_mark(mark)}
            if len(word) == 1:
                alone.update(dict.fromkeys(ends, count))
            elif ends:
                attached.update(dict.fromkeys(ends, count))
                marked_words.append(word)
        marks = {mark for mark, count in alone.items() if count > attached[mark]}
        return cls(marks, (word for word in marked_words if marks & {word[0], word[-1]}))

    def split(self, text: str) -> list[Word]:
        """Return the words of a text with their positions."""
        return [word for match in WORD.finditer(text) for word in self._parts(text, *match.span())]

    def _parts(self, text: str, start: int, end: int) -> Iterator[Word]:
        """Yield the marks before a word, the word, and the marks after it."""
        after: list[Word] = []
        while end - start > 1 and text[start:end] not in self.exceptions:
            if text[end - 1] in self.marks:
                after.append(Word(text[end - 1], end - 1, end))
                end -= 1
            elif text[start] in self.marks:
                yield Word(text[start], start, start + 1)
                start += 1
            else:
                break
        yield Word(text[start:end], start, end)
        yield from reversed(after)

    def save(self, path: Path) -> None:
        data = {"marks": sorted(self.marks), "exceptions": sorted(self.exceptions)}
        write_atomic(path, (json.dumps(data, ensure_ascii=False) + "\n").encode())

    @classmethod
    def load(cls, path: Path) -> "WordSplitter":
        problem = "this must be an object with marks and exceptions"
        data = read_json(path, problem)
        if isinstance(data, dict):
            marks, exceptions = (text_list(data.get(name)) for name in ("marks", "exceptions"))
            if marks is not None and exceptions is not None:
                return cls(marks, exceptions)
        raise InputError(f"{path}: {problem}")


def text_list(data: object) -> list[str] | None:
    """Return a list of texts, or None if this is none."""
    if not isinstance(data, list):
        return None
    texts = [item for item in data if isinstance(item, str)]
    return texts if len(texts) == len(data) else None


def is_mark(character: str) -> bool:
    """Return whether a character is punctuation, in any script."""
    return unicodedata.category(character).startswith("P")


def whitespace_words(text: str) -> list[Word]:
    """Return the words between white space, as data files have them."""
    return [Word(match[0], *match.span()) for match in WORD.finditer(text)]
