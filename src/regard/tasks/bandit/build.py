"""Builds the task `bandit` from its settings."""

from collections.abc import Mapping

from regard.config.settings import Settings
from regard.data.corpus import Corpus
from regard.data.synthetic.environments import BanditSpec, EnvironmentSpec, MdpSpec
from regard.files import JsonObject
from regard.models.catalogue import build_model, model_settings
from regard.models.protocols import ActingLearner, AnyActingLearner, require_model
from regard.tasks.bandit.check import check_environments
from regard.tasks.bandit.ppo import PpoOptions
from regard.tasks.bandit.settings import BanditSettings
from regard.tasks.bandit.task import BanditTask
from regard.tasks.base import RunAsset, TaskBuilder, Vocabularies, VocabularyLoader
from regard.tasks.building import model_options
from regard.tasks.doctor.counts import MemoryProbe, Progress


class BanditBuilder(TaskBuilder[BanditSettings, AnyActingLearner]):
    """Reads `BanditSettings`; there is no vocabulary."""

    def vocabulary_loaders(self, settings: BanditSettings) -> Mapping[str, VocabularyLoader]:  # noqa: ARG002
        return {}

    def build_vocabularies(self, settings: BanditSettings, corpus: Corpus) -> dict[str, RunAsset]:  # noqa: ARG002
        return {}

    def build_model(
        self,
        settings: BanditSettings,
        vocabularies: Vocabularies,  # noqa: ARG002
    ) -> AnyActingLearner:
        spec, model = build_spec(settings), settings.model
        sizes = {"source_size": BanditTask.input_width(spec), "target_size": spec.actions + 1}
        if "steps" in model_settings(model.kind):
            sizes["steps"] = spec.steps
        learner = build_model(model.kind, {**model_options(model), **sizes})
        return require_model(learner, ActingLearner)

    def build_task(
        self,
        settings: BanditSettings,
        vocabularies: Vocabularies,  # noqa: ARG002
        model: AnyActingLearner,
    ) -> BanditTask:
        train = settings.train
        ppo = PpoOptions(
            environments=train.rollout_environments,
            epochs=train.rollout_epochs,
            discount=train.discount,
            gae_lambda=train.gae_lambda,
            exploration_rate=train.exploration_rate,
            clip_ratio=train.clip_ratio,
            value_weight=train.value_weight,
            entropy_weight=train.entropy_weight,
            total_steps=train.steps,
        )
        return BanditTask(model, build_spec(settings), ppo=ppo, environment_seed=settings.data.seed)

    def check_data(
        self,
        settings: Settings,
        progress: Progress,
        memory_probe: MemoryProbe,  # noqa: ARG002
    ) -> JsonObject:
        return check_environments(settings, progress)


def build_spec(settings: BanditSettings) -> EnvironmentSpec:
    """Return the numbers of actions, states and steps of all environments."""
    data = settings.data
    if data.kind == "bandit":
        return BanditSpec(data.arms, data.steps)
    return MdpSpec(data.states, data.actions, data.horizon, data.episodes)


BUILDER = BanditBuilder()
