"""Builds the task of language modeling from its settings."""

import math
from collections.abc import Mapping

from regard.config.settings import Settings
from regard.data.corpus import Corpus
from regard.files import JsonObject
from regard.models.protocols import AnyLanguageModel
from regard.tasks.base import RunAsset, TaskBuilder, Vocabularies, VocabularyLoader
from regard.tasks.building import find_tokenizer, train_tokenizer_on_corpus
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.doctor.texts import check_documents
from regard.tasks.generation import build_decoding
from regard.tasks.language.settings import LanguageSettings
from regard.tasks.language.task import LanguageTask
from regard.tasks.language_model import build_language_model
from regard.tasks.text_stream import stream_options
from regard.text.special_ids import load_tokenizer


class LanguageBuilder(TaskBuilder[LanguageSettings, AnyLanguageModel]):
    """Reads `LanguageSettings`."""

    def vocabulary_loaders(self, settings: LanguageSettings) -> Mapping[str, VocabularyLoader]:  # noqa: ARG002
        return {"text": load_tokenizer}

    def build_vocabularies(self, settings: LanguageSettings, corpus: Corpus) -> dict[str, RunAsset]:
        return {"text": train_tokenizer_on_corpus(settings.text, corpus, "text")}

    def build_model(
        self, settings: LanguageSettings, vocabularies: Vocabularies
    ) -> AnyLanguageModel:
        return build_language_model(settings, find_tokenizer(vocabularies))

    def build_task(
        self, settings: LanguageSettings, vocabularies: Vocabularies, model: AnyLanguageModel
    ) -> LanguageTask:
        return LanguageTask(
            model,
            find_tokenizer(vocabularies),
            decoding=build_decoding(settings.decode, math.inf),
            **stream_options(settings),
        )

    def check_data(
        self,
        settings: Settings,
        progress: Progress,
        memory_probe: MemoryProbe,  # noqa: ARG002
    ) -> JsonObject:
        return check_documents(settings, progress)


BUILDER = LanguageBuilder()
