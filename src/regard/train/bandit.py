"""A run that acts in worlds which it finds out on the way: bandits, or small tabular ones."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from regard.batching.rollouts import RolloutBatches
from regard.config.settings import BanditSettings, Settings
from regard.data.corpus import Corpus, Record
from regard.data.synthetic.environments import BanditSpec, Environments, EnvironmentSpec, MdpSpec
from regard.metrics.bandit import (
    greedy_policy,
    mean_return,
    optimal_return,
    policy_returns,
    random_policy,
    thompson_policy,
)
from regard.models.catalogue import build_model as build_model
from regard.models.catalogue import model_settings
from regard.tasks.bandit import ActionPrediction, BanditTask, PpoCoefficients, RolloutBatch
from regard.tasks.loss import Loss
from regard.train.run import Prediction, ProgressCallback, Run

TRAINING_SEED_PREFIX = (
    3  # the seed of worlds to train in begins with it; those of dev and test with less
)


class BanditRun(Run):
    """What a life brings that begins without knowing anything of its world."""

    vocabulary_loaders: ClassVar = {}
    unit: ClassVar = "worlds"
    settings: BanditSettings
    task: BanditTask

    def build_task(self) -> BanditTask:
        spec, model = build_spec(self.settings), self.settings.model
        options = model.model_dump(exclude={"kind"})
        sizes = {"source_size": BanditTask.input_width(spec), "target_size": spec.actions + 1}
        if "steps" in model_settings(model.kind):
            sizes["steps"] = spec.steps
        return BanditTask(build_model(model.kind, {**options, **sizes}), spec)

    @classmethod
    def build_vocabularies(cls, settings: Settings, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG003
        """Actions are numbers, whatever the world."""
        return {}

    def batches(self, corpus: Corpus) -> RolloutBatches:  # noqa: ARG002 - worlds are drawn as they come
        train = self.settings.train

        def build_round(index: int) -> dict[str, torch.Tensor]:
            seed = [TRAINING_SEED_PREFIX, self.settings.data.seed, self.settings.seed, index]
            environments = self.task.form.sample(
                np.random.default_rng(seed), train.rollout_environments
            )
            return self.task.collect_rollout(
                environments, train.discount, train.gae_lambda, train.exploration_rate
            )

        return RolloutBatches(
            build_round,
            episodes_per_batch=train.examples_per_batch or 1,
            passes=train.rollout_epochs,
            collate=lambda tensors: RolloutBatch(**tensors),
        )

    def loss(self, batch: RolloutBatch, steps_done: int) -> Loss:
        train = self.settings.train
        remaining = 1 - steps_done / train.steps if train.steps else 1.0
        weights = PpoCoefficients(
            train.clip_ratio, train.value_weight, train.entropy_weight * remaining
        )
        return self.task.loss(batch, weights)

    def environments(self, records: Iterable[Record]) -> Environments:
        if not (record_list := list(records)):
            raise ValueError("records are missing: there is nothing to score")
        return Environments.from_records(self.task.form, record_list)

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        """What is missed: of what those get in the mean who know their world."""
        environments = self.environments(records)
        regret = environments.optimal_returns().sum() - self.task.greedy_returns(environments).sum()
        return Loss(torch.tensor(regret), len(environments))

    def validation_metric(self, metric: str, records: Sequence[Record]) -> float:  # noqa: ARG002 - return
        return mean_return(self.task.greedy_returns(self.environments(records))).value

    def score(
        self, records: Iterable[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        """The mean return and its standard error, beside what others get in the same worlds."""
        environments, spec = self.environments(records), self.task.form
        value, standard_error = mean_return(self.task.greedy_returns(environments))
        if on_progress is not None:
            on_progress(len(environments))
        metrics: dict[str, float | str] = {
            "return": value,
            "return_signature": self.signature(),
            "error": standard_error,
            "random": mean_return(policy_returns(random_policy, environments)).value,
        }
        if spec.states == 1:
            metrics["greedy"] = mean_return(policy_returns(greedy_policy, environments)).value
            metrics["thompson"] = mean_return(policy_returns(thompson_policy, environments)).value
            if (best_return := optimal_return(spec.actions, spec.steps)) is not None:
                metrics["optimal"] = best_return
        return {
            **metrics,
            "known": mean_return(environments.optimal_returns()).value,
            "worlds": len(environments),
        }

    def signature(self) -> str:
        spec = self.task.form
        states = f"|states:{spec.states}|horizon:{spec.horizon}" if spec.states > 1 else ""
        conditions = f"{spec.name}{states}|actions:{spec.actions}|steps:{spec.steps}"
        return f"return|{conditions}|discount:1|act:likeliest|v:1"

    def predict(
        self, texts: Sequence[str], location_format: str = "text {}"
    ) -> list[ActionPrediction]:
        """What is done after each of these lives."""
        return [
            self.task.predict(text, location_format.format(n)) for n, text in enumerate(texts, 1)
        ]

    def __call__(self, text: str) -> ActionPrediction:
        return self.predict([text])[0]

    def predict_lines(
        self, lines: Sequence[str], location_format: str = "text {}"
    ) -> list[Prediction]:
        """The next action, and how likely each is, the likeliest first."""
        predictions = list[Prediction]()
        for text, choice in zip(lines, self.predict(lines, location_format), strict=True):
            probabilities = {
                str(n): probability for n, probability in enumerate(choice.probabilities, 1)
            }
            ordered = sorted(probabilities.items(), key=lambda pair: -pair[1])
            summary = ", ".join(f"{name} {probability:.1%}" for name, probability in ordered)
            data = {"history": text, "action": choice.action + 1, "probabilities": probabilities}
            predictions.append(Prediction(summary, {**data, "value": choice.value}))
        return predictions


def build_spec(settings: BanditSettings) -> EnvironmentSpec:
    data = settings.data
    if data.kind == "bandit":
        return BanditSpec(data.arms, data.steps)
    return MdpSpec(data.states, data.actions, data.horizon, data.episodes)
