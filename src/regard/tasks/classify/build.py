"""Builds the task of text classification from its settings."""

from collections.abc import Mapping
from typing import ClassVar

from torch import nn

from regard.config.settings import Settings
from regard.data.corpus import Corpus
from regard.files import JsonObject
from regard.models.protocols import Encoder, require_model
from regard.tasks.base import RunAsset, Vocabularies, VocabularyLoader
from regard.tasks.building import find_tokenizer, find_vocabulary
from regard.tasks.classify.settings import ClassifySettings
from regard.tasks.classify.task import ClassifyTask, TextClassifier
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.doctor.texts import check_labeled
from regard.tasks.encoder_classifier import (
    ClassifierComparison,
    build_classifier,
)
from regard.tasks.encoder_inputs import build_inputs
from regard.tasks.encoding import EncoderBuilder
from regard.tasks.text_vectors import text_vector_options
from regard.text.labels import Labels
from regard.text.special_ids import load_tokenizer


class ClassifyBuilder(EncoderBuilder[ClassifySettings, TextClassifier]):
    """Reads `ClassifySettings`."""

    comparison_class: ClassVar = ClassifierComparison
    special_token_count: ClassVar = 3  # two texts need START and two END

    def vocabulary_loaders(self, settings: ClassifySettings) -> Mapping[str, VocabularyLoader]:  # noqa: ARG002
        return {"text": load_tokenizer, "labels": Labels.load}

    def build_vocabularies(self, settings: ClassifySettings, corpus: Corpus) -> dict[str, RunAsset]:
        labels = Labels.from_data(record["label"] for record in corpus.read("train"))
        fields = ["text", "pair"] if "pair" in next(corpus.read("train"), {}) else ["text"]
        return {"text": self.build_tokenizer(settings, corpus, *fields), "labels": labels}

    def build_head(
        self, settings: ClassifySettings, vocabularies: Vocabularies, encoder: nn.Module
    ) -> TextClassifier:
        labels = find_vocabulary(vocabularies, "labels", Labels)
        return build_classifier(
            require_model(encoder, Encoder),
            labels.size,
            settings.head,
            frozen=settings.start.freeze,
        )

    def build_task(
        self, settings: ClassifySettings, vocabularies: Vocabularies, model: TextClassifier
    ) -> ClassifyTask:
        segments = getattr(settings.model, "segments", 0) > 1
        task = ClassifyTask(
            model,
            build_inputs(settings.model.kind, find_tokenizer(vocabularies), segments=segments),
            find_vocabulary(vocabularies, "labels", Labels),
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
        return check_labeled(
            settings,
            progress,
            lambda task, records, max_tokens: task.inputs.rows(records, max_tokens),
            lambda task: task.labels.size,
        )


BUILDER = ClassifyBuilder()
