"""Sentences as encoders want them, for tasks that say something of each word.

Each way makes one row of a sentence, and of many rows the tensors that `encode` takes; `begins`
among them says at which positions a word begins, where there are other positions too.
b: sentences   t: positions   w: words   c: characters of a word
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regard.batch.pair import padded
from regard.tasks.inputs import Spelled
from regard.text.marks import AnyTokeniser
from regard.text.special import UNKNOWN
from regard.text.spelling import NO_WORD, spell


@runtime_checkable
class Words(Protocol):
    """`row` holds the first words of a sentence, as many as fit into `longest` positions."""

    def row(self, words: Sequence[str], longest: int) -> list[Any]: ...

    def count(self, row: Sequence[Any]) -> int:
        """How many words are in it."""
        ...

    def tensors(self, rows: Sequence[Sequence[Any]]) -> dict[str, Tensor]: ...


class Pieces:
    """Words as tokens of any vocabulary, between marks if there are any.

    In a row, the id of a position at which no word begins stands as ~id, which is negative.
    """

    def __init__(
        self,
        text: AnyTokeniser,
        start: int | None = None,
        end: int | None = None,
        *,
        segments: bool = False,
    ):
        self.text, self.segments = text, segments
        self.before = [] if start is None else [~start]
        self.behind = [] if end is None else [~end]
        special = getattr(text, "special", None)
        self.unknown = UNKNOWN if special is None or special.unknown is None else special.unknown

    def row(self, words: Sequence[str], longest: int) -> list[int]:
        pieces = self.text.ids(list(words)) if words else []
        row: list[int] = []
        for ids in pieces:
            first, *rest = ids or [self.unknown]  # a word of nothing that the vocabulary reads
            if len(row) + 1 + len(rest) > longest:
                break
            row += [first, *(~number for number in rest)]
        return [*self.before, *row, *self.behind] or [~self.unknown]

    def count(self, row: Sequence[int]) -> int:
        return sum(number >= 0 for number in row)

    def tensors(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        ids, valid = padded(rows)
        found = {
            "ids": torch.where(ids < 0, ~ids, ids),
            "valid": valid,
            "begins": valid & (ids >= 0),
        }
        if self.segments:
            found["segments"] = torch.zeros_like(ids)
        return found


class Letters(Spelled):
    """Words by their letters, between the words that begin and end a sentence: ELMo's."""

    def row(self, words: Sequence[str], longest: int) -> list[str]:
        return list(words[:longest]) or [""]

    def count(self, row: Sequence[str]) -> int:
        return 0 if row == [""] else len(row)


class Both(Letters):
    """Words as ids, and by their letters; no marks."""

    def tensors(self, rows: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        ids, valid = padded([self.numbers(row) for row in rows])
        spelled = [torch.tensor([spell(word) for word in row]) for row in rows]
        return {"ids": ids, "valid": valid, "characters": pad_sequence(spelled, True, NO_WORD)}

    def numbers(self, row: Sequence[str]) -> list[int]:
        """The ids of words; of one with several or none it is that of the unknown."""
        return [ids[0] if len(ids) == 1 else UNKNOWN for ids in self.text.ids(list(row))]


def at_words(
    states: Float[Tensor, "b t d"], begins: Bool[Tensor, "b t"]
) -> tuple[Float[Tensor, "b w d"], Bool[Tensor, "b w"]]:
    """The states where words begin, moved together; and which of them are real."""
    counts: Int[Tensor, " b"] = begins.sum(1)
    most = max(1, int(counts.max()))
    places = (~begins).int().argsort(dim=1, stable=True)[:, :most]
    found = states.gather(1, places[..., None].expand(-1, -1, states.shape[-1]))
    return found, torch.arange(most, device=states.device) < counts[:, None]
