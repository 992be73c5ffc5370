"""The data doctor for texts with classes, for tagged sentences, and for plain text."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from regard.batch.batches import Batches, Stored
from regard.batch.pair import Pair
from regard.config.settings import Settings
from regard.corpora.build import build as build_corpus
from regard.corpora.census import Census
from regard.corpora.corpus import Corpus, Record, place
from regard.corpora.tags import spans
from regard.tasks.inputs import BySentence
from regard.tasks.tag import Tag
from regard.text.marks import AnyTokeniser
from regard.text.special import UNKNOWN
from regard.text.tokeniser import Tokeniser
from regard.train.advice import on_documents, on_texts
from regard.train.classify import ClassifyRun
from regard.train.count import Shown, Side, chunks, count, every
from regard.train.run import Run, prepare
from regard.train.tag import TagRun

WHOLE = 10**9  # tokens: nothing is cut off
ANY = "text"  # every document's target: what counts is the source


@dataclass
class Cut:
    """Texts of a split as rows of ids, marks included, uncut and as training sees them."""

    every: int = 1
    seen: int = 0
    shortened: int = 0
    text: Side = field(default_factory=Side)
    pairs: list[Pair] = field(default_factory=list)

    def add(self, whole: list[Any], row: list[Any], unknown: int | None) -> None:
        self.text.add(whole, unknown)
        self.shortened += len(row) < len(whole)
        self.pairs.append(Pair(self.seen, range(len(row)), range(1)))  # of lengths only
        self.seen += 1


def check_labelled(settings: Settings, shown: Shown) -> dict[str, Any]:
    """Texts with classes, or sentences whose words have tags, as plain data."""
    corpus = build_corpus(settings.data)
    labels: dict[str, Counter[str]] = {split: Counter() for split in corpus.splits}

    def seen(split: str, record: Record) -> Record:
        labels[split].update(names_of(record))
        both = [record["text"], *([record["pair"]] if "pair" in record else [])]
        told = [record[name] for name in ("label", "tags") if name in record]
        return {"source": "\t".join(both), "target": "\t".join(told)}

    counted = count(corpus, shown, seen)
    run: ClassifyRun | TagRun = prepare(settings, corpus)
    cut = {split: rows_of(corpus, split, counted[split].pairs, run, shown) for split in labels}
    splits = {}
    for split, census in counted.items():
        facts = {"texts": census.pairs, **odd(corpus, split, census, "texts")}
        facts |= {"several_labels": census.duplicates.ambiguous}
        if split != "train":
            facts |= {"leaked_labels": census.own.leaked_pairs}
        facts |= {"shortened": cut[split].shortened / max(cut[split].seen, 1)}
        facts |= {"one_text_in": cut[split].every, "text": cut[split].text.told()}
        splits[split] = {**facts, "labels": dict(labels[split].most_common())}
    found = {
        "data": corpus.describe(),
        "splits": {split: splits[split] for split in corpus.splits},
        "batches": batched(settings, run, cut["train"]),
        "model": {**model_of(run), "labels": names(run)},
    }
    return {**found, "warnings": list(on_texts(found, settings))}


def check_documents(settings: Settings, shown: Shown) -> dict[str, Any]:
    """Plain text, as plain data."""
    corpus = build_corpus(settings.data)
    characters: Counter[str] = Counter()

    def seen(split: str, record: Record) -> Record:
        characters[split] += len(record["text"])
        return {"source": record["text"], "target": ANY}

    counted = count(corpus, shown, seen)
    run = prepare(settings, corpus)
    text: AnyTokeniser = run.vocabularies["text"]
    splits = {}
    for split in corpus.splits:
        census, side = counted[split], Side()
        step = every(census.pairs)
        records = shown(f"cutting {split}", census.pairs, corpus.read(split))
        for some in chunks(records, step):
            for ids in text.ids([record["text"] for record in some]):
                side.add(ids, unknown_of(text))
        splits[split] = {
            "documents": census.pairs,
            "characters": characters[split],
            "tokens": (side.tokens + side.lengths.total()) * step,  # each with its end
            **odd(corpus, split, census, "documents"),
            "one_text_in": step,
            "text": side.told(),
        }
    found = {"data": corpus.describe(), "splits": splits, "model": model_of(run)}
    return {**found, "warnings": list(on_documents(found, settings))}


def names_of(record: Record) -> list[str]:
    """Its class, or what its stretches of words are."""
    if "tags" in record:
        return [span.label for span in spans(record["tags"].split())]
    return [record["label"]]


def names(run: ClassifyRun | TagRun) -> int:
    task = run.task
    return task.tags.size if isinstance(task, Tag) else task.labels.size


def rows_of(corpus: Corpus, split: str, total: int, run: ClassifyRun | TagRun, shown: Shown) -> Cut:
    found, task = Cut(every=every(total)), run.task
    unknown = unknown_of(run.vocabularies["text"])

    def rows(some: list[Record], longest: int) -> list[list[Any]]:
        if isinstance(task, Tag):
            return [task.words.row(one["text"].split(), longest) for one in some]
        return task.inputs.rows(some, longest)

    for some in chunks(shown(f"cutting {split}", total, corpus.read(split)), found.every):
        for one, row in zip(rows(some, WHOLE), rows(some, run.longest), strict=True):
            found.add(one, row, unknown)
    return found


def odd(corpus: Corpus, split: str, census: Census, what: str) -> dict[str, Any]:
    """What is told of any text."""
    places = {name: [place(corpus, split, number)] for name, number in census.first.items()}
    facts: dict[str, Any] = {
        "empty_text": census.empty_source,
        f"repeated_{what}": census.duplicates.repeated,
        "one_source_in": census.duplicates.every,
        "replacement_characters": census.replacement_characters,
        "control_characters": census.control_characters,
        "not_nfc": census.not_nfc,
        "places": {"empty_text" if n == "empty_source" else n: p for n, p in places.items()},
    }
    if split != "train":
        facts |= {f"leaked_{what}": census.own.leaked_sources, "compared": census.own.compared}
    return facts


def batched(settings: Settings, run: Run, cut: Cut) -> dict[str, Any]:
    """An epoch as training would cut it; the padding of tables of sentences is not told."""
    train = settings.train
    batches = Batches(
        Stored(cut.pairs, settings.seed),
        tokens=train.tokens_per_batch,
        sentences=train.sentences_per_batch,
        seed=settings.seed,
    )
    groups = [[len(pair.source) for pair in group] for group in batches.of_epoch()]
    found: dict[str, Any] = {"per_epoch": len(groups) * cut.every}
    if not isinstance(getattr(run.task, "inputs", None), BySentence):
        room = sum(len(group) * max(group) for group in groups)
        found["padding"] = 1 - sum(map(sum, groups)) / room
    return found


def model_of(run: Run) -> dict[str, Any]:
    size = run.vocabularies["text"].size
    parameters = sum(p.numel() for p in run.model.parameters())
    return {"kind": run.settings.model.kind, "parameters": parameters, "size": size}


def unknown_of(text: AnyTokeniser) -> int | None:
    return UNKNOWN if isinstance(text, Tokeniser) else text.special.unknown
