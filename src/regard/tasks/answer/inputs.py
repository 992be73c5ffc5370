"""Inputs of encoders: questions with their contexts, and the offsets of tokens in their text.

Each layout tokenizes texts, converts a question and a window of its context to one row, and many
rows to the tensors that `encode` takes.
b: rows   t: positions of a row, or of the context   j: words of a question   c: characters
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from regard.batching.example import padded
from regard.errors import InputError
from regard.text.special import UNKNOWN
from regard.text.special_ids import AnyTokenizer
from regard.text.spelling import MAX_WORD_LENGTH, NO_WORD, spell

WORD = re.compile(r"\w+|[^\w\s]")  # letters and digits, or one punctuation mark


TokenT = TypeVar("TokenT", int, str)


@dataclass(frozen=True, slots=True)
class TokenizedText(Generic[TokenT]):
    """Tokens of a text, and the characters that each covers.

    Tokens are ids, or words if the encoder reads characters.
    """

    tokens: list[TokenT]
    offsets: list[tuple[int, int]]


@runtime_checkable
class Layout(Protocol[TokenT]):
    """Conversion of a question and a context to the inputs of an encoder."""

    can_pack: bool  # whether rows are ids and nothing else
    text: AnyTokenizer

    def tokenize(self, texts: Sequence[str]) -> list[TokenizedText[TokenT]]:
        """Convert each text to tokens with their offsets."""
        ...

    def context_capacity(self, question_tokens: int, max_tokens: int) -> int:
        """Return the number of context tokens that fit beside a question in `max_tokens`."""
        ...

    def token_ids(self, tokens: Sequence[TokenT]) -> list[int]:
        """Return the id of each token."""
        ...

    def row(self, question: Sequence[TokenT], context: Sequence[TokenT]) -> list[TokenT]:
        """Return one row of a question and a window of its context."""
        ...

    def context_start(self, question: Sequence[TokenT]) -> int:
        """Return the position at which the context starts in a row."""
        ...

    def tensors(
        self, rows: Sequence[Sequence[TokenT]], context_starts: Sequence[int]
    ) -> dict[str, Tensor]:
        """Return the padded arguments of `encode`.

        `begins` and `counts` are the start of the context and its length, if a row holds more.
        """
        ...

    def text_row(self, tokens: Sequence[TokenT]) -> list[TokenT]:
        """Return one row of a text alone."""
        ...

    def text_tensors(self, rows: Sequence[Sequence[TokenT]]) -> dict[str, Tensor]:
        """Return the padded arguments of `encode` for texts alone."""
        ...


AnyLayout = Layout[Any]
AnyTokenizedText = TokenizedText[Any]


class JoinedLayout:
    """START question END context END in one row, with segments for BERT.

    With `is_word_level`, tokens are words and punctuation marks; else those of the tokenizer.
    """

    can_pack = True

    def __init__(
        self,
        text: AnyTokenizer,
        start: int,
        end: int,
        *,
        segments: bool,
        is_word_level: bool = False,
    ):
        self.text, self.start, self.end = text, start, end
        self.segments, self.is_word_level = segments, is_word_level

    def tokenize(self, texts: Sequence[str]) -> list[TokenizedText[int]]:
        if not self.is_word_level:
            return [TokenizedText(*encoding) for encoding in self.text.encode_with_offsets(texts)]
        return [
            TokenizedText(word_ids(self.text, words.tokens), words.offsets)
            for words in map(split_words, texts)
        ]

    def token_ids(self, tokens: Sequence[int]) -> list[int]:
        return list(tokens)

    def context_capacity(self, question_tokens: int, max_tokens: int) -> int:
        return max_tokens - question_tokens

    def row(self, question: Sequence[int], context: Sequence[int]) -> list[int]:
        return [self.start, *question, self.end, *context, self.end]

    def context_start(self, question: Sequence[int]) -> int:
        return len(question) + 2

    def tensors(
        self, rows: Sequence[Sequence[int]], context_starts: Sequence[int]
    ) -> dict[str, Tensor]:
        ids, valid = padded(rows)
        starts = torch.tensor(context_starts)
        inputs = {"ids": ids, "valid": valid, "begins": starts}
        inputs["counts"] = valid.sum(1) - starts - 1
        if self.segments:
            inputs["segments"] = (valid & (torch.arange(ids.shape[1]) >= starts[:, None])).long()
        return inputs

    def text_row(self, tokens: Sequence[int]) -> list[int]:
        return [self.start, *tokens, self.end]

    def text_tensors(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        ids, valid = padded(rows)
        return {"ids": ids, "valid": valid}


class SeparateLayout:
    """Question and context in separate tensors, as words with their characters, for BiDAF."""

    can_pack = False

    def __init__(self, text: AnyTokenizer):
        self.text = text

    def tokenize(self, texts: Sequence[str]) -> list[TokenizedText[str]]:
        return [split_words(text) for text in texts]

    def token_ids(self, tokens: Sequence[str]) -> list[int]:
        return word_ids(self.text, tokens)

    def context_capacity(self, question_tokens: int, max_tokens: int) -> int:  # noqa: ARG002 - separate rows
        return max_tokens

    def row(self, question: Sequence[str], context: Sequence[str]) -> list[str]:
        return [*question, *context]

    def context_start(self, question: Sequence[str]) -> int:
        return len(question)

    def tensors(
        self, rows: Sequence[Sequence[str]], context_starts: Sequence[int]
    ) -> dict[str, Tensor]:
        rows_and_starts = list(zip(rows, context_starts, strict=True))
        question = self.word_tensors(
            [row[:context_start] for row, context_start in rows_and_starts]
        )
        context = self.word_tensors([row[context_start:] for row, context_start in rows_and_starts])
        return context | {f"question_{name}": tensor for name, tensor in question.items()}

    def text_row(self, tokens: Sequence[str]) -> list[str]:
        raise InputError(
            f"text {' '.join(tokens)[:20]!r}: BiDAF reads a question with its context, and has no "
            "vector of one text; use a run of another model"
        )

    def text_tensors(self, rows: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        return self.word_tensors(rows)

    def word_tensors(self, rows: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """Return ids and characters; look up each distinct word once."""
        words = sorted({word for row in rows for word in row})
        word_indices = {word: index for index, word in enumerate(words)}
        indices, valid = padded([[word_indices[word] for word in row] for row in rows])
        ids = torch.tensor(word_ids(self.text, words))
        characters = torch.tensor([spell(word) for word in words])
        padding = torch.full((MAX_WORD_LENGTH,), NO_WORD)
        return {
            "ids": ids[indices].masked_fill(~valid, 0),
            "characters": torch.where(valid[..., None], characters[indices], padding),
            "valid": valid,
        }


def split_words(text: str) -> TokenizedText[str]:
    """Split a text into words and punctuation marks."""
    matches = list(WORD.finditer(text))
    return TokenizedText(
        [sys.intern(match[0]) for match in matches], [match.span() for match in matches]
    )


def word_ids(text: AnyTokenizer, words: Sequence[str]) -> list[int]:
    """Return an id for each word: UNKNOWN for a word with several ids or none."""
    if not words:
        return []
    return [ids[0] if len(ids) == 1 else UNKNOWN for ids in text.encode_ids(list(words))]


def sliding_windows(count: int, size: int, stride: int) -> Iterator[tuple[int, int]]:
    """Yield (first, last + 1) of windows of at most `size` tokens that cover `count` tokens."""
    first, step = 0, min(stride, size)
    while first + size < count:
        yield first, first + size
        first += step
    yield first, count


def token_span(offsets: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int] | None:
    """Return the first and the last token that overlaps text[start:end]; None without one."""
    inside = [
        n
        for n, (token_start, token_end) in enumerate(offsets)
        if token_start < end and token_end > start
    ]
    return (inside[0], inside[-1]) if inside else None


def contains(window: tuple[int, int], span: tuple[int, int]) -> bool:
    """Return whether a window holds all tokens of a span."""
    return window[0] <= span[0] and span[1] < window[1]
