"""Builds the task of captioning from its settings."""

from collections.abc import Mapping
from itertools import islice
from typing import ClassVar

from regard.batching.images import ImagePreprocessor
from regard.config.settings import Settings
from regard.data.corpus import Corpus
from regard.data.formats.captions import record_captions
from regard.data.formats.images import ImageReader
from regard.files import JsonObject
from regard.models.catalogue import build_model
from regard.models.protocols import AnyCaptionModel, CaptionModel, require_model
from regard.tasks.base import RunAsset, TaskBuilder, Vocabularies, VocabularyLoader
from regard.tasks.building import (
    MAX_VOCABULARY_RECORDS,
    find_vocabulary,
    max_positions,
    model_options,
    train_tokenizer_on_texts,
)
from regard.tasks.caption.check import check_captions
from regard.tasks.caption.comparison import CaptionComparison
from regard.tasks.caption.settings import CaptionSettings
from regard.tasks.caption.task import CaptionTask
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.generation import build_decoding
from regard.text.tokenizer import Tokenizer


class CaptionBuilder(TaskBuilder[CaptionSettings, AnyCaptionModel]):
    """Reads `CaptionSettings`."""

    comparison_class: ClassVar = CaptionComparison

    def vocabulary_loaders(self, settings: CaptionSettings) -> Mapping[str, VocabularyLoader]:  # noqa: ARG002
        return {"text": Tokenizer.load}

    def build_vocabularies(self, settings: CaptionSettings, corpus: Corpus) -> dict[str, RunAsset]:
        records = islice(corpus.read("train"), MAX_VOCABULARY_RECORDS)
        texts = (caption for record in records for caption in record_captions(record))
        return {"text": train_tokenizer_on_texts(settings.text, texts)}

    def build_model(self, settings: CaptionSettings, vocabularies: Vocabularies) -> AnyCaptionModel:
        sizes = {
            "target_size": find_vocabulary(vocabularies, "text", Tokenizer).size,
            "size": settings.image.size,
            "channels": settings.image.channels,
        }
        model = build_model(settings.model.kind, {**model_options(settings.model), **sizes})
        return require_model(model, CaptionModel)

    def build_task(
        self, settings: CaptionSettings, vocabularies: Vocabularies, model: AnyCaptionModel
    ) -> CaptionTask:
        image, train, positions = settings.image, settings.train, max_positions(settings.model)
        reader = ImageReader(image.size, image.channels, image.fit)
        return CaptionTask(
            model,
            ImagePreprocessor(reader, image.mean, image.std),
            find_vocabulary(vocabularies, "text", Tokenizer),
            decoding=build_decoding(settings.decode, positions),
            max_tokens=int(min(train.max_tokens, positions)),
            label_smoothing=train.label_smoothing,
            crop_padding=train.crop_padding,
            doubly_stochastic_weight=train.doubly_stochastic_weight,
            soft_attention_steps=train.soft_attention_steps,
        )

    def check_data(
        self,
        settings: Settings,
        progress: Progress,
        memory_probe: MemoryProbe,  # noqa: ARG002
    ) -> JsonObject:
        return check_captions(settings, progress)


BUILDER = CaptionBuilder()
