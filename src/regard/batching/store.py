"""Store the examples of a training: in memory if their text is short, else read in each epoch."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from regard.batching.batches import InMemoryExamples, StreamedExamples
from regard.batching.example import SizedT
from regard.batching.packed import PackedExamples
from regard.data.corpus import Record
from regard.errors import InputError

MAX_CHARACTERS_IN_MEMORY = 100_000_000


def store_examples(
    read: Callable[[], Iterator[Record]],
    to_examples: Callable[[Iterable[Record]], Iterator[SizedT]],
    fields: Sequence[str],
    *,
    seed: int,
    shuffle_buffer: int = 10_000,
    packed: bool = True,
    streamed: bool = True,
) -> InMemoryExamples[SizedT] | StreamedExamples[SizedT]:
    """Return the examples that `to_examples` makes of the records that `read` yields.

    `fields` are the texts of a record, whose characters are counted. With `packed`, examples in
    memory take two or four bytes for an id; they must hold ids and numbers only. Without
    `streamed`, all examples are held in memory, because an example needs more than one record.
    """
    if not streamed or has_at_most(read(), fields, MAX_CHARACTERS_IN_MEMORY):
        examples = to_examples(read())
        stored = PackedExamples(examples) if packed else list(examples)
        if stored:
            return InMemoryExamples(stored, seed)
    elif next(to_examples(read()), None) is not None:
        return StreamedExamples(read, to_examples, seed, shuffle_buffer, packed=packed)
    raise InputError("train: no example is left; is the data empty, or train.max_tokens small?")


def has_at_most(records: Iterable[Record], fields: Sequence[str], characters: int) -> bool:
    """Return whether the texts of all records have at most this many characters."""
    for record in records:
        characters -= sum(len(record[name]) for name in fields)
        if characters < 0:
            return False
    return True
