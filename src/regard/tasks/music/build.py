"""Builds the tasks of music from their settings: piano rolls, or tunes in ABC notation."""

import math
from collections.abc import Mapping

from regard.config.data.notes import is_roll_data
from regard.config.decode import SampleConfig
from regard.config.settings import Settings
from regard.data.corpus import Corpus
from regard.files import JsonObject
from regard.models.catalogue import build_model
from regard.models.protocols import (
    AnyLanguageModel,
    AnyRollModel,
    LanguageModel,
    RollModel,
    require_model,
)
from regard.tasks.base import RunAsset, TaskBuilder, Vocabularies, VocabularyLoader
from regard.tasks.building import (
    find_tokenizer,
    max_positions,
    model_options,
    train_tokenizer_on_corpus,
)
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.generation import Decoding, build_decoding
from regard.tasks.language_model import build_language_model
from regard.tasks.music.check import check_music
from regard.tasks.music.rolls import KEY_COUNT, PianoRollTask
from regard.tasks.music.settings import MusicSettings
from regard.tasks.music.tunes import TuneTask
from regard.tasks.text_stream import stream_options
from regard.text.special_ids import load_tokenizer

MAX_ATTEMPTS = 20  # tunes to sample until one can be played
SEED_STRIDE = 7919  # between the seeds of attempts


class MusicBuilder(TaskBuilder[MusicSettings, AnyLanguageModel | AnyRollModel]):
    """Reads `MusicSettings`, whose data decides between piano rolls and tunes."""

    def vocabulary_loaders(self, settings: MusicSettings) -> Mapping[str, VocabularyLoader]:
        return {} if is_roll_data(settings.data) else {"text": load_tokenizer}

    def build_vocabularies(self, settings: MusicSettings, corpus: Corpus) -> dict[str, RunAsset]:
        """Return the vocabulary of tunes; piano rolls have none, but 88 keys."""
        if is_roll_data(settings.data):
            return {}
        return {"text": train_tokenizer_on_corpus(settings.text, corpus, "text")}

    def build_model(
        self, settings: MusicSettings, vocabularies: Vocabularies
    ) -> AnyLanguageModel | AnyRollModel:
        if not is_roll_data(settings.data):
            return build_language_model(settings, find_tokenizer(vocabularies))
        options = {**model_options(settings.model), "size": KEY_COUNT}
        return require_model(build_model(settings.model.kind, options), RollModel)

    def build_task(
        self,
        settings: MusicSettings,
        vocabularies: Vocabularies,
        model: AnyLanguageModel | AnyRollModel,
    ) -> PianoRollTask | TuneTask:
        decode = settings.decode
        if is_roll_data(settings.data):
            return PianoRollTask(
                require_model(model, RollModel),
                max_steps=int(min(settings.train.max_tokens, max_positions(settings.model))),
                new_steps=decode.max_length,
                temperature=decode.temperature,
                seed=decode.seed,
            )
        decodings = [build_attempt(decode, attempt) for attempt in range(MAX_ATTEMPTS)]
        return TuneTask(
            require_model(model, LanguageModel),
            find_tokenizer(vocabularies),
            decodings=decodings,
            **stream_options(settings),
        )

    def check_data(
        self,
        settings: Settings,
        progress: Progress,
        memory_probe: MemoryProbe,  # noqa: ARG002
    ) -> JsonObject:
        return check_music(settings, progress)


def build_attempt(decode: SampleConfig, attempt: int) -> Decoding:
    """Return the decoding of an attempt to sample a tune; each has another seed."""
    seed = decode.seed + SEED_STRIDE * attempt
    return build_decoding(decode.model_copy(update={"seed": seed}), math.inf)


BUILDER = MusicBuilder()
