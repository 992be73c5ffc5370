"""The data doctor for classes of few examples."""

from collections.abc import Iterator
from typing import Any

from regard.config.settings import Settings
from regard.corpora.build import build as build_corpus
from regard.corpora.episodes import Episodes, Prototypes
from regard.corpora.gallery import Galleries
from regard.metric.classes import share_right
from regard.tasks.fewshot import nearest
from regard.train.count import Shown
from regard.train.run import prepare

FEW = 500  # episodes of dev or test: with fewer, the interval is wider than 1 in 100 at best
SPARE = 2  # times as many classes as an episode has: with fewer, episodes are all alike


def check_episodes(settings: Settings, shown: Shown) -> dict[str, Any]:
    """How many classes and pictures, how well a ruler tells them, and what is in two splits."""
    corpus = build_corpus(settings.data)
    if not isinstance(corpus, Episodes):
        raise TypeError(f"{type(corpus).__name__} has no episodes")
    run = prepare(settings, corpus)
    run.batches(corpus)  # whether there is enough to train on
    splits: dict[str, Any] = {}
    for split in corpus.splits:
        records = list(shown(f"reading {split}", corpus.episodes, corpus.read(split)))
        right = [nearest(record) == record["wanted"] for record in records]
        facts: dict[str, Any] = {"episodes": len(records)}
        if isinstance(corpus, Galleries):
            facts |= of_gallery(corpus, split)
        facts["nearest"] = round(100 * share_right(right).value, 1)
        if isinstance(corpus, Prototypes):
            best = [corpus.best(record) == record["wanted"] for record in records]
            facts["at_best"] = round(100 * share_right(best).value, 1)
        splits[split] = {**facts, "one_source_in": 1}
    found = {
        "data": corpus.describe(),
        "splits": splits,
        "model": {
            "kind": settings.model.kind,
            "parameters": sum(p.numel() for p in run.model.parameters()),
        },
    }
    return {**found, "warnings": list(on_episodes(found, settings))}


def of_gallery(corpus: Galleries, split: str) -> dict[str, Any]:
    gallery = corpus.gallery(split)
    classes, train = (set(corpus.parts[part][1]) for part in (split, "train"))
    facts = {
        "classes": len(gallery.counts),
        "pictures": len(gallery.pixels),
        "fewest": int(gallery.counts.min()),
    }
    # those of two folders may have one name and be different all the same
    return facts if split == "train" else facts | {"leaked_classes": len(classes & train)}


def on_episodes(found: dict[str, Any], settings: Any) -> Iterator[str]:
    ways = settings.data.ways
    for split, facts in found["splits"].items():
        if facts["episodes"] < FEW:
            few = f"only {facts['episodes']} episodes: differences of its score may be chance"
            yield f"{split}: {few}; raise data.episodes"
        if facts.get("classes", SPARE * ways) < SPARE * ways:
            yield (
                f"{split}: only {facts['classes']} classes for episodes of {ways}: they are all "
                "alike; give more, or lower data.ways"
            )
        if facts.get("leaked_classes"):
            yield (
                f"{split}: {facts['leaked_classes']} classes have names that train has, too: "
                "scores will flatter if they are the same; take them out of train"
            )
