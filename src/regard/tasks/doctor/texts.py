"""The data doctor for texts with classes, for tagged sentences, and for plain text."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from regard.batching.batches import Batches, InMemoryExamples
from regard.batching.example import ExampleSize
from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.data.corpus import Corpus, Record, location
from regard.data.statistics import SplitStatistics
from regard.data.tag_schemes import spans_from_tags
from regard.files import JsonObject
from regard.tasks.building import UntrainedRun, build_untrained_run
from regard.tasks.doctor.counts import (
    Progress,
    TokenStatistics,
    count_records,
    sampled_chunks,
    sampling_stride,
)
from regard.tasks.doctor.warnings import document_warnings, labeled_text_warnings
from regard.tasks.encoder_inputs import SentenceInputs
from regard.text.special import UNKNOWN
from regard.text.special_ids import AnyTokenizer
from regard.text.tokenizer import Tokenizer

UNLIMITED_TOKENS = 10**9  # tokens: nothing is cut off
ANY_TARGET = "text"  # every document's target: what counts is the source


@dataclass
class TextStatistics:
    """Texts of a split as rows of ids, marks included, uncut and as training sees them."""

    stride: int = 1
    text_count: int = 0
    shortened_count: int = 0
    text: TokenStatistics = field(default_factory=TokenStatistics)
    examples: list[ExampleSize] = field(default_factory=list)

    def add(self, full_row: list[Any], row: list[Any], unknown_count: int = 0) -> None:
        self.text.lengths[len(full_row)] += 1
        self.text.unknown += unknown_count
        self.shortened_count += len(row) < len(full_row)
        self.examples.append(ExampleSize(self.text_count, (len(row), 1)))
        self.text_count += 1


EncodeRows = Callable[[Any, list[Record], int], list[list[Any]]]
"""(task, records, max_tokens) -> the rows of ids that the model reads."""


def check_labeled(
    settings: Settings,
    progress: Progress,
    encode_rows: EncodeRows,
    label_count: Callable[[Any], int],
) -> JsonObject:
    """Examine texts with classes, or sentences whose words have tags."""
    corpus = build_corpus(settings.data)
    labels: dict[str, Counter[str]] = {split: Counter() for split in corpus.splits}

    def to_pair(split: str, record: Record) -> Record:
        labels[split].update(record_labels(record))
        texts = [record["text"], *([record["pair"]] if "pair" in record else [])]
        targets = [record[name] for name in ("label", "tags") if name in record]
        return {"source": "\t".join(texts), "target": "\t".join(targets)}

    statistics_by_split = count_records(corpus, progress, to_pair)
    run = build_untrained_run(settings, corpus)
    lengths_by_split = {
        split: text_statistics(
            corpus, split, statistics_by_split[split].pairs, run, progress, encode_rows
        )
        for split in labels
    }
    splits = {}
    for split, split_statistics in statistics_by_split.items():
        split_report = {
            "texts": split_statistics.pairs,
            **text_anomalies(corpus, split, split_statistics, "texts"),
        }
        split_report |= {"several_labels": split_statistics.duplicates.ambiguous_count}
        if split != "train":
            split_report |= {"leaked_labels": split_statistics.hashes.leaked_pairs}
        split_report |= {
            "shortened": lengths_by_split[split].shortened_count
            / max(lengths_by_split[split].text_count, 1)
        }
        split_report |= {
            "one_text_in": lengths_by_split[split].stride,
            "text": lengths_by_split[split].text.as_dict(),
        }
        splits[split] = {**split_report, "labels": dict(labels[split].most_common())}
    report = {
        "data": corpus.describe(),
        "splits": {split: splits[split] for split in corpus.splits},
        "batches": batch_statistics(settings, run, lengths_by_split["train"]),
        "model": {**model_summary(run), "labels": label_count(run.task)},
    }
    return {**report, "warnings": list(labeled_text_warnings(report, settings))}


def check_documents(
    settings: Settings,
    progress: Progress,
    to_texts: Callable[[Any, Record], list[str]] = lambda _, record: [record["text"]],
) -> JsonObject:
    """Examine plain text; `to_texts` returns the texts of a record that are encoded separately."""
    corpus = build_corpus(settings.data)
    characters: Counter[str] = Counter()

    def to_pair(split: str, record: Record) -> Record:
        characters[split] += len(record["text"])
        return {"source": record["text"], "target": ANY_TARGET}

    statistics_by_split = count_records(corpus, progress, to_pair)
    run = build_untrained_run(settings, corpus)
    tokenizer: AnyTokenizer = run.vocabularies["text"]
    splits = {}
    for split in corpus.splits:
        split_statistics, token_statistics = statistics_by_split[split], TokenStatistics()
        stride = sampling_stride(split_statistics.pairs)
        records = progress(f"cutting {split}", split_statistics.pairs, corpus.read(split))
        for chunk in sampled_chunks(records, stride):
            for record in chunk:
                ids = list(chain(*tokenizer.encode_ids(to_texts(run.task, record))))
                token_statistics.add(ids, unknown_id(tokenizer))
        splits[split] = {
            "documents": split_statistics.pairs,
            "characters": characters[split],
            "tokens": (token_statistics.tokens + token_statistics.lengths.total())
            * stride,  # each with its end
            **text_anomalies(corpus, split, split_statistics, "documents"),
            "one_text_in": stride,
            "text": token_statistics.as_dict(),
        }
    report = {"data": corpus.describe(), "splits": splits, "model": model_summary(run)}
    return {**report, "warnings": list(document_warnings(report, settings))}


def record_labels(record: Record) -> list[str]:
    """Its class, or what its stretches of words are."""
    if "tags" in record:
        return [span.label for span in spans_from_tags(record["tags"].split())]
    return [record["label"]]


def text_statistics(
    corpus: Corpus,
    split: str,
    total: int,
    run: UntrainedRun,
    progress: Progress,
    encode_rows: EncodeRows,
) -> TextStatistics:
    statistics, task = TextStatistics(stride=sampling_stride(total)), run.task
    unknown = unknown_id(run.vocabularies["text"])

    for chunk in sampled_chunks(
        progress(f"cutting {split}", total, corpus.read(split)), statistics.stride
    ):
        for full_row, row in zip(
            encode_rows(task, chunk, UNLIMITED_TOKENS),
            encode_rows(task, chunk, run.task.max_tokens),
            strict=True,
        ):
            statistics.add(full_row, row, unknown_count(task, full_row, unknown))
    return statistics


def unknown_count(task: Any, row: list[Any], unknown: int | None) -> int:
    """Return how many tokens of a row the vocabulary does not have.

    A row of words has an id for each word, unless the encoder reads characters only. Negative
    numbers are ids of pieces that begin no word.
    """
    if row and isinstance(row[0], str):
        word_ids = getattr(getattr(task, "word_inputs", None), "word_ids", None)
        row = [] if word_ids is None else word_ids(row)
    return sum(unknown in (token_id, ~token_id) for token_id in row)


def text_anomalies(
    corpus: Corpus, split: str, split_statistics: SplitStatistics, unit: str
) -> JsonObject:
    """Return the counts of anomalies that any text may have."""
    locations = {
        name: [location(corpus, split, index)]
        for name, index in split_statistics.first_indices.items()
    }
    anomalies: JsonObject = {
        "empty_text": split_statistics.empty_source,
        f"repeated_{unit}": split_statistics.duplicates.repeated_count,
        "one_source_in": split_statistics.duplicates.sampling_stride,
        "replacement_characters": split_statistics.replacement_characters,
        "control_characters": split_statistics.control_characters,
        "not_nfc": split_statistics.not_nfc,
        "places": {"empty_text" if n == "empty_source" else n: p for n, p in locations.items()},
    }
    if split != "train":
        anomalies |= {
            f"leaked_{unit}": split_statistics.hashes.leaked_sources,
            "compared": split_statistics.hashes.pair_count,
        }
    return anomalies


def batch_statistics(
    settings: Settings, run: UntrainedRun, statistics: TextStatistics
) -> JsonObject:
    """Return the batches of an epoch in numbers; tables of sentences have no padding share."""
    train = settings.train
    batches = Batches(
        InMemoryExamples(statistics.examples, settings.seed),
        collate=list,
        tokens_per_batch=train.tokens_per_batch,
        examples_per_batch=train.examples_per_batch,
        seed=settings.seed,
    )
    groups = [[example.lengths[0] for example in group] for group in batches.epoch_batches()]
    batch_report: JsonObject = {"per_epoch": len(groups) * statistics.stride}
    if not isinstance(getattr(run.task, "inputs", None), SentenceInputs):
        padded_tokens = sum(len(group) * max(group) for group in groups)
        batch_report["padding"] = 1 - sum(map(sum, groups)) / padded_tokens
    return batch_report


def model_summary(run: UntrainedRun) -> JsonObject:
    size = run.vocabularies["text"].size
    parameters = sum(p.numel() for p in run.model.parameters())
    return {"kind": run.settings.model.kind, "parameters": parameters, "size": size}


def unknown_id(tokenizer: AnyTokenizer) -> int | None:
    return UNKNOWN if isinstance(tokenizer, Tokenizer) else tokenizer.special.unknown
