"""Builds the tasks `tag` and `understand` from their settings."""

from collections.abc import Mapping
from typing import ClassVar

from torch import nn

from regard.config.settings import Settings
from regard.data.corpus import Corpus, Record
from regard.data.tag_schemes import convert_tags
from regard.files import JsonObject
from regard.models.protocols import Encoder, require_model
from regard.tasks.base import RunAsset, Vocabularies, VocabularyLoader
from regard.tasks.building import find_tokenizer, find_vocabulary
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.doctor.texts import check_labeled
from regard.tasks.encoding import EncoderBuilder
from regard.tasks.tag.inputs import WordRow, build_word_inputs
from regard.tasks.tag.model import SequenceTagger
from regard.tasks.tag.settings import TagSettings, UnderstandSettings
from regard.tasks.tag.task import TagTask, UnderstandTask, split_labels
from regard.tasks.tag.words import WordSplitter
from regard.tasks.text_vectors import text_vector_options
from regard.text.labels import Labels
from regard.text.special_ids import load_tokenizer


class TagBuilder(EncoderBuilder[TagSettings | UnderstandSettings, SequenceTagger]):
    """Reads `TagSettings` or `UnderstandSettings`; the latter add labels of sentences."""

    special_token_count: ClassVar = 2  # START and END

    def vocabulary_loaders(
        self, settings: TagSettings | UnderstandSettings
    ) -> Mapping[str, VocabularyLoader]:
        loaders: dict[str, VocabularyLoader] = {
            "text": load_tokenizer,
            "tags": Labels.load,
            "words": WordSplitter.load,
        }
        if isinstance(settings, UnderstandSettings):
            loaders["labels"] = Labels.load
        return loaders

    def build_vocabularies(
        self, settings: TagSettings | UnderstandSettings, corpus: Corpus
    ) -> dict[str, RunAsset]:
        rows = (
            convert_tags(record["tags"].split(), "bio", settings.head.scheme)
            for record in corpus.read("train")
        )
        tags = Labels.from_data(tag for row in rows for tag in row)
        vocabularies: dict[str, RunAsset] = {
            "text": self.build_tokenizer(settings, corpus, "text"),
            "tags": tags,
            "words": WordSplitter.from_data(
                record["text"].split() for record in corpus.read("train")
            ),
        }
        if isinstance(settings, UnderstandSettings):
            vocabularies["labels"] = Labels.from_data(
                split_labels(record["label"])[0] for record in corpus.read("train")
            )
        return vocabularies

    def placeholder_vocabularies(
        self, settings: TagSettings | UnderstandSettings
    ) -> dict[str, RunAsset]:
        return {**super().placeholder_vocabularies(settings), "words": WordSplitter()}

    def build_head(
        self,
        settings: TagSettings | UnderstandSettings,
        vocabularies: Vocabularies,
        encoder: nn.Module,
    ) -> SequenceTagger:
        head, label_count = settings.head, 0
        if isinstance(settings, UnderstandSettings):
            label_count = find_vocabulary(vocabularies, "labels", Labels).size
        return SequenceTagger(
            require_model(encoder, Encoder),
            find_vocabulary(vocabularies, "tags", Labels).names,
            label_count,
            scheme=head.scheme,
            crf=head.crf,
            hidden_dim=head.hidden_dim,
            dropout=head.dropout,
            frozen=settings.start.freeze,
        )

    def build_task(
        self,
        settings: TagSettings | UnderstandSettings,
        vocabularies: Vocabularies,
        model: SequenceTagger,
    ) -> TagTask:
        segments = getattr(settings.model, "segments", 0) > 1
        tokenizer = find_tokenizer(vocabularies)
        labels = None
        if isinstance(settings, UnderstandSettings):
            labels = find_vocabulary(vocabularies, "labels", Labels)
        task_class = TagTask if labels is None else UnderstandTask
        task = task_class(
            model,
            build_word_inputs(settings.model.kind, tokenizer, segments=segments),
            find_vocabulary(vocabularies, "tags", Labels),
            labels,
            splitter=find_vocabulary(vocabularies, "words", WordSplitter),
            scheme=settings.head.scheme,
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
        return check_labeled(settings, progress, word_rows, lambda task: task.tags.size)


def word_rows(task: TagTask, records: list[Record], max_tokens: int) -> list[WordRow]:
    """Return the rows of these sentences that the model reads."""
    return [task.word_inputs.row(record["text"].split(), max_tokens) for record in records]


BUILDER = TagBuilder()
