"""Builds the task of conversation from its settings."""

from collections.abc import Mapping
from functools import partial
from itertools import islice
from pathlib import Path

import torch

from regard.config.decode import DecodeConfig, GreedyConfig
from regard.config.settings import Settings
from regard.data.corpus import Corpus, Record
from regard.data.database import Database
from regard.errors import InputError
from regard.files import JsonObject
from regard.models.protocols import AnyLanguageModel
from regard.tasks.base import RunAsset, TaskBuilder, Vocabularies, VocabularyLoader
from regard.tasks.building import (
    MAX_VOCABULARY_RECORDS,
    find_tokenizer,
    find_vocabulary,
    train_tokenizer_on_texts,
)
from regard.tasks.chat.rerank import ReplyReranker
from regard.tasks.chat.settings import ChatSettings, RerankConfig
from regard.tasks.chat.task import ChatTask
from regard.tasks.chat.turns import dialogue_turns
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.doctor.texts import check_documents
from regard.tasks.generation import Decoding, build_constraints, build_search
from regard.tasks.language_model import build_language_model
from regard.tasks.load import load_settings
from regard.tasks.run_folder import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    check_run_files,
    verify_weights,
)
from regard.tasks.run_weights import check_settings_limits, check_weights, read_weights
from regard.text.special_ids import load_tokenizer


class ChatBuilder(TaskBuilder[ChatSettings, AnyLanguageModel]):
    """Reads `ChatSettings`."""

    def vocabulary_loaders(self, settings: ChatSettings) -> Mapping[str, VocabularyLoader]:  # noqa: ARG002
        return {"text": load_tokenizer, "database": Database.load}

    def build_vocabularies(self, settings: ChatSettings, corpus: Corpus) -> dict[str, RunAsset]:
        """Return the database of the corpus, and a tokenizer of all turns."""
        database = getattr(corpus, "database", None)
        if not isinstance(database, Database):
            raise TypeError(f"corpus {type(corpus).__name__} has no database; chat needs dialogues")
        texts = (
            turn.text
            for record in islice(corpus.read("train"), MAX_VOCABULARY_RECORDS)
            for turn in dialogue_turns(record, database)
        )
        return {"text": train_tokenizer_on_texts(settings.text, texts), "database": database}

    def build_model(self, settings: ChatSettings, vocabularies: Vocabularies) -> AnyLanguageModel:
        return build_language_model(settings, find_tokenizer(vocabularies))

    def build_task(
        self, settings: ChatSettings, vocabularies: Vocabularies, model: AnyLanguageModel
    ) -> ChatTask:
        decode, reranker = settings.decode, build_reply_reranker(settings.rerank)
        return ChatTask(
            model,
            find_tokenizer(vocabularies),
            find_vocabulary(vocabularies, "database", Database),
            decoding=build_reply_decoding(decode, settings.rerank.candidates if reranker else 1),
            belief_decoding=build_reply_decoding(GreedyConfig(max_length=decode.max_length)),
            reranker=reranker,
            max_tokens=settings.train.max_tokens,
            replies_only=settings.train.replies_only,
            reverse_turns=settings.train.reverse_turns,
            label_smoothing=settings.train.label_smoothing,
        )

    def check_data(
        self,
        settings: Settings,
        progress: Progress,
        memory_probe: MemoryProbe,  # noqa: ARG002
    ) -> JsonObject:
        return check_documents(settings, progress, turn_texts)


def build_reply_decoding(decode: DecodeConfig, count: int = 1) -> Decoding:
    """Return a decoding that finds at least `count` candidate replies."""
    return Decoding(build_search(decode, count), build_constraints(decode, decode.max_length))


def build_reply_reranker(rerank: RerankConfig) -> ReplyReranker | None:
    if rerank.backward_run is None:
        return None
    load = partial(load_backward_task, Path(rerank.backward_run))
    return ReplyReranker(load, rerank.backward_weight)


def load_backward_task(folder: Path) -> ChatTask:
    """Load a run, or a checkpoint of one, that was trained on reversed turns."""
    weights_path = folder / WEIGHTS_FILE
    folder = verify_weights(folder)
    settings = load_settings(folder / CONFIG_FILE)
    if not isinstance(settings, ChatSettings):
        raise InputError(
            f"{folder}: holds a run of task {settings.task!r}; rerank.backward_run needs a chat run"
        )
    if not settings.train.reverse_turns:
        raise InputError(
            f"{folder}: reads turns in order; train the run with train.reverse_turns = true"
        )
    loaders = BUILDER.vocabulary_loaders(settings)
    check_run_files(folder, [f"{name}.json" for name in loaders])
    vocabularies = {name: load(folder / f"{name}.json") for name, load in loaders.items()}
    check_settings_limits(settings, str(folder / CONFIG_FILE))
    check_weights(lambda: BUILDER.build_model(settings, vocabularies), weights_path)
    with torch.random.fork_rng(devices=[]):
        model = BUILDER.build_model(settings, vocabularies)
    model.load_state_dict(read_weights(weights_path))
    return BUILDER.build_task(settings, vocabularies, model.eval())


def turn_texts(task: ChatTask, record: Record) -> list[str]:
    """Return the turns of a conversation, as training encodes them."""
    return [turn.text for turn in dialogue_turns(record, task.database)]


BUILDER = ChatBuilder()
