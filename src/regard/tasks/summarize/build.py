"""Builds the task of summarization from its settings."""

from typing import ClassVar

from regard.config.settings import Settings
from regard.files import JsonObject
from regard.models.protocols import AnySeq2SeqModel
from regard.tasks.base import Vocabularies
from regard.tasks.building import find_vocabulary, max_positions
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.doctor.pairs import check_pairs
from regard.tasks.generation import build_decoding
from regard.tasks.seq2seq import Seq2SeqBuilder
from regard.tasks.summarize.comparison import SummarizeComparison
from regard.tasks.summarize.settings import SummarizeSettings
from regard.tasks.summarize.task import SummarizeTask
from regard.text.special import UNKNOWN
from regard.text.tokenizer import Tokenizer


class SummarizeBuilder(Seq2SeqBuilder[SummarizeSettings]):
    """Reads `SummarizeSettings`."""

    comparison_class: ClassVar = SummarizeComparison

    def build_task(
        self, settings: SummarizeSettings, vocabularies: Vocabularies, model: AnySeq2SeqModel
    ) -> SummarizeTask:
        train, positions = settings.train, max_positions(settings.model)
        return SummarizeTask(
            model,
            find_vocabulary(vocabularies, "source", Tokenizer),
            find_vocabulary(vocabularies, "target", Tokenizer),
            # A reader cannot use an unknown word.
            decoding=build_decoding(settings.decode, positions, forbidden_ids=(UNKNOWN,)),
            max_tokens=int(min(train.max_tokens, positions)),
            max_summary_tokens=int(min(train.max_summary_tokens, positions)),
            label_smoothing=train.label_smoothing,
            coverage_weight=train.coverage_weight,
            coverage_after=train.coverage_after,
        )

    def check_data(
        self,
        settings: Settings,
        progress: Progress,
        memory_probe: MemoryProbe,
    ) -> JsonObject:
        return check_pairs(settings, progress, memory_probe, lambda task: task.max_summary_tokens)


BUILDER = SummarizeBuilder()
