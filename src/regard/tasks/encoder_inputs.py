"""Inputs of encoders: a row of tokens, with special tokens, by sentence, or by characters.

Each class converts a text (and a second one, if the record has a `pair`) to one row of ids, which
is stored and sorted by length; and many rows to the tensors that `encode` takes. `build_inputs`
returns the inputs that an encoder reads.

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
from regard.text.special_ids import AnyTokenizer, special_ids
from regard.text.spelling import NO_WORD, spell_sentence

T = TypeVar("T")
TokenT = TypeVar("TokenT", int, str)
InputRow = Sequence[int] | Sequence[str]
"""The ids that an encoder reads, or words if it reads characters."""


@runtime_checkable
class Inputs(Protocol[TokenT]):
    """Conversion of texts to rows and tensors; an encoder reads ids, or words by characters."""

    def rows(self, records: Sequence[Mapping[str, str]], max_tokens: int) -> list[list[TokenT]]:
        """Return a row for each record; a text is cut after `max_tokens` tokens."""
        ...

    def tensors(self, rows: Sequence[Sequence[TokenT]]) -> dict[str, Tensor]:
        """Return the padded arguments of `encode`."""
        ...

    def tokens(self, row: Sequence[TokenT]) -> list[str]:
        """Return the token at each position of a row."""
        ...


AnyInputs = Inputs[Any]


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
    """START a END, or START a END b END, with segment ids: BERT's [CLS] and [SEP]."""

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
        segments = (ends.cumsum(1) - ends).clamp(max=1) * valid  # END belongs to what it ends
        return {"ids": ids, "valid": valid, "segments": segments.long()}


class SentenceInputs:
    """Sentences, each followed by END; a text becomes a table of sentences."""

    def __init__(self, text: AnyTokenizer):
        self.text = text

    def rows(self, records: Sequence[Mapping[str, str]], max_tokens: int) -> list[list[int]]:
        rows = []
        for record in records:
            sentence_ids = self.text.encode_ids(split_sentences(record["text"]))
            row = [token_id for ids in sentence_ids for token_id in (*ids, END)] or [END]
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
    """Words by their characters, as ELMo reads them; an empty word separates two texts."""

    def __init__(self, text: AnyTokenizer):
        self.text = text

    def rows(self, records: Sequence[Mapping[str, str]], max_tokens: int) -> list[list[str]]:
        rows = []
        for record in records:
            words = self.text.words(record["text"])
            if "pair" not in record:
                rows.append(words[:max_tokens] or [""])  # a text without words is one empty word
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


def build_inputs(kind: str, tokenizer: AnyTokenizer, *, segments: bool = True) -> AnyInputs:
    """Return the inputs that an encoder of this kind reads; `segments` is for BERT."""
    match kind:
        case "bert":
            special = special_ids(tokenizer)
            return BertInputs(tokenizer, special.start, special.end, segments=segments)
        case "han":
            return SentenceInputs(tokenizer)
        case "elmo":
            return CharacterInputs(tokenizer)
        case _:
            return PlainInputs(tokenizer)


def split_rows(row: Sequence[int]) -> list[list[int]]:
    """Return the sentences of a row, each with its END."""
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
    """Cut two texts to `max_tokens` together: the longer one first, down to half, as in BERT."""
    half = max_tokens // 2
    excess = len(first) + len(second) - max_tokens
    if excess <= 0:
        return first, second
    if len(second) <= half:
        return first[: max_tokens - len(second)], second
    if len(first) <= max_tokens - half:
        return first, second[: max_tokens - len(first)]
    return first[: max_tokens - half], second[:half]
