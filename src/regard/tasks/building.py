"""Shared parts of builders: tokenizers from data, and the limits of a model."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import torch

from regard.config.base import Config
from regard.config.settings import Settings
from regard.config.text import TextConfig
from regard.data.corpus import Corpus
from regard.tasks.automatic import resolve_text, suitable_tokenizer
from regard.tasks.base import BatchOptions, RunAsset, Vocabularies
from regard.tasks.catalogue import find_task
from regard.text.external import ExternalTokenizer
from regard.text.special_ids import AnyTokenizer
from regard.text.tokenizer import Tokenizer
from regard.text.train import train_tokenizer

VocabularyT = TypeVar("VocabularyT")

MAX_VOCABULARY_RECORDS = 1_000_000  # records that a vocabulary is built from


def model_options(config: Config) -> dict[str, Any]:
    """Return the keywords of a model class that its settings hold."""
    return config.model_dump(exclude={"kind"})


def batch_options(settings: Settings) -> BatchOptions:
    """Return how the settings cut training data into batches."""
    train = settings.train
    return BatchOptions(
        train.tokens_per_batch, train.examples_per_batch, settings.seed, train.shuffle_buffer
    )


@dataclass(frozen=True)
class UntrainedRun:
    """A task with a new model, before anything is trained or saved."""

    settings: Any
    vocabularies: Mapping[str, Any]
    task: Any

    @property
    def model(self) -> Any:
        return self.task.model


def find_vocabulary(
    vocabularies: Vocabularies, name: str, vocabulary_class: type[VocabularyT]
) -> VocabularyT:
    """Return the vocabulary with this name; a TypeError if it is of another class."""
    vocabulary = vocabularies[name]
    if not isinstance(vocabulary, vocabulary_class):
        kind = type(vocabulary).__name__
        raise TypeError(f"{name}: this run has no {vocabulary_class.__name__}, but a {kind}")
    return vocabulary


def find_tokenizer(vocabularies: Vocabularies, name: str = "text") -> AnyTokenizer:
    """Return the tokenizer with this name, ours or an external one."""
    vocabulary = vocabularies[name]
    if isinstance(vocabulary, ExternalTokenizer):
        return vocabulary
    return find_vocabulary(vocabularies, name, Tokenizer)


def build_untrained_run(settings: Settings, corpus: Corpus) -> UntrainedRun:
    """Return a task with vocabularies from the training data and a new model."""
    builder = find_task(settings.task).builder()
    settings, vocabularies = resolve_vocabularies(settings, corpus)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = builder.build_model(settings, vocabularies)
    builder.load_pretrained(settings, model)
    return UntrainedRun(settings, vocabularies, builder.build_task(settings, vocabularies, model))


def resolve_vocabularies(
    settings: Settings, corpus: Corpus
) -> tuple[Settings, dict[str, RunAsset]]:
    """Return settings whose tokenizer is chosen by the data, and the vocabularies of the data."""
    builder = find_task(settings.task).builder()
    settings = resolve_text(builder.resolve_settings(settings), corpus)
    return settings, builder.build_vocabularies(settings, corpus)


def train_tokenizer_on_corpus(config: TextConfig, corpus: Corpus, *fields: str) -> Tokenizer:
    """Train a tokenizer on these fields of the training data."""
    records = islice(corpus.read("train"), MAX_VOCABULARY_RECORDS)
    return train_tokenizer_on_texts(config, (record[name] for record in records for name in fields))


def train_tokenizer_on_texts(config: TextConfig, texts: Iterable[str]) -> Tokenizer:
    """Train a tokenizer as the settings say."""
    kind, size = config.kind, config.size
    if kind == "auto":
        texts = list(texts)
        kind, size = suitable_tokenizer(texts)
    return train_tokenizer(
        kind,
        texts,
        size,
        lower=config.lower,
        zero_digits=config.zero_digits,
        normalize=config.normalize,
        min_count=config.min_count,
        split_punctuation=config.split_punctuation,
    )


def max_positions(config: Config) -> float:
    """Return the tokens that a model has positions for, without the end; often infinite."""
    has_learned_positions = getattr(config, "positions", None) == "learned"
    is_limited = has_learned_positions or getattr(config, "score", None) == "location"
    limit = float(getattr(config, "max_positions", math.inf)) if is_limited else math.inf
    return limit - 1
