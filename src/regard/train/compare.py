"""One run of a comparison: how good, how quick, and whether it looked where it should."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from regard.batch.pair import Pair
from regard.config.settings import Settings
from regard.corpora.corpus import Record
from regard.metric.alignment import agreement, best_links, word_weights
from regard.metric.comparison import Measured, edges
from regard.metric.links import Gold, Links, parsed, read_gold
from regard.metric.translation import by_length
from regard.models.catalogue import build
from regard.tasks.translate import Translator
from regard.train.log import Entry
from regard.train.run import Run


class Truth(NamedTuple):
    """Pairs whose word alignment is known."""

    records: Sequence[Record]
    gold: Sequence[Gold]


def check_models(models: Mapping[str, Settings]) -> None:
    """Fail before the first is trained, not when the last one's turn has come."""
    for name, settings in models.items():
        wanted = settings.model.model_dump(exclude={"kind"})
        try:
            with torch.device("meta"):  # shapes without memory
                build(settings.model.kind, {**wanted, "source_size": 8, "target_size": 8})
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error


def measure(
    name: str,
    run: Run,
    log: Sequence[Entry],
    records: Sequence[Record],
    *,
    longer: Sequence[Record] = (),
    truth: Truth | None = None,
    told: Callable[[int], None] | None = None,
) -> tuple[Measured, str]:
    """A run with its log, on these records; and the signature of its BLEU.

    BLEU by length is that of the records, or of `longer` ones if they are given.
    """
    start = time.perf_counter()
    outputs = said(run, records, told)
    seconds = time.perf_counter() - start
    found = run.rate(records, outputs)
    long = longer or records
    sources, references = ([record[side] for record in long] for side in ("source", "target"))
    bins = by_length(
        sources,
        said(run, long, told) if longer else outputs,
        references,
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
    run: Run, records: Sequence[Record], told: Callable[[int], None] | None = None
) -> list[str]:
    return [best[0].text for best in run.predict([r["source"] for r in records], told=told)]


def alignment_error(task: Translator, truth: Truth | None) -> float | None:
    """AER of the source word that each target word looked at most; None where there is none."""
    if truth is None or not task.model.cross:
        return None
    return agreement(looked_up(task, truth.records), truth.gold).aer


def looked_up(task: Translator, records: Sequence[Record]) -> list[Links]:
    """Links of the given pairs by the greatest weight, the target being read and not written."""
    sources = task.source.encode_batch([record["source"] for record in records])
    targets = task.target.encode_batch([record["target"] for record in records])
    both = list(zip(sources, targets, strict=True))
    tables = task.attended([Pair(0, source.ids, target.ids) for source, target in both])
    return [
        best_links(word_weights(table.numpy(), [*target.words, None], [*source.words, None]))
        for (source, target), table in zip(both, tables, strict=True)
    ]


def planted(records: Sequence[Record]) -> Truth | None:
    """The truth that the records carry themselves, as those of `reorder` do."""
    if not all("links" in record for record in records):
        return None
    gold = []
    for number, record in enumerate(records, 1):
        links = frozenset(link for link, _ in parsed(record["links"], f"record {number}", 0))
        gold.append(Gold(links, links))
    return Truth(records, gold)


def from_files(gold: Path, pairs: Path, base: int = 0) -> Truth:
    """The truth of a gold file, and its pairs: a line each, divided by ` ||| ` or a tab."""
    records: list[Record] = []
    for number, line in enumerate(pairs.read_text(encoding="utf-8").splitlines(), 1):
        sides = line.split(" ||| " if " ||| " in line else "\t")
        if len(sides) != 2:
            raise ValueError(f"{pairs}:{number}: expected 'source ||| target', or a tab between")
        records.append({"source": sides[0].strip(), "target": sides[1].strip()})
    return Truth(records, read_gold(gold, base, len(records)))
