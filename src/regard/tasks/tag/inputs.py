"""Inputs of encoders for tasks that predict a tag for each word of a sentence.

Each class converts the words of a sentence to one row, and many rows to the tensors that `encode`
takes. The tensor `begins` marks the positions at which a word begins, if not all do.
b: sentences   t: positions   w: words   c: characters of a word
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regard.batching.example import padded
from regard.tasks.encoder_inputs import CharacterInputs
from regard.text.special import UNKNOWN
from regard.text.special_ids import AnyTokenizer, special_ids
from regard.text.spelling import NO_WORD, spell

TokenT = TypeVar("TokenT", int, str)
WordRow = list[int] | list[str]


@runtime_checkable
class WordInputs(Protocol[TokenT]):
    """Rows of words or of their ids, and the tensors of many rows."""

    def row(self, words: Sequence[str], max_tokens: int) -> list[TokenT]:
        """Return the first words of a sentence that fit into `max_tokens` positions."""
        ...

    def word_count(self, row: Sequence[TokenT]) -> int:
        """Return the number of words in a row."""
        ...

    def tokens(self, row: Sequence[TokenT]) -> list[str]:
        """Return the token at each position of a row."""
        ...

    def word_indices(self, row: Sequence[TokenT]) -> list[int | None]:
        """Return the index of the word at each position; None for a special token."""
        ...

    def tensors(self, rows: Sequence[Sequence[TokenT]]) -> dict[str, Tensor]:
        """Return the padded arguments of `encode`, and `begins` if not every position is a word."""
        ...


AnyWordInputs = WordInputs[Any]


class SubwordInputs:
    """Words as tokens of any vocabulary, between optional special tokens.

    A row stores the id of a position at which no word begins as ~id, which is negative.
    """

    def __init__(
        self,
        text: AnyTokenizer,
        start: int | None = None,
        end: int | None = None,
        *,
        segments: bool = False,
    ):
        self.text, self.segments = text, segments
        self.prefix = [] if start is None else [~start]
        self.suffix = [] if end is None else [~end]
        special = getattr(text, "special", None)
        self.unknown = UNKNOWN if special is None or special.unknown is None else special.unknown

    @property
    def splits_at_spaces(self) -> bool:
        """Return whether a word has the same ids alone and in a sentence."""
        sentence, first, second = self.text.encode_ids(["one two", "one", "two"])
        return sentence == [*first, *second]

    def row(self, words: Sequence[str], max_tokens: int) -> list[int]:
        pieces = self.text.encode_ids(list(words)) if words else []
        row: list[int] = []
        for ids in pieces:
            first, *rest = ids or [self.unknown]  # a word without a token in the vocabulary
            if len(row) + 1 + len(rest) > max_tokens:
                break
            row += [first, *(~token_id for token_id in rest)]
        return [*self.prefix, *row, *self.suffix] or [~self.unknown]

    def word_count(self, row: Sequence[int]) -> int:
        return sum(token_id >= 0 for token_id in row)

    def tokens(self, row: Sequence[int]) -> list[str]:
        return [self.text.token(~token_id if token_id < 0 else token_id) for token_id in row]

    def word_indices(self, row: Sequence[int]) -> list[int | None]:
        last = len(row) - len(self.suffix)
        starts = accumulate(token_id >= 0 for token_id in row)
        return [
            number - 1 if number and position < last else None
            for position, number in enumerate(starts)
        ]

    def tensors(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        ids, valid = padded(rows)
        inputs = {
            "ids": torch.where(ids < 0, ~ids, ids),
            "valid": valid,
            "begins": valid & (ids >= 0),
        }
        if self.segments:
            inputs["segments"] = torch.zeros_like(ids)
        return inputs


class WordCharacterInputs(CharacterInputs):
    """Words as characters, between marks of start and end, as ELMo reads them."""

    def row(self, words: Sequence[str], max_tokens: int) -> list[str]:
        return list(words[:max_tokens]) or [""]

    def word_count(self, row: Sequence[str]) -> int:
        return 0 if row == [""] else len(row)

    def word_indices(self, row: Sequence[str]) -> list[int | None]:
        return [None] if row == [""] else list(range(len(row)))


class WordAndCharacterInputs(WordCharacterInputs):
    """Words as ids and as characters, without special tokens."""

    def tensors(self, rows: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        ids, valid = padded([self.word_ids(row) for row in rows])
        spelled = [torch.tensor([spell(word) for word in row]) for row in rows]
        return {"ids": ids, "valid": valid, "characters": pad_sequence(spelled, True, NO_WORD)}

    def word_ids(self, row: Sequence[str]) -> list[int]:
        """Return an id for each word: UNKNOWN for a word with several ids or none."""
        return [ids[0] if len(ids) == 1 else UNKNOWN for ids in self.text.encode_ids(list(row))]


def build_word_inputs(
    kind: str, tokenizer: AnyTokenizer, *, segments: bool = False
) -> AnyWordInputs:
    """Return the inputs that an encoder of this kind reads; `segments` is for BERT."""
    match kind:
        case "bert":
            special = special_ids(tokenizer)
            return SubwordInputs(tokenizer, special.start, special.end, segments=segments)
        case "elmo":
            return WordCharacterInputs(tokenizer)
        case "bilstm_crf":
            return WordAndCharacterInputs(tokenizer)
        case _:
            return SubwordInputs(tokenizer)


def word_states(
    states: Float[Tensor, "b t d"], word_starts: Bool[Tensor, "b t"]
) -> tuple[Float[Tensor, "b w d"], Bool[Tensor, "b w"]]:
    """Return the states at the beginnings of words, without gaps, and which are valid."""
    counts: Int[Tensor, " b"] = word_starts.sum(1)
    max_words = max(1, int(counts.max()))
    positions = (~word_starts).int().argsort(dim=1, stable=True)[:, :max_words]
    gathered = states.gather(1, positions[..., None].expand(-1, -1, states.shape[-1]))
    return gathered, torch.arange(max_words, device=states.device) < counts[:, None]
