"""Constraints of outputs: lengths, prefixes, phrases, forbidden tokens.

a: inputs   n: rows (hypotheses)   v: vocabulary   t: tokens so far
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.batching.device import CPU
from regard.errors import InputError
from regard.text.special import END, PAD, START

# The least log-probability of a forced token: with -inf, the search could not rank what follows.
MIN_FORCED_LOG_PROB = -1e4
NO_TOKEN = -1
T = TypeVar("T")


@dataclass(frozen=True)
class Constraints:
    """Constraints of all outputs. Lengths may be one number, or one for each input.

    Lengths count ids without start and end. After `max_length` ids only the end token may follow;
    its log-probability counts. A prefix is part of the output and overrides all other
    constraints. Phrases are ids that must occur (beam search only); they override
    `no_repeat_ngram` and `forbidden`.
    """

    max_length: int | Sequence[int] = 256
    min_length: int | Sequence[int] = 0
    no_repeat_ngram: int = 0  # length of n-grams that may not occur twice; 0 for none
    prefix: Sequence[Sequence[int]] = ()
    phrases: Sequence[Sequence[Sequence[int]]] = ()
    forbidden: Sequence[int] = (PAD, START)


UNCONSTRAINED = Constraints()


class BatchConstraints:
    """The constraints of one batch of inputs, as tensors."""

    def __init__(self, constraints: Constraints, count: int, device: torch.device = CPU):
        self.constraints, self.count, self.device = constraints, count, device
        limits = numbers_per_input("max_length", constraints.max_length, count)
        floors = numbers_per_input("min_length", constraints.min_length, count)
        self.prefixes = lists_per_input("prefix", constraints.prefix, count)
        self.phrases = lists_per_input("phrases", constraints.phrases, count)
        check_constraints(constraints)
        check_lengths(limits, floors, self.prefixes)
        self.limits = torch.tensor(limits, device=device)
        self.floors = torch.tensor(floors, device=device)
        forbidden = sorted(set(constraints.forbidden))
        self.forbidden = torch.tensor(forbidden, dtype=torch.long, device=device)
        self.forbidden_and_end = torch.tensor([*forbidden, END], device=device)
        self.max_limit, self.min_limit = max(limits), min(limits)
        self.min_floor, self.max_floor = min(floors), max(floors)
        self.max_prefix_length = max(map(len, self.prefixes))
        forced_ids = torch.full((count, self.max_prefix_length), NO_TOKEN)
        for row, prefix in zip(forced_ids, self.prefixes, strict=True):
            row[: len(prefix)] = torch.tensor(prefix, dtype=torch.long)
        self.forced_ids = forced_ids.to(device)

    def check_ids(self, size: int) -> None:
        """Check that all ids are in the vocabulary, whose size the first step of a model shows."""
        for name, ids in self.named_ids():
            for token_id in ids:
                if not 0 <= token_id < size:
                    raise InputError(f"{name}: there is no id {token_id} in a vocabulary of {size}")

    def named_ids(self) -> Iterator[tuple[str, Sequence[int]]]:
        yield "forbidden", self.constraints.forbidden
        for index, prefix in enumerate(self.prefixes):
            yield f"prefix of input {index}", prefix
        for index, phrases in enumerate(self.phrases):
            yield from ((f"phrases of input {index}", phrase) for phrase in phrases)

    def apply(
        self,
        log_probs: Float[Tensor, "n v"],
        inputs: Int[Tensor, " a"],
        history: Int[Tensor, "n t"],
    ) -> None:
        """Set log-probabilities of tokens that may not follow `history` to -inf.

        Each of the `a` inputs has n / a adjacent rows.
        """
        position = history.shape[1]
        if position == 0:
            self.check_ids(log_probs.shape[1])
        common = self.common_tokens(position)
        if common is not None:
            self.forbid(log_probs, history, common)
            return
        owners = inputs.repeat_interleave(len(log_probs) // len(inputs))
        required_ids = torch.where(self.limits[owners] == position, END, NO_TOKEN)
        if position < self.max_prefix_length:
            required_ids = torch.maximum(required_ids, self.forced_ids[owners, position])
        rows = (required_ids != NO_TOKEN).nonzero()[:, 0]
        required_log_probs = log_probs[rows, required_ids[rows]].clamp(min=MIN_FORCED_LOG_PROB)
        self.forbid(log_probs, history, self.forbidden)
        log_probs[self.floors[owners] > position, END] = -torch.inf
        log_probs[rows] = -torch.inf
        log_probs[rows, required_ids[rows]] = required_log_probs

    def common_tokens(self, position: int) -> Int[Tensor, " f"] | None:
        """Return the tokens that all rows forbid, apart from repeats; None if rows differ."""
        if self.max_prefix_length <= position < self.min_limit and (
            position < self.min_floor or position >= self.max_floor
        ):  # no token is required, and END is allowed for all inputs or for none
            return self.forbidden_and_end if position < self.min_floor else self.forbidden
        return None

    def fixed_tokens(self, position: int) -> Int[Tensor, " f"] | None:
        """Return all that is forbidden if it does not depend on the row; otherwise None.

        The first position is left to `apply`, which checks ids there.
        """
        is_plain = position > 0 and not self.constraints.no_repeat_ngram
        return self.common_tokens(position) if is_plain else None

    def forbid(
        self,
        log_probs: Float[Tensor, "n v"],
        history: Int[Tensor, "n t"],
        tokens: Int[Tensor, " f"],
    ) -> None:
        """Forbid tokens and repeats in all rows."""
        if tokens.shape[0]:
            log_probs.index_fill_(1, tokens, -torch.inf)
        if self.constraints.no_repeat_ngram:
            forbid_repeats(log_probs, history, self.constraints.no_repeat_ngram)


def forbid_repeats(log_probs: Float[Tensor, "n v"], history: Int[Tensor, "n t"], size: int) -> None:
    """Set log-probabilities of tokens that would repeat an n-gram of this size to -inf."""
    length = history.shape[1]
    if length < size:
        return
    ngrams = history.unfold(1, size, 1)
    last_ids = history[:, length - size + 1 :]
    rows, ngram_index = (ngrams[..., :-1] == last_ids[:, None]).all(2).nonzero(as_tuple=True)
    log_probs[rows, ngrams[rows, ngram_index, -1]] = -torch.inf


def numbers_per_input(name: str, setting: int | Sequence[int], count: int) -> list[int]:
    """Return one number for each input."""
    numbers = [setting] * count if isinstance(setting, int) else list(setting)
    if len(numbers) != count:
        raise InputError(f"{name} holds {len(numbers)} numbers for {count} inputs; give one each")
    return numbers


def lists_per_input(name: str, setting: Sequence[Sequence[T]], count: int) -> list[list[T]]:
    """Return one list for each input; an empty setting gives empty lists."""
    lists = [list(values) for values in setting] or [[] for _ in range(count)]
    if len(lists) != count:
        raise InputError(f"{name} holds {len(lists)} lists for {count} inputs; give one each")
    return lists


def check_constraints(constraints: Constraints) -> None:
    if constraints.no_repeat_ngram < 0:
        raise InputError(
            f"no_repeat_ngram must be 0 (off) or more, not {constraints.no_repeat_ngram}"
        )
    if END in constraints.forbidden:
        raise InputError(f"forbidden holds the end token ({END}); every output needs it")
    required = [
        *constraints.prefix,
        *(phrase for phrases in constraints.phrases for phrase in phrases),
    ]
    for ids in required:
        if END in ids:
            raise InputError(
                f"prefix and phrases may not contain the end token ({END}): {list(ids)}"
            )
    if not all(len(phrase) for phrases in constraints.phrases for phrase in phrases):
        raise InputError("phrases: a phrase is empty; leave it out")


def check_lengths(
    limits: Sequence[int], floors: Sequence[int], prefixes: Sequence[Sequence[int]]
) -> None:
    for index, (limit, floor, prefix) in enumerate(zip(limits, floors, prefixes, strict=True)):
        if not 0 <= floor <= limit:
            raise InputError(
                f"input {index}: min_length {floor} must be from 0 to max_length {limit}"
            )
        if len(prefix) > limit:
            raise InputError(
                f"input {index}: the prefix of {len(prefix)} ids is longer than max_length {limit}"
            )
