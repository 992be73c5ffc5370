"""The data doctor for worlds: made here, so that only their sizes can be odd."""

from collections.abc import Iterator
from typing import Any

from regard.config.settings import Settings
from regard.corpora.build import build as build_corpus
from regard.metric.worlds import at_random, mean_return, optimal, play
from regard.train.count import Shown
from regard.train.run import prepare

FEW = 1000  # worlds of dev or test: with fewer, the standard error of a bandit is above 0.06


def check_worlds(settings: Settings, shown: Shown) -> dict[str, Any]:
    """How many worlds, what chance gets in them, and what those get who know them."""
    corpus = build_corpus(settings.data)
    run = prepare(settings, corpus)
    splits: dict[str, Any] = {}
    for split in corpus.splits:
        worlds = run.worlds(shown(f"reading {split}", None, corpus.read(split)))
        splits[split] = {
            "worlds": len(worlds),
            "steps": run.task.form.steps,
            "random": round(mean_return(play(at_random, worlds)).value, 2),
            "known": round(mean_return(worlds.known()).value, 2),
            "one_source_in": 1,
        }
        form = run.task.form
        if form.states == 1 and (most := optimal(form.actions, form.steps)) is not None:
            splits[split]["optimal"] = round(most, 2)
    found = {
        "data": corpus.describe(),
        "splits": splits,
        "model": {
            "kind": settings.model.kind,
            "parameters": sum(p.numel() for p in run.model.parameters()),
        },
    }
    return {**found, "warnings": list(on_worlds(found, settings))}


def on_worlds(found: dict[str, Any], settings: Any) -> Iterator[str]:
    for split, facts in found["splits"].items():
        if facts["worlds"] < FEW:
            few = f"only {facts['worlds']} worlds: differences of its score may be chance"
            yield f"{split}: {few}; raise data.held_out"
    train = settings.train
    if train.worlds < (train.sentences_per_batch or 1):
        yield (
            f"train.worlds = {train.worlds} is less than a batch of {train.sentences_per_batch}: "
            "raise it"
        )
