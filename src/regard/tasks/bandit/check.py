"""The data doctor for worlds: made here, so that only their sizes can be odd."""

from collections.abc import Iterator
from typing import Any

from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.metrics.bandit import mean_return, optimal_return, policy_returns, random_policy
from regard.tasks.building import build_untrained_run
from regard.tasks.doctor.counts import Progress

MIN_HELD_OUT_ENVIRONMENTS = (
    1000  # worlds of dev or test: with fewer, the standard error of a bandit is above 0.06
)


def check_environments(settings: Settings, progress: Progress) -> dict[str, Any]:
    """How many worlds, what chance gets in them, and what those get who know them."""
    corpus = build_corpus(settings.data)
    run = build_untrained_run(settings, corpus)
    splits: dict[str, Any] = {}
    for split in corpus.splits:
        records = list(progress(f"reading {split}", None, corpus.read(split)))
        environments = run.task.environments(records)
        splits[split] = {
            "worlds": len(environments),
            "steps": run.task.spec.steps,
            "random": round(mean_return(policy_returns(random_policy, environments)).value, 2),
            "known": round(mean_return(environments.optimal_returns()).value, 2),
            "one_source_in": 1,
        }
        spec = run.task.spec
        if (
            spec.states == 1
            and (best_return := optimal_return(spec.actions, spec.steps)) is not None
        ):
            splits[split]["optimal"] = round(best_return, 2)
    report = {
        "data": corpus.describe(),
        "splits": splits,
        "model": {
            "kind": settings.model.kind,
            "parameters": sum(p.numel() for p in run.model.parameters()),
        },
    }
    return {**report, "warnings": list(environment_warnings(report, settings))}


def environment_warnings(report: dict[str, Any], settings: Any) -> Iterator[str]:
    for split, statistics in report["splits"].items():
        if statistics["worlds"] < MIN_HELD_OUT_ENVIRONMENTS:
            problem = f"only {statistics['worlds']} worlds: differences of its score may be chance"
            yield f"{split}: {problem}; raise data.held_out"
    train = settings.train
    if train.rollout_environments < (train.examples_per_batch or 1):
        yield (
            f"train.rollout_environments = {train.rollout_environments} is less than a "
            f"batch of {train.examples_per_batch}: "
            "raise it"
        )
