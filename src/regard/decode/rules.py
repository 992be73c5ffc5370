"""What an output must be like, whatever the model would say: lengths, prefixes, forbidden tokens.

a: inputs   n: rows (hypotheses)   v: vocabulary   t: tokens so far
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.text.special import END, PAD, START

# A forced token is never impossible: with exp(-10,000) the search goes on, ranked by the rest.
LEAST = -1e4
NOTHING = -1
T = TypeVar("T")


@dataclass(frozen=True)
class Rules:
    """What every output must obey. A sequence where a number could be holds one for each input.

    Lengths count ids, without start and end. Only the end may follow `max_length` ids, and its
    log-probability counts. A forced prefix is part of the output and outranks all other rules;
    phrases (ids that must occur, in `beam` only) outrank `no_repeat_ngram` and `forbidden`.
    """

    max_length: int | Sequence[int] = 256
    min_length: int | Sequence[int] = 0
    no_repeat_ngram: int = 0  # no n ids in a row may occur twice; 0: they may
    prefix: Sequence[Sequence[int]] = ()
    phrases: Sequence[Sequence[Sequence[int]]] = ()
    forbidden: Sequence[int] = (PAD, START)


FREE = Rules()


class Bound:
    """Rules for the inputs of one batch, as tensors; checked, and applied to log-probabilities."""

    def __init__(self, rules: Rules, count: int):
        self.rules, self.count = rules, count
        limits = each("max_length", rules.max_length, count)
        floors = each("min_length", rules.min_length, count)
        self.prefixes = listed("prefix", rules.prefix, count)
        self.phrases = listed("phrases", rules.phrases, count)
        check_rules(rules)
        check_lengths(limits, floors, self.prefixes)
        self.limits, self.floors = torch.tensor(limits), torch.tensor(floors)
        self.forbidden = torch.tensor(sorted(set(rules.forbidden)), dtype=torch.long)
        self.longest, self.first_limit = max(limits), min(limits)
        self.last_floor = max(floors)
        self.last_forced = max(map(len, self.prefixes))
        self.forced = torch.full((count, self.last_forced), NOTHING)
        for row, prefix in zip(self.forced, self.prefixes, strict=True):
            row[: len(prefix)] = torch.tensor(prefix, dtype=torch.long)

    def check_ids(self, size: int) -> None:
        """All ids are of the vocabulary; its size is known once the model has spoken."""
        for name, ids in self.named_ids():
            for one in ids:
                if not 0 <= one < size:
                    raise ValueError(f"{name}: there is no id {one} in a vocabulary of {size}")

    def named_ids(self) -> Iterator[tuple[str, Sequence[int]]]:
        yield "forbidden", self.rules.forbidden
        for number, prefix in enumerate(self.prefixes):
            yield f"prefix of input {number}", prefix
        for number, phrases in enumerate(self.phrases):
            yield from ((f"phrases of input {number}", phrase) for phrase in phrases)

    def apply(
        self,
        log_probs: Float[Tensor, "n v"],
        inputs: Int[Tensor, " a"],
        history: Int[Tensor, "n t"],
    ) -> None:
        """Give -inf to what may not come after `history`; n / a rows, side by side, an input."""
        position = history.shape[1]
        if position == 0:
            self.check_ids(log_probs.shape[1])
        if self.last_forced <= position < self.first_limit and position >= self.last_floor:
            self.forbid(log_probs, history)
            return
        owners = inputs.repeat_interleave(len(log_probs) // len(inputs))
        must = torch.where(self.limits[owners] == position, END, NOTHING)
        if position < self.last_forced:
            must = torch.maximum(must, self.forced[owners, position])
        rows = (must != NOTHING).nonzero()[:, 0]
        kept = log_probs[rows, must[rows]].clamp(min=LEAST)
        self.forbid(log_probs, history)
        log_probs[self.floors[owners] > position, END] = -torch.inf
        log_probs[rows] = -torch.inf
        log_probs[rows, must[rows]] = kept

    def forbid(self, log_probs: Float[Tensor, "n v"], history: Int[Tensor, "n t"]) -> None:
        """What is forbidden to all rows, wherever they are."""
        if len(self.forbidden):
            log_probs.index_fill_(1, self.forbidden, -torch.inf)
        if self.rules.no_repeat_ngram:
            forbid_repeats(log_probs, history, self.rules.no_repeat_ngram)


def forbid_repeats(log_probs: Float[Tensor, "n v"], history: Int[Tensor, "n t"], size: int) -> None:
    """-inf for tokens that would complete `size` ids in a row which are in the history already."""
    length = history.shape[1]
    if length < size:
        return
    runs = history.unfold(1, size, 1)
    begun = history[:, length - size + 1 :]
    rows, at = (runs[..., :-1] == begun[:, None]).all(2).nonzero(as_tuple=True)
    log_probs[rows, runs[rows, at, -1]] = -torch.inf


def each(name: str, given: int | Sequence[int], count: int) -> list[int]:
    """One number for each input."""
    numbers = [given] * count if isinstance(given, int) else list(given)
    if len(numbers) != count:
        raise ValueError(f"{name} holds {len(numbers)} numbers for {count} inputs: give one each")
    return numbers


def listed(name: str, given: Sequence[Sequence[T]], count: int) -> list[list[T]]:
    """One list for each input; nothing given is an empty list for each."""
    lists = [list(one) for one in given] or [[] for _ in range(count)]
    if len(lists) != count:
        raise ValueError(f"{name} holds {len(lists)} lists for {count} inputs: give one each")
    return lists


def check_rules(rules: Rules) -> None:
    if rules.no_repeat_ngram < 0:
        raise ValueError(f"no_repeat_ngram must be 0 (off) or more, not {rules.no_repeat_ngram}")
    if END in rules.forbidden:
        raise ValueError(f"forbidden holds the end ({END}): without it no output could end")
    spoken = [*rules.prefix, *(phrase for phrases in rules.phrases for phrase in phrases)]
    for ids in spoken:
        if END in ids:
            raise ValueError(f"prefix and phrases are ids without the end ({END}), not {list(ids)}")
    if not all(len(phrase) for phrases in rules.phrases for phrase in phrases):
        raise ValueError("phrases: an empty phrase cannot be looked for")


def check_lengths(
    limits: Sequence[int], floors: Sequence[int], prefixes: Sequence[Sequence[int]]
) -> None:
    for number, (limit, floor, prefix) in enumerate(zip(limits, floors, prefixes, strict=True)):
        if not 0 <= floor <= limit:
            raise ValueError(
                f"input {number}: min_length {floor} and max_length {limit} leave no length"
            )
        if len(prefix) > limit:
            raise ValueError(
                f"input {number}: the prefix of {len(prefix)} ids is longer than max_length {limit}"
            )
