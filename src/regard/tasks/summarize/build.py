"""Builds the task of summarization from its settings."""

from collections.abc import Mapping
from typing import Any, ClassVar

from regard.config.settings import Settings
from regard.models.protocols import AnySeq2SeqModel
from regard.tasks.building import max_positions
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.doctor.pairs import check_pairs
from regard.tasks.generation import build_decoding
from regard.tasks.seq2seq import Seq2SeqBuilder
from regard.tasks.summarize.comparison import SummarizeComparison
from regard.tasks.summarize.settings import SummarizeSettings
from regard.tasks.summarize.task import SummarizeTask
from regard.text.special import UNKNOWN


class SummarizeBuilder(Seq2SeqBuilder[SummarizeSettings]):
    """Reads `SummarizeSettings`."""

    comparison_class: ClassVar = SummarizeComparison

    def build_task(
        self, settings: SummarizeSettings, vocabularies: Mapping[str, Any], model: AnySeq2SeqModel
    ) -> SummarizeTask:
        train, positions = settings.train, max_positions(settings.model)
        return SummarizeTask(
            model,
            vocabularies["source"],
            vocabularies["target"],
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
    ) -> dict[str, Any]:
        return check_pairs(settings, progress, memory_probe, lambda task: task.max_summary_tokens)


BUILDER = SummarizeBuilder()
