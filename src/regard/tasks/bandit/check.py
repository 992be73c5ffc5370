"""Checks of environments: they are synthetic, so that only their sizes can be wrong."""

from collections.abc import Iterator

from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.files import JsonObject
from regard.metrics.bandit import mean_return, optimal_return, policy_returns, random_policy
from regard.tasks.building import build_untrained_run
from regard.tasks.doctor.counts import Progress

MIN_HELD_OUT_ENVIRONMENTS = 1000  # with fewer, the standard error of a bandit is above 0.06


def check_environments(settings: Settings, progress: Progress) -> JsonObject:
    """Count environments; return the returns of a random and of the best policy in them."""
    corpus = build_corpus(settings.data)
    run = build_untrained_run(settings, corpus)
    splits: JsonObject = {}
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


def environment_warnings(report: JsonObject, settings: Settings) -> Iterator[str]:
    """Yield what may be wrong with the settings, and what to do."""
    for split, statistics in report["splits"].items():
        if statistics["worlds"] < MIN_HELD_OUT_ENVIRONMENTS:
            problem = f"only {statistics['worlds']} environments, so scores may differ by chance"
            yield f"{split}: {problem}; raise data.held_out"
    train = settings.train
    if train.rollout_environments < (train.examples_per_batch or 1):
        yield (
            f"train.rollout_environments = {train.rollout_environments} is less than a "
            f"batch of {train.examples_per_batch}; raise it"
        )
