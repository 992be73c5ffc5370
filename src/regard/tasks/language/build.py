"""Builds the task of language modeling from its settings."""

import math
from collections.abc import Mapping
from typing import Any

from regard.config.settings import Settings
from regard.data.corpus import Corpus
from regard.models.protocols import AnyLanguageModel
from regard.tasks.base import TaskBuilder
from regard.tasks.building import train_tokenizer_on_corpus
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

    def vocabulary_loaders(self, settings: LanguageSettings) -> dict[str, Any]:  # noqa: ARG002
        return {"text": load_tokenizer}

    def build_vocabularies(self, settings: LanguageSettings, corpus: Corpus) -> dict[str, Any]:
        return {"text": train_tokenizer_on_corpus(settings.text, corpus, "text")}

    def build_model(
        self, settings: LanguageSettings, vocabularies: Mapping[str, Any]
    ) -> AnyLanguageModel:
        return build_language_model(settings, vocabularies["text"])

    def build_task(
        self, settings: LanguageSettings, vocabularies: Mapping[str, Any], model: AnyLanguageModel
    ) -> LanguageTask:
        return LanguageTask(
            model,
            vocabularies["text"],
            decoding=build_decoding(settings.decode, math.inf),
            **stream_options(settings),
        )

    def check_data(
        self,
        settings: Settings,
        progress: Progress,
        memory_probe: MemoryProbe,  # noqa: ARG002
    ) -> dict[str, Any]:
        return check_documents(settings, progress)


BUILDER = LanguageBuilder()
