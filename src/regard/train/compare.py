"""One run of a comparison: how good, how quick, and whether it looked where it should."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from regard.config.settings import Settings
from regard.corpora.corpus import Record
from regard.corpora.files import pairs as read_pairs
from regard.metric.alignment import agreement
from regard.metric.comparison import Measured, edges
from regard.metric.links import Gold, links_of, read_gold
from regard.metric.translation import bleu, by_length
from regard.models.catalogue import build
from regard.tasks.align import Aligner
from regard.tasks.translate import Translator
from regard.train.log import Entry
from regard.train.translate import TranslateRun


class Truth(NamedTuple):
    """Pairs whose word alignment is known."""

    records: Sequence[Record]
    gold: Sequence[Gold]


def check_models(models: Mapping[str, Settings]) -> None:
    """Fail before the first is trained, not when the last one's turn has come."""
    for name, settings in models.items():
        if settings.task != "translate":
            raise ValueError(f"{name}: is for {settings.task!r}; only translators are compared yet")
        wanted = settings.model.model_dump(exclude={"kind"})
        try:
            with torch.device("meta"):  # shapes without memory
                build(settings.model.kind, {**wanted, "source_size": 8, "target_size": 8})
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error


def measure(
    name: str,
    run: TranslateRun,
    log: Sequence[Entry],
    records: Sequence[Record],
    *,
    longer: Sequence[Record] = (),
    truth: Truth | None = None,
    told: Callable[[int], None] | None = None,
    tokenize: str = "13a",
) -> tuple[Measured, str]:
    """A run with its log, on these records; and the signature of its BLEU.

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
    steps = [entry for entry in log if entry["kind"] == "step"]
    spent = sum(entry["seconds"] for entry in steps)
    measured = Measured(
        name=name,
        parameters=sum(weight.numel() for weight in run.model.parameters()),
        bleu=float(found["bleu"]),
        chrf=float(found["chrf"]),
        exact=float(found["exact"]),
        perplexity=float(found["perplexity"]),
        aer=alignment_error(run.task, truth),
        training_tokens=sum(entry["tokens"] for entry in steps) / spent if spent else 0.0,
        decoding_sentences=len(records) / seconds,
        training_seconds=spent,
        by_length={one.name: one.score.value for one in bins},
    )
    return measured, str(found["bleu_signature"])


def said(
    run: TranslateRun, records: Sequence[Record], told: Callable[[int], None] | None = None
) -> list[str]:
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
