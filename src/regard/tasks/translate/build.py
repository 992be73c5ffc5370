"""Builds the task of translation from its settings."""

from collections.abc import Callable
from typing import ClassVar

from regard.config.settings import Settings
from regard.data.build import with_held_out
from regard.errors import InputError
from regard.files import JsonObject
from regard.models.protocols import AnySeq2SeqModel
from regard.tasks.base import Vocabularies
from regard.tasks.building import find_vocabulary, max_positions
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.doctor.pairs import check_pairs
from regard.tasks.generation import build_decoding
from regard.tasks.seq2seq import Seq2SeqBuilder
from regard.tasks.translate.comparison import TranslateComparison
from regard.tasks.translate.guide import AlignmentGuide
from regard.tasks.translate.settings import TranslateSettings, TranslateTrainConfig
from regard.tasks.translate.task import MAX_EVALUATION_TOKENS, TranslateTask
from regard.text.tokenizer import Tokenizer


class TranslateBuilder(Seq2SeqBuilder[TranslateSettings]):
    """Reads `TranslateSettings`."""

    comparison_class: ClassVar = TranslateComparison

    def resolve_settings(self, settings: TranslateSettings) -> TranslateSettings:
        """Hold out nothing of data with alignments: their files have a line for each pair."""
        if settings.train.alignments is None:
            return settings
        return settings.model_copy(update={"data": with_held_out(settings.data, 0.0)})

    def build_task(
        self, settings: TranslateSettings, vocabularies: Vocabularies, model: AnySeq2SeqModel
    ) -> TranslateTask:
        train, positions = settings.train, max_positions(settings.model)
        guide = None
        if train.guided_alignment_weight and train.alignments is not None:
            names = cross_attentions(model)
            guide = AlignmentGuide(names, train.alignments, train.guided_alignment_weight)
        return TranslateTask(
            model,
            find_vocabulary(vocabularies, "source", Tokenizer),
            find_vocabulary(vocabularies, "target", Tokenizer),
            decoding=build_decoding(settings.decode, positions),
            max_tokens=int(min(train.max_tokens, positions)),
            max_evaluation_tokens=int(min(MAX_EVALUATION_TOKENS, positions)),
            label_smoothing=train.label_smoothing,
            teacher_forcing_rate=build_teacher_forcing(train),
            guide=guide,
            bleu_tokenizer=settings.metrics.tokenize,
        )

    def check_data(
        self,
        settings: Settings,
        progress: Progress,
        memory_probe: MemoryProbe,
    ) -> JsonObject:
        return check_pairs(settings, progress, memory_probe)


def cross_attentions(model: AnySeq2SeqModel) -> tuple[str, ...]:
    if not model.cross_attentions:
        raise InputError(f"model {type(model).__name__} has no attention to the source to guide")
    return model.cross_attentions


def build_teacher_forcing(train: TranslateTrainConfig) -> Callable[[int], float]:
    """Return the teacher-forcing rate of each step: it falls linearly, then stays constant."""

    def rate(step: int) -> float:
        steps = train.teacher_forcing_steps
        progress = min(step / steps, 1.0) if steps else 1.0
        return 1 - progress * (1 - train.teacher_forcing)

    return rate


BUILDER = TranslateBuilder()
