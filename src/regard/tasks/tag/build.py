"""Builds the tasks `tag` and `understand` from their settings."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import nn

from regard.config.settings import Settings
from regard.data.corpus import Corpus, Record
from regard.data.tag_schemes import convert_tags
from regard.models.protocols import Encoder, require_model
from regard.tasks.base import VocabularyLoader
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.doctor.texts import check_labeled
from regard.tasks.encoding import EncoderBuilder
from regard.tasks.tag.inputs import build_word_inputs
from regard.tasks.tag.model import SequenceTagger
from regard.tasks.tag.settings import TagSettings, UnderstandSettings
from regard.tasks.tag.task import TagTask, UnderstandTask, split_labels
from regard.text.labels import Labels
from regard.text.special_ids import load_tokenizer


class TagBuilder(EncoderBuilder[TagSettings | UnderstandSettings, SequenceTagger]):
    """Reads `TagSettings` or `UnderstandSettings`; the latter add labels of sentences."""

    special_token_count: ClassVar = 2  # START and END

    def vocabulary_loaders(
        self, settings: TagSettings | UnderstandSettings
    ) -> Mapping[str, VocabularyLoader]:
        loaders = {"text": load_tokenizer, "tags": Labels.load}
        if isinstance(settings, UnderstandSettings):
            loaders["labels"] = Labels.load
        return loaders

    def build_vocabularies(
        self, settings: TagSettings | UnderstandSettings, corpus: Corpus
    ) -> dict[str, Any]:
        rows = (
            convert_tags(record["tags"].split(), "bio", settings.head.scheme)
            for record in corpus.read("train")
        )
        tags = Labels.from_data(tag for row in rows for tag in row)
        vocabularies = {"text": self.build_tokenizer(settings, corpus, "text"), "tags": tags}
        if isinstance(settings, UnderstandSettings):
            vocabularies["labels"] = Labels.from_data(
                split_labels(record["label"])[0] for record in corpus.read("train")
            )
        return vocabularies

    def build_head(
        self,
        settings: TagSettings | UnderstandSettings,
        vocabularies: Mapping[str, Any],
        encoder: nn.Module,
    ) -> SequenceTagger:
        head, labels = settings.head, vocabularies.get("labels")
        return SequenceTagger(
            require_model(encoder, Encoder),
            vocabularies["tags"].names,
            0 if labels is None else labels.size,
            scheme=head.scheme,
            crf=head.crf,
            hidden_dim=head.hidden_dim,
            dropout=head.dropout,
            frozen=settings.start.freeze,
        )

    def build_task(
        self,
        settings: TagSettings | UnderstandSettings,
        vocabularies: Mapping[str, Any],
        model: SequenceTagger,
    ) -> TagTask:
        segments = getattr(settings.model, "segments", 0) > 1
        inputs = build_word_inputs(settings.model.kind, vocabularies["text"], segments=segments)
        options: dict[str, Any] = {
            "scheme": settings.head.scheme,
            "max_tokens": self.max_tokens(settings),
            "label_smoothing": settings.train.label_smoothing,
            "layer_decay": settings.start.layer_decay,
        }
        if isinstance(settings, UnderstandSettings):
            tags, labels = vocabularies["tags"], vocabularies["labels"]
            return UnderstandTask(model, inputs, tags, labels, **options)
        return TagTask(model, inputs, vocabularies["tags"], **options)

    def check_data(
        self,
        settings: Settings,
        progress: Progress,
        memory_probe: MemoryProbe,  # noqa: ARG002
    ) -> dict[str, Any]:
        return check_labeled(settings, progress, word_rows, lambda task: task.tags.size)


def word_rows(task: TagTask, records: list[Record], max_tokens: int) -> list[list[Any]]:
    """Return the rows of these sentences that the model reads."""
    return [task.word_inputs.row(record["text"].split(), max_tokens) for record in records]


BUILDER = TagBuilder()
