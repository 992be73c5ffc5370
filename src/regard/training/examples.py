"""Examples to train on: in memory if their text is not too much, else read anew each epoch."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from regard.batching.batches import InMemoryExamples, StreamedExamples
from regard.batching.example import Example
from regard.batching.packed import PackedExamples
from regard.config.settings import Settings
from regard.data.corpus import Record

MAX_CHARACTERS_IN_MEMORY = 100_000_000  # characters


def build_examples(
    read: Callable[[], Iterator[Record]],
    to_examples: Callable[[Iterable[Record]], Iterator[Example]],
    fields: Sequence[str],
    settings: Settings,
    *,
    packed: bool = True,
    stream: bool = True,
) -> InMemoryExamples | StreamedExamples:
    """`pairs` makes ids of what `read` gives; `fields` are the texts of a record.

    Not `packed`: they hold more than ids. Not `stream`: an example needs more than its record, so
    that all are held, however many there are.
    """
    if not stream or is_short(read(), fields, MAX_CHARACTERS_IN_MEMORY):
        if stored_examples := (PackedExamples if packed else list)(to_examples(read())):
            return InMemoryExamples(stored_examples, settings.seed)
    elif next(to_examples(read()), None) is not None:
        return StreamedExamples(read, to_examples, settings.seed, settings.train.shuffle_buffer)
    raise ValueError("train: no pair is left; is the data empty, or train.max_tokens small?")


def is_short(records: Iterable[Record], fields: Sequence[str], character_budget: int) -> bool:
    """Whether the texts of all records have no more than so many characters."""
    for record in records:
        character_budget -= sum(len(record[name]) for name in fields)
        if character_budget < 0:
            return False
    return True
