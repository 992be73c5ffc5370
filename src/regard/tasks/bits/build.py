"""Builds the tasks `copy` and `recall` from their settings."""

from collections.abc import Mapping

from regard.config.settings import Settings
from regard.data.corpus import Corpus
from regard.data.synthetic.bits import BitFormat, CopyFormat, RecallFormat
from regard.files import JsonObject
from regard.models.catalogue import build_model
from regard.models.protocols import Learner, require_model
from regard.tasks.base import RunAsset, TaskBuilder, Vocabularies, VocabularyLoader
from regard.tasks.bits.check import check_bits
from regard.tasks.bits.settings import CopySettings, RecallSettings
from regard.tasks.bits.task import BitsTask
from regard.tasks.building import max_positions, model_options
from regard.tasks.doctor.counts import MemoryProbe, Progress


class BitsBuilder(TaskBuilder[CopySettings | RecallSettings, Learner]):
    """Reads `CopySettings` or `RecallSettings`; there is no vocabulary."""

    def vocabulary_loaders(
        self,
        settings: CopySettings | RecallSettings,  # noqa: ARG002
    ) -> Mapping[str, VocabularyLoader]:
        return {}

    def build_vocabularies(
        self,
        settings: CopySettings | RecallSettings,  # noqa: ARG002
        corpus: Corpus,  # noqa: ARG002
    ) -> dict[str, RunAsset]:
        return {}

    def build_model(
        self,
        settings: CopySettings | RecallSettings,
        vocabularies: Vocabularies,  # noqa: ARG002
    ) -> Learner:
        sequence_format = build_format(settings)
        sizes = {
            "source_size": sequence_format.width + len(sequence_format.markers),
            "target_size": sequence_format.width,
        }
        model = build_model(settings.model.kind, {**model_options(settings.model), **sizes})
        return require_model(model, Learner)

    def build_task(
        self,
        settings: CopySettings | RecallSettings,
        vocabularies: Vocabularies,  # noqa: ARG002
        model: Learner,
    ) -> BitsTask:
        return BitsTask(
            model,
            build_format(settings),
            name=settings.task,
            max_tokens=int(min(settings.train.max_tokens, max_positions(settings.model))),
            test_sizes=settings.data.test_sizes,
        )

    def check_data(
        self,
        settings: Settings,
        progress: Progress,
        memory_probe: MemoryProbe,  # noqa: ARG002
    ) -> JsonObject:
        return check_bits(settings, progress)


def build_format(settings: CopySettings | RecallSettings) -> BitFormat:
    """Return the text format of the sequences of a task."""
    data = settings.data
    if data.kind == "copy":
        return CopyFormat(data.width)
    return RecallFormat(data.width, data.vectors_per_item)


BUILDER = BitsBuilder()
