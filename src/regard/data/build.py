"""Build the corpus of a [data] table; the fields of the table are the arguments of its class."""

from importlib import import_module

from regard.config.base import DataConfig
from regard.config.data.text_pairs import MixDataConfig
from regard.data.corpus import Corpus
from regard.data.mix import MixedCorpus


def build_corpus(data: DataConfig) -> Corpus:
    """Return the corpus of a [data] table; its class is imported now."""
    if isinstance(data, MixDataConfig):
        corpora = [build_corpus(part.data) for part in data.parts]
        return MixedCorpus(corpora, [part.weight for part in data.parts], seed=data.seed)
    module, _, name = data.corpus_class.partition(":")
    return getattr(import_module(module), name)(**data.model_dump(exclude={"kind"}))
