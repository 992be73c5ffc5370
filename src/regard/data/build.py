"""Build the corpus of a [data] table; the fields of the table are the arguments of its class."""

from importlib import import_module
from itertools import islice

from regard.config.base import DataConfig
from regard.config.data.text_pairs import MixDataConfig
from regard.data.corpus import Corpus
from regard.data.mix import MixedCorpus
from regard.errors import InputError

MIN_RECORDS_TO_HOLD_OUT = 100  # a tenth of fewer is too few to choose weights by
HELD_OUT_SHARE = 0.1
MANY_RECORDS = 20_000  # from here on, a smaller share is enough
SMALL_SHARE = 0.05


def build_corpus(data: DataConfig) -> Corpus:
    """Return the corpus of a [data] table; its class is imported now."""
    data = resolve_held_out(data)
    if isinstance(data, MixDataConfig):
        corpora = [build_corpus(part.data) for part in data.parts]
        return MixedCorpus(corpora, [part.weight for part in data.parts], seed=data.seed)
    module, _, name = data.corpus_class.partition(":")
    return getattr(import_module(module), name)(**data.model_dump(exclude={"kind"}))


def resolve_held_out(data: DataConfig) -> DataConfig:
    """Return a [data] table whose `held_out` is chosen by its records, unless it is given.

    A mixture needs one part with dev: if a part has it, nothing is held out of the others.
    """
    if isinstance(data, MixDataConfig):
        has_dev = any(getattr(part.data, "dev", None) is not None for part in data.parts)
        parts = tuple(
            part.model_copy(
                update={
                    "data": with_held_out(part.data, 0.0)
                    if has_dev
                    else resolve_held_out(part.data)
                }
            )
            for part in data.parts
        )
        return data.model_copy(update={"parts": parts})
    return data if has_held_out(data) else with_held_out(data, suitable_share(data))


def has_held_out(data: DataConfig) -> bool:
    """Return whether a table says how much is held out, or has no such choice."""
    return getattr(data, "held_out", 0.0) is not None


def with_held_out(data: DataConfig, share: float) -> DataConfig:
    """Return a table with this share held out, unless it has one."""
    return data if has_held_out(data) else data.model_copy(update={"held_out": share})


def suitable_share(data: DataConfig) -> float:
    """Return the share of train to hold out for dev and test; 0 if they would be too small."""
    corpus = build_corpus(with_held_out(data, 0.0))
    if "dev" in corpus.splits:
        return 0.0
    count = sum(1 for _ in islice(corpus.read("train"), MANY_RECORDS))
    if count < MIN_RECORDS_TO_HOLD_OUT:
        return 0.0
    share = SMALL_SHARE if count == MANY_RECORDS else HELD_OUT_SHARE
    divided = build_corpus(with_held_out(data, share))
    try:
        for split in divided.splits:
            next(divided.read(split))
    except InputError:  # few different texts, which all fall into one split
        return 0.0
    return share
