"""One run of a comparison: how good, how quick, and whether it looked where it should."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from regard.config.settings import Settings
from regard.config.train import Train
from regard.corpora.corpus import Record
from regard.corpora.database import Database
from regard.corpora.files import pairs as read_pairs
from regard.metric.alignment import agreement
from regard.metric.comparison import Measured, Number, edges
from regard.metric.links import Gold, links_of, read_gold
from regard.metric.translation import bleu, by_length
from regard.tasks.align import Aligner
from regard.tasks.translate import Translator
from regard.text.labels import Labels
from regard.text.learn import train_tokeniser
from regard.train.log import Entry, place, read
from regard.train.run import Run, Told, find
from regard.train.translate import TranslateRun


class Truth(NamedTuple):
    """Pairs whose word alignment is known."""

    records: Sequence[Record]
    gold: Sequence[Gold]


def check_models(models: Mapping[str, Settings]) -> None:
    """Fail before the first is trained, not when the last one's turn has come."""
    text, labels = train_tokeniser("wordpiece", ["ab"], 8), Labels(["a", "b"])
    others = {"labels": labels, "tags": labels, "states": labels, "database": Database([], [])}
    for name, settings in models.items():
        kind = find(settings.run)
        any_words = {kept: others.get(kept, text) for kept in kind.kept}
        try:
            with torch.device("meta"):  # shapes without memory
                kind(kind.settled(settings), any_words).groups()
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error


def check_ends(models: Mapping[str, Settings], runs: Path) -> None:
    """A run that went on for longer cannot stand for what its config says: it is no more there."""
    for name, settings in models.items():
        log = read(runs / name)
        end = end_of(settings.train, log)
        if end is not None and place(log[-1]) > end:
            longer = f"was trained for {place(log[-1])} steps, but would have ended after {end}"
            raise ValueError(f"{runs / name}: {longer}; train as long, or choose other --runs")


def end_of(train: Train, log: Sequence[Entry]) -> int | None:
    """The step after which these settings end a training, if the log goes that far."""
    waited = 0
    for entry in log:
        if entry["kind"] == "dev":
            waited = 0 if entry["best"] else waited + 1
            over = train.patience is not None and waited >= train.patience
        elif train.steps is not None:
            over = entry["number"] >= train.steps
        else:
            over = train.epochs is not None and entry.get("epoch", 0) >= train.epochs
        if over:
            return place(entry)
    return None


def measure(
    name: str, run: Run, log: Sequence[Entry], records: Sequence[Record], told: Told | None = None
) -> Measured:
    """A run with its log, by the metrics of its task on these records."""
    found = run.score(records, told)
    scores = {metric: value for metric, value in found.items() if isinstance(value, float)}
    speed, spent = pace(log)
    values: dict[str, Number | None] = {
        "parameters": parameters(run),
        **scores,
        f"training_{run.counted}": speed,
        "training_seconds": spent,
    }
    return Measured(name, values, {})


def measure_translator(
    name: str,
    run: TranslateRun,
    log: Sequence[Entry],
    records: Sequence[Record],
    *,
    longer: Sequence[Record] = (),
    truth: Truth | None = None,
    told: Told | None = None,
    tokenize: str = "13a",
) -> tuple[Measured, str]:
    """The same with AER, BLEU by length and the speed of the search; the signature of its BLEU.

    BLEU by length is that of the records, or of `longer` ones if they are given.
    """
    start = time.perf_counter()
    outputs = said(run, records, told)
    seconds = time.perf_counter() - start
    found = run.rate(records, outputs, tokenize)
    long = longer or records
    sources, references = ([record[side] for record in long] for side in ("source", "target"))
    bins = by_length(
        sources,
        said(run, long, told) if longer else outputs,
        references,
        score=partial(bleu, tokenize=tokenize, force=tokenize == "none"),
        edges=edges(sources),
    )
    speed, spent = pace(log)
    values: dict[str, Number | None] = {
        "parameters": parameters(run),
        **{metric: float(found[metric]) for metric in ("bleu", "chrf", "exact", "perplexity")},
        "aer": alignment_error(run.task, truth),
        "training_tokens": speed,
        "decoding_sentences": len(records) / seconds,
        "training_seconds": spent,
    }
    measured = Measured(name, values, {one.name: one.score.value for one in bins})
    return measured, str(found["bleu_signature"])


def parameters(run: Run) -> int:
    return sum(weight.numel() for weight in run.model.parameters())


def pace(log: Sequence[Entry]) -> tuple[float, float]:
    """What was counted in a second of training, and the seconds of all steps without validation."""
    steps = [entry for entry in log if entry["kind"] == "step"]
    spent = float(sum(entry["seconds"] for entry in steps))
    return sum(entry["tokens"] for entry in steps) / spent if spent else 0.0, spent


def said(run: TranslateRun, records: Sequence[Record], told: Told | None = None) -> list[str]:
    return [best[0].text for best in run.predict([r["source"] for r in records], told=told)]


def alignment_error(task: Translator, truth: Truth | None) -> float | None:
    """AER of the source word that each target word looked at most; None where there is none."""
    if truth is None or not task.model.cross:
        return None
    aligner = Aligner(task)
    texts = [(record["source"], record["target"]) for record in truth.records]
    return agreement(aligner.links(texts, [aligner.default()])[0], truth.gold).aer


def planted(records: Sequence[Record]) -> Truth | None:
    """The truth that the records carry themselves, as those of `reorder` do."""
    if not all("links" in record for record in records):
        return None
    found = [links_of(one["links"], f"record {number}") for number, one in enumerate(records, 1)]
    return Truth(records, [Gold(links, links) for links in found])


def from_files(gold: Path, pairs: Path, base: int = 0) -> Truth:
    """The truth of a gold file, and its pairs in any format that `regard align` reads."""
    records = list(read_pairs([pairs]))
    sizes = [(len(one["source"].split()), len(one["target"].split())) for one in records]
    return Truth(records, read_gold(gold, base, sizes=sizes))
