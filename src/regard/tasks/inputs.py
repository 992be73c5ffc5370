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

from regard.batching.example import padded
from regard.text.sentences import split_sentences
from regard.text.special import END, PAD, START
from regard.text.special_ids import AnyTokenizer
from regard.text.spelling import NO_WORD, spell_sentence

T = TypeVar("T")


@runtime_checkable
class Inputs(Protocol):
    """Rows hold at most `longest` ids of text; what is more is cut off at the end.

    Where letters are read, they hold words.
    """

    def rows(self, records: Sequence[Mapping[str, str]], max_tokens: int) -> list[list[Any]]: ...

    def tensors(self, rows: Sequence[Sequence[Any]]) -> dict[str, Tensor]: ...

    def tokens(self, row: Sequence[Any]) -> list[str]:
        """What stands at each position that a model sees."""
        ...


class PlainInputs:
    """a END, or a END b END."""

    def __init__(self, text: AnyTokenizer, end: int = END):
        self.text, self.end = text, end

    def rows(self, records: Sequence[Mapping[str, str]], max_tokens: int) -> list[list[int]]:
        firsts = self.text.encode_ids([record["text"] for record in records])
        if not records or "pair" not in records[0]:
            return [[*ids[:max_tokens], self.end] for ids in firsts]
        seconds = self.text.encode_ids([record["pair"] for record in records])
        truncated = (truncate_pair(a, b, max_tokens) for a, b in zip(firsts, seconds, strict=True))
        return [[*a, self.end, *b, self.end] for a, b in truncated]

    def tensors(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        ids, valid = padded(rows)
        return {"ids": ids, "valid": valid}

    def tokens(self, row: Sequence[int]) -> list[str]:
        return [self.text.token(token_id) for token_id in row]


class BertInputs(PlainInputs):
    """START a END, or START a END b END, with the number of the segment: BERT's [CLS] and [SEP]."""

    def __init__(
        self, text: AnyTokenizer, start: int = START, end: int = END, *, segments: bool = True
    ):
        super().__init__(text, end)
        self.start, self.segments = start, segments

    def rows(self, records: Sequence[Mapping[str, str]], max_tokens: int) -> list[list[int]]:
        return [[self.start, *row] for row in super().rows(records, max_tokens)]

    def tensors(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        ids, valid = padded(rows)
        if not self.segments:
            return {"ids": ids, "valid": valid}
        ends = (ids == self.end).int()
        segments = (ends.cumsum(1) - ends).clamp(max=1) * valid  # a mark belongs to what it ends
        return {"ids": ids, "valid": valid, "segments": segments.long()}


class SentenceInputs:
    """Sentences, each with END behind it; as a table of sentences for each text."""

    def __init__(self, text: AnyTokenizer):
        self.text = text

    def rows(self, records: Sequence[Mapping[str, str]], max_tokens: int) -> list[list[int]]:
        rows = []
        for record in records:
            sentence_ids = self.text.encode_ids(split_sentences(record["text"]))
            row = [token_id for ids in sentence_ids for token_id in (*ids, END)]
            rows.append(
                row[:max_tokens] if len(row) <= max_tokens else [*row[: max_tokens - 1], END]
            )
        return rows

    def tensors(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        documents = [split_rows(row) for row in rows]
        max_words = max(len(sentence) for document in documents for sentence in document)
        max_sentences = max(map(len, documents))
        ids = torch.full((len(rows), max_sentences, max_words), PAD)
        valid = torch.zeros(ids.shape, dtype=torch.bool)
        for i, document in enumerate(documents):
            for j, sentence in enumerate(document):
                ids[i, j, : len(sentence)] = torch.tensor(sentence)
                valid[i, j, : len(sentence)] = True
        return {"ids": ids, "valid": valid}

    def tokens(self, row: Sequence[int]) -> list[str]:
        return [self.text.token(token_id) for token_id in row]


class CharacterInputs:
    """Words by their letters, known or not: ELMo's. Two texts have an empty word between them."""

    def __init__(self, text: AnyTokenizer):
        self.text = text

    def rows(self, records: Sequence[Mapping[str, str]], max_tokens: int) -> list[list[str]]:
        rows = []
        for record in records:
            words = self.text.words(record["text"])
            if "pair" not in record:
                rows.append(words[:max_tokens] or [""])  # a text without words is an empty one
                continue
            a, b = truncate_pair(words, self.text.words(record["pair"]), max_tokens)
            rows.append([*a, "", *b])
        return rows

    def tensors(self, rows: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        spelled = [spell_sentence(row) for row in rows]
        lengths = torch.tensor([len(words) for words in spelled])
        characters = pad_sequence([torch.tensor(sentence) for sentence in spelled], True, NO_WORD)
        valid = torch.arange(characters.shape[1]) < lengths[:, None]
        return {"characters": characters, "valid": valid}

    def tokens(self, row: Sequence[str]) -> list[str]:
        return list(row)


def split_rows(row: Sequence[int]) -> list[list[int]]:
    """The sentences of a row, each with its END."""
    completed, sentence = list[list[int]](), list[int]()
    for token_id in row:
        sentence.append(token_id)
        if token_id == END:
            completed.append(sentence)
            sentence = []
    return completed


def truncate_pair(
    first: Sequence[T], second: Sequence[T], max_tokens: int
) -> tuple[Sequence[T], Sequence[T]]:
    """Both within `longest`: the longer one gives way, down to half, as in BERT."""
    half = max_tokens // 2
    excess = len(first) + len(second) - max_tokens
    if excess <= 0:
        return first, second
    if len(second) <= half:
        return first[: max_tokens - len(second)], second
    if len(first) <= max_tokens - half:
        return first, second[: max_tokens - len(first)]
    return first[: max_tokens - half], second[:half]
