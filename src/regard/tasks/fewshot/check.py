"""Checks of the data of few-shot recognition."""

from collections.abc import Iterator

from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.data.formats.class_folders import ImageEpisodes
from regard.data.synthetic.episodes import EpisodeCorpus, Prototypes
from regard.files import JsonObject
from regard.metrics.classification import success_rate
from regard.tasks.building import batch_options, build_untrained_run
from regard.tasks.doctor.counts import Progress
from regard.tasks.fewshot.task import nearest_class

MIN_HELD_OUT_EPISODES = 500  # fewer give a 95 % interval of more than 1 % at best
MIN_CLASSES_PER_WAY = 2  # with fewer classes per class of an episode, all episodes are alike


def check_episodes(settings: Settings, progress: Progress) -> JsonObject:
    """Count classes and images, classes in two splits, and the accuracy of the nearest mean."""
    corpus = build_corpus(settings.data)
    if not isinstance(corpus, EpisodeCorpus):
        raise TypeError(f"{type(corpus).__name__} has no episodes")
    run = build_untrained_run(settings, corpus)
    run.task.batches(corpus, batch_options(settings))  # raises an error if data is too small
    splits: JsonObject = {}
    for split in corpus.splits:
        records = list(progress(f"reading {split}", corpus.episodes, corpus.read(split)))
        nearest_hits = [nearest_class(record) == record["target"] for record in records]
        split_report: JsonObject = {"episodes": len(records)}
        if isinstance(corpus, ImageEpisodes):
            split_report |= image_statistics(corpus, split)
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


def image_statistics(corpus: ImageEpisodes, split: str) -> JsonObject:
    """Count classes and images of a split, and classes that train has too."""
    images = corpus.class_images(split)
    classes, train = (set(corpus.classes_by_split[part][1]) for part in (split, "train"))
    statistics = {
        "classes": len(images.counts),
        "images": len(images.pixels),
        "fewest": int(images.counts.min()),
    }
    # classes are compared by name: those of two folders may still be different
    return statistics if split == "train" else statistics | {"leaked_classes": len(classes & train)}


def episode_warnings(report: JsonObject, settings: Settings) -> Iterator[str]:
    """Yield what may be wrong with the data, and what to do."""
    ways = settings.data.ways
    for split, statistics in report["splits"].items():
        if statistics["episodes"] < MIN_HELD_OUT_EPISODES:
            problem = f"only {statistics['episodes']} episodes, so scores may differ by chance"
            yield f"{split}: {problem}; raise data.eval_episodes"
        if statistics.get("classes", MIN_CLASSES_PER_WAY * ways) < MIN_CLASSES_PER_WAY * ways:
            yield (
                f"{split}: only {statistics['classes']} classes for episodes of {ways}, which "
                "are all alike; give more, or lower data.ways"
            )
        if statistics.get("leaked_classes"):
            yield (
                f"{split}: {statistics['leaked_classes']} classes have the name of a class of "
                "train; if they are the same, remove them from train: scores are too high"
            )
