"""The data doctor for classes of few examples."""

from collections.abc import Iterator
from typing import Any

from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.data.formats.class_folders import ImageEpisodes
from regard.data.synthetic.episodes import EpisodeCorpus, Prototypes
from regard.metrics.classification import success_rate
from regard.tasks.building import batch_options, build_untrained_run
from regard.tasks.doctor.counts import Progress
from regard.tasks.fewshot.task import nearest_class

MIN_HELD_OUT_EPISODES = (
    500  # episodes of dev or test: with fewer, the interval is wider than 1 in 100 at best
)
MIN_CLASSES_PER_WAY = (
    2  # times as many classes as an episode has: with fewer, episodes are all alike
)


def check_episodes(settings: Settings, progress: Progress) -> dict[str, Any]:
    """How many classes and images, how well a ruler tells them, and what is in two splits."""
    corpus = build_corpus(settings.data)
    if not isinstance(corpus, EpisodeCorpus):
        raise TypeError(f"{type(corpus).__name__} has no episodes")
    run = build_untrained_run(settings, corpus)
    run.task.batches(corpus, batch_options(settings))  # an error if there is too little data
    splits: dict[str, Any] = {}
    for split in corpus.splits:
        records = list(progress(f"reading {split}", corpus.episodes, corpus.read(split)))
        nearest_hits = [nearest_class(record) == record["target"] for record in records]
        split_report: dict[str, Any] = {"episodes": len(records)}
        if isinstance(corpus, ImageEpisodes):
            split_report |= gallery_statistics(corpus, split)
        split_report["nearest"] = round(100 * success_rate(nearest_hits).value, 1)
        if isinstance(corpus, Prototypes):
            optimal_hits = [corpus.best_class(record) == record["target"] for record in records]
            split_report["at_best"] = round(100 * success_rate(optimal_hits).value, 1)
        splits[split] = {**split_report, "one_source_in": 1}
    report = {
        "data": corpus.describe(),
        "splits": splits,
        "model": {
            "kind": settings.model.kind,
            "parameters": sum(p.numel() for p in run.model.parameters()),
        },
    }
    return {**report, "warnings": list(episode_warnings(report, settings))}


def gallery_statistics(corpus: ImageEpisodes, split: str) -> dict[str, Any]:
    gallery = corpus.class_images(split)
    classes, train = (set(corpus.classes_by_split[part][1]) for part in (split, "train"))
    statistics = {
        "classes": len(gallery.counts),
        "images": len(gallery.pixels),
        "fewest": int(gallery.counts.min()),
    }
    # those of two folders may have one name and be different all the same
    return statistics if split == "train" else statistics | {"leaked_classes": len(classes & train)}


def episode_warnings(report: dict[str, Any], settings: Any) -> Iterator[str]:
    ways = settings.data.ways
    for split, statistics in report["splits"].items():
        if statistics["episodes"] < MIN_HELD_OUT_EPISODES:
            problem = (
                f"only {statistics['episodes']} episodes: differences of its score may be chance"
            )
            yield f"{split}: {problem}; raise data.eval_episodes"
        if statistics.get("classes", MIN_CLASSES_PER_WAY * ways) < MIN_CLASSES_PER_WAY * ways:
            yield (
                f"{split}: only {statistics['classes']} classes for episodes of {ways}: "
                "they are all "
                "alike; give more, or lower data.ways"
            )
        if statistics.get("leaked_classes"):
            yield (
                f"{split}: {statistics['leaked_classes']} classes have names that train has, too: "
                "scores will flatter if they are the same; take them out of train"
            )
