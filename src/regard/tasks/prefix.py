"""Outputs that begin with a given prefix: the field `prefix` of a record.

A prefix is a text, or a list of output tokens as an attention map shows them. Tokens are exact; a
text is split as the training data was, so it should end where a token ends.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from regard.data.corpus import Record
from regard.decoding.constraints import Constraints
from regard.errors import InputError

PREFIX_FIELD = "prefix"


class OutputPrefix(NamedTuple):
    """The first ids of an output, and whether the output ends after them."""

    ids: Sequence[int] = ()
    is_complete: bool = False


NO_PREFIX = OutputPrefix()


def find_prefix(
    record: Record,
    encode: Callable[[str], Sequence[int]],
    token_id: Callable[[str], int | None],
    end: int,
) -> OutputPrefix:
    """Return the prefix of a record; the token of the id `end` completes the output."""
    prefix = record.get(PREFIX_FIELD)
    if not prefix:
        return NO_PREFIX
    if isinstance(prefix, str):
        return OutputPrefix(encode(prefix))
    ids = list[int]()
    for number, token in enumerate(prefix, 1):
        found_id = token_id(token)
        if found_id is None:
            raise InputError(f"prefix: token {number} ({token!r}) is not in the vocabulary")
        ids.append(found_id)
    is_complete = ids[-1] == end
    return OutputPrefix(ids[:-1] if is_complete else ids, is_complete)


def limit_outputs(
    constraints: Constraints, max_lengths: Sequence[int], prefixes: Sequence[OutputPrefix]
) -> Constraints:
    """Return the constraints of a batch, with the maximum length and the prefix of each output."""
    if not any(prefix.ids or prefix.is_complete for prefix in prefixes):
        return replace(constraints, max_length=max_lengths)
    lengths = list[int]()
    for max_length, prefix in zip(max_lengths, prefixes, strict=True):
        if len(prefix.ids) > max_length:
            raise InputError(
                f"prefix: {len(prefix.ids)} tokens, but this output has at most {max_length}; "
                "shorten it, or raise decode.max_length"
            )
        lengths.append(len(prefix.ids) if prefix.is_complete else max_length)
    min_length = constraints.min_length
    floors = min_length if not isinstance(min_length, int) else [min_length] * len(lengths)
    return replace(
        constraints,
        max_length=lengths,
        min_length=[min(pair) for pair in zip(floors, lengths, strict=True)],
        prefix=[prefix.ids for prefix in prefixes],
    )
