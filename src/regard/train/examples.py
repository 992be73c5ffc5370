"""Examples to train on: in memory if their text is not too much, else read anew each epoch."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from regard.batch.batches import Stored, Streamed
from regard.batch.packed import Packed
from regard.batch.pair import Pair
from regard.config.settings import Settings
from regard.corpora.corpus import Record

IN_MEMORY = 100_000_000  # characters


def examples(
    read: Callable[[], Iterator[Record]],
    pairs: Callable[[Iterable[Record]], Iterator[Pair]],
    fields: Sequence[str],
    settings: Settings,
    *,
    packed: bool = True,
    stream: bool = True,
) -> Stored | Streamed:
    """`pairs` makes ids of what `read` gives; `fields` are the texts of a record.

    Not `packed`: they hold more than ids. Not `stream`: an example needs more than its record, so
    that all are held, however many there are.
    """
    if not stream or is_short(read(), fields, IN_MEMORY):
        if held := (Packed if packed else list)(pairs(read())):
            return Stored(held, settings.seed)
    elif next(pairs(read()), None) is not None:
        return Streamed(read, pairs, settings.seed, settings.train.buffer)
    raise ValueError("train: no pair is left; is the data empty, or train.longest small?")


def is_short(records: Iterable[Record], fields: Sequence[str], most: int) -> bool:
    """Whether the texts of all records have no more than so many characters."""
    for record in records:
        most -= sum(len(record[name]) for name in fields)
        if most < 0:
            return False
    return True
