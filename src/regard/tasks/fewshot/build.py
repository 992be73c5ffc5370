"""Builds the task `fewshot` from its settings."""

from collections.abc import Mapping
from functools import partial

from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.data.corpus import Corpus
from regard.data.formats.images import ImageReader
from regard.data.synthetic.episodes import Prototypes
from regard.files import JsonObject
from regard.layers.images import ImageEncoder
from regard.models.catalogue import build_model, model_settings
from regard.models.protocols import Learner, require_model
from regard.tasks.base import InputField, RunAsset, TaskBuilder, Vocabularies, VocabularyLoader
from regard.tasks.building import model_options
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.fewshot.check import check_episodes
from regard.tasks.fewshot.classifier import EpisodeClassifier
from regard.tasks.fewshot.episode import SupportParser, parse_images, parse_points
from regard.tasks.fewshot.settings import FewshotSettings
from regard.tasks.fewshot.task import FewshotTask

POINT_FIELDS = (InputField("input", "Labeled points and a query, as JSON", "lines"),)


class FewshotBuilder(TaskBuilder[FewshotSettings, EpisodeClassifier]):
    """Reads `FewshotSettings`; there is no vocabulary: each episode has new classes."""

    def vocabulary_loaders(self, settings: FewshotSettings) -> Mapping[str, VocabularyLoader]:  # noqa: ARG002
        return {}

    def build_vocabularies(self, settings: FewshotSettings, corpus: Corpus) -> dict[str, RunAsset]:  # noqa: ARG002
        return {}

    def build_model(
        self,
        settings: FewshotSettings,
        vocabularies: Vocabularies,  # noqa: ARG002
    ) -> EpisodeClassifier:
        data, model, embed = settings.data, settings.model, settings.embed
        if data.kind == "prototypes":
            image_encoder, width = None, data.dim
        else:
            width = embed.dim
            image_encoder = ImageEncoder(
                data.channels, width, layers=embed.layers, hidden_dim=embed.hidden_dim
            )
        sizes = {"source_size": width + data.ways, "target_size": data.ways}
        if "steps" in model_settings(model.kind):
            sizes["steps"] = data.ways * data.shots + 1
        learner = require_model(build_model(model.kind, {**model_options(model), **sizes}), Learner)
        return EpisodeClassifier(image_encoder, learner, data.ways)

    def build_task(
        self,
        settings: FewshotSettings,
        vocabularies: Vocabularies,  # noqa: ARG002
        model: EpisodeClassifier,
    ) -> FewshotTask:
        train, optimal_class = settings.train, None
        if settings.data.kind == "prototypes":
            corpus = build_corpus(settings.data)
            optimal_class = corpus.best_class if isinstance(corpus, Prototypes) else None
        return FewshotTask(
            model,
            shots=settings.data.shots,
            parse_support=build_parser(settings),
            input_fields=POINT_FIELDS if settings.data.kind == "prototypes" else (),
            queries=train.queries,
            vary_shots=train.vary_shots,
            label_smoothing=train.label_smoothing,
            optimal_class=optimal_class,
        )

    def check_data(
        self,
        settings: Settings,
        progress: Progress,
        memory_probe: MemoryProbe,  # noqa: ARG002
    ) -> JsonObject:
        return check_episodes(settings, progress)


def build_parser(settings: FewshotSettings) -> SupportParser:
    """Return the parser of a line of input: points, or paths of images."""
    data = settings.data
    if data.kind == "prototypes":
        return partial(parse_points, dim=data.dim)
    return partial(parse_images, reader=ImageReader(data.image_size, data.channels))


BUILDER = FewshotBuilder()
