"""Builds the tasks of proteins from their settings: states of residues, or distances."""

from collections.abc import Mapping

from regard.config.data.proteins import is_distance_data
from regard.data.corpus import Corpus
from regard.files import JsonObject
from regard.metrics.fold import UNKNOWN_STATE
from regard.models.catalogue import build_model
from regard.models.msa import Msa
from regard.models.protocols import Encoder, require_model
from regard.tasks.base import RunAsset, TaskBuilder, Vocabularies, VocabularyLoader
from regard.tasks.building import find_vocabulary, model_options
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.encoding import max_tokens
from regard.tasks.fold.check import check_distances, check_proteins
from regard.tasks.fold.distances import FEATURE_COUNT, DistanceTask
from regard.tasks.fold.model import RESIDUE_ID_COUNT, PairClassifier, ResidueClassifier
from regard.tasks.fold.settings import FoldSettings
from regard.tasks.fold.states import ResidueStateTask
from regard.text.labels import Labels


class FoldBuilder(TaskBuilder[FoldSettings, ResidueClassifier | PairClassifier]):
    """Reads `FoldSettings`; the kind of the data decides between states and distances."""

    def resolve_settings(self, settings: FoldSettings) -> FoldSettings:
        """Return settings with the metric of the data, unless one is set."""
        if settings.train.metric is not None:
            return settings
        metric = "mae" if is_distance_data(settings.data) else "accuracy"
        train = settings.train.model_copy(update={"metric": metric})
        return settings.model_copy(update={"train": train})

    def vocabulary_loaders(self, settings: FoldSettings) -> Mapping[str, VocabularyLoader]:
        return {} if is_distance_data(settings.data) else {"states": Labels.load}

    def build_vocabularies(self, settings: FoldSettings, corpus: Corpus) -> dict[str, RunAsset]:
        """Return the names of states; distances have no vocabulary."""
        if is_distance_data(settings.data):
            return {}
        states = {state for record in corpus.read("train") for state in record["states"]}
        return {"states": Labels(sorted(states - {UNKNOWN_STATE}))}

    def build_model(
        self, settings: FoldSettings, vocabularies: Vocabularies
    ) -> ResidueClassifier | PairClassifier:
        """Return the encoder with its head."""
        options, head = model_options(settings.model) | {"size": RESIDUE_ID_COUNT}, settings.head
        if is_distance_data(settings.data):
            encoder = build_model(settings.model.kind, {**options, "features": FEATURE_COUNT})
            return PairClassifier(require_model(encoder, Msa), head.bins, dropout=head.dropout)
        return ResidueClassifier(
            require_model(build_model(settings.model.kind, options), Encoder),
            find_vocabulary(vocabularies, "states", Labels).size,
            hidden_dim=head.hidden_dim,
            dropout=head.dropout,
        )

    def build_task(
        self,
        settings: FoldSettings,
        vocabularies: Vocabularies,
        model: ResidueClassifier | PairClassifier,
    ) -> ResidueStateTask | DistanceTask:
        label_smoothing, head = settings.train.label_smoothing, settings.head
        if isinstance(model, PairClassifier):
            return DistanceTask(
                model,
                bins=head.bins,
                min_distance=head.min_distance,
                max_distance=head.max_distance,
                contact_distance=head.contact_distance,
                max_tokens=max_tokens(settings),
                label_smoothing=label_smoothing,
            )
        return ResidueStateTask(
            model,
            find_vocabulary(vocabularies, "states", Labels),
            use_alignment=settings.model.kind == "msa",
            max_tokens=max_tokens(settings),
            label_smoothing=label_smoothing,
        )

    def check_data(
        self,
        settings: FoldSettings,
        progress: Progress,
        memory_probe: MemoryProbe,  # noqa: ARG002
    ) -> JsonObject:
        check = check_distances if is_distance_data(settings.data) else check_proteins
        return check(settings, progress)


BUILDER = FoldBuilder()
