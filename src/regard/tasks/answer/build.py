"""Builds the task of question answering from its settings."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import ClassVar

from torch import nn

from regard.config.settings import Settings
from regard.data.corpus import Corpus
from regard.files import JsonObject
from regard.models.protocols import Encoder, require_model
from regard.tasks.answer.check import check_questions
from regard.tasks.answer.inputs import AnyLayout, JoinedLayout, SeparateLayout, split_words
from regard.tasks.answer.model import SpanReader
from regard.tasks.answer.settings import AnswerSettings
from regard.tasks.answer.task import AnswerTask
from regard.tasks.base import RunAsset, Vocabularies
from regard.tasks.building import (
    MAX_VOCABULARY_RECORDS,
    find_tokenizer,
    train_tokenizer_on_texts,
)
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.encoding import EncoderBuilder
from regard.tasks.pretrained import TOKENIZER_FILE
from regard.tasks.text_vectors import text_vector_options
from regard.text.special_ids import AnyTokenizer, load_tokenizer, special_ids
from regard.text.tokenizer import Tokenizer


class AnswerBuilder(EncoderBuilder[AnswerSettings, SpanReader]):
    """Reads `AnswerSettings`."""

    special_token_count: ClassVar = 3  # START, and END twice

    def build_vocabularies(self, settings: AnswerSettings, corpus: Corpus) -> dict[str, RunAsset]:
        if settings.start.run is not None:
            return {"text": load_tokenizer(Path(settings.start.run) / TOKENIZER_FILE)}
        config = settings.text
        is_word_level = config.kind == "words"
        texts = (
            " ".join(split_words(text).tokens) if is_word_level else text
            for text in training_texts(corpus)
        )
        return {"text": train_tokenizer_on_texts(config, texts)}

    def build_head(
        self,
        settings: AnswerSettings,
        vocabularies: Vocabularies,  # noqa: ARG002
        encoder: nn.Module,
    ) -> SpanReader:
        return SpanReader(
            require_model(encoder, Encoder),
            separate_context=settings.model.kind == "bidaf",
            hidden_dim=settings.head.hidden_dim,
            dropout=settings.head.dropout,
            frozen=settings.start.freeze,
        )

    def build_task(
        self, settings: AnswerSettings, vocabularies: Vocabularies, model: SpanReader
    ) -> AnswerTask:
        head = settings.head
        task = AnswerTask(
            model,
            build_layout(settings, find_tokenizer(vocabularies)),
            max_answer_tokens=head.max_answer_tokens,
            stride=head.stride,
            allow_no_answer=head.allow_no_answer,
            max_tokens=self.max_tokens(settings),
            label_smoothing=settings.train.label_smoothing,
            layer_decay=settings.start.layer_decay,
            vector_options=text_vector_options(settings),
        )
        return self.train_unknown_words(settings, vocabularies, task)

    def check_data(
        self,
        settings: Settings,
        progress: Progress,
        memory_probe: MemoryProbe,  # noqa: ARG002
    ) -> JsonObject:
        return check_questions(settings, progress)


def build_layout(settings: AnswerSettings, tokenizer: AnyTokenizer) -> AnyLayout:
    """Return how the encoder of these settings reads a question and a context."""
    if settings.model.kind == "bidaf":
        return SeparateLayout(tokenizer)
    special = special_ids(tokenizer)
    return JoinedLayout(
        tokenizer,
        special.start,
        special.end,
        segments=getattr(settings.model, "segments", 0) > 1,
        is_word_level=isinstance(tokenizer, Tokenizer) and settings.text.kind == "words",
    )


def training_texts(corpus: Corpus) -> Iterator[str]:
    """Yield questions and contexts of the training data; a context with several questions once."""
    previous_context = None
    for record in islice(corpus.read("train"), MAX_VOCABULARY_RECORDS):
        yield record["question"]
        if record["text"] != previous_context:
            yield record["text"]
        previous_context = record["text"]


BUILDER = AnswerBuilder()
