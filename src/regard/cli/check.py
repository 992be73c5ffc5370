"""`regard check`: check the data of a config before training."""

import json
from collections.abc import Iterable, Iterator

from regard.batching.memory_forecast import BatchShape
from regard.cli.options import (
    ChangesArgument,
    ConfigArgument,
    JsonOption,
    SkipBadOption,
    with_skip_bad,
)
from regard.config.settings import Settings
from regard.data.corpus import Record
from regard.errors import InputError
from regard.files import JsonObject
from regard.tasks.catalogue import find_task
from regard.tasks.load import load_settings
from regard.training.memory_use import MemoryUsage, measure_memory
from regard.training.prepare import find_refusal
from regard.view.progress import progress_bar
from regard.view.terminal import label

RECORDS_PER_UPDATE = 1000  # records between two updates of the progress bar
COUNT_TITLES = {
    "pairs": "pairs",
    "texts": "texts",
    "questions": "questions",
    "contexts": "contexts",
    "without_answer": "without an answer",
    "documents": "documents",
    "episodes": "episodes",
    "classes": "classes",
    "images": "images",
    "fewest": "images of smallest class",
    "captions": "captions",
    "broken": "cannot be read",
    "shortest_side": "shortest side, pixels",
    "usual_side": "median shorter side, pixels",
    "longest_side": "longest side, pixels",
    "repeated_images": "repeated images",
    "leaked_images": "images also in train",
    "leaked_classes": "classes also in train",
    "nearest": "% correct by nearest mean",
    "at_best": "% correct at best",
    "sequences": "sequences",
    "vectors": "vectors to predict",
    "smallest": "smallest size",
    "largest": "largest size",
    "residues": "residues",
    "aligned": "aligned sequences",
    "other_residues": "unknown residues",
    "unknown_states": "unknown states",
    "distances": "distances",
    "worlds": "environments",
    "pieces": "pieces",
    "steps": "steps",
    "random": "return of random actions",
    "optimal": "best return of any learner",
    "known": "return with full knowledge",
    "notes": "notes",
    "silent": "silent steps",
    "lowest": "lowest pitch",
    "highest": "highest pitch",
    "unplayable": "cannot be played",
    "characters": "characters",
    "tokens": "tokens, with end tokens",
    "empty_text": "empty",
    "repeated_texts": "repeated texts",
    "repeated_questions": "repeated questions",
    "repeated_documents": "repeated documents",
    "repeated_pieces": "repeated pieces",
    "repeated_sequences": "repeated sequences",
    "several_labels": "texts with several labels",
    "leaked_texts": "texts also in train",
    "leaked_labels": "  with the same label",
    "leaked_questions": "questions also in train",
    "leaked_contexts": "contexts also in train",
    "leaked_documents": "documents also in train",
    "leaked_pieces": "pieces also in train",
    "leaked_sequences": "sequences also in train",
    "empty_source": "empty source",
    "empty_target": "empty target",
    "identical": "source = target",
    "duplicates": "repeated pairs",
    "ambiguous_sources": "sources with several targets",
    "leaked_pairs": "pairs also in train",
    "leaked_sources": "sources also in train",
    "ratio_outliers": "very unequal lengths",
    "replacement_characters": "with U+FFFD",
    "control_characters": "with control characters",
    "not_nfc": "not in Unicode form NFC",
}
SHARE_TITLES = {
    "left_out": "over train.max_tokens",
    "shortened": "truncated to train.max_tokens",
    "windowed": "read in several windows",
    "far": "beyond head.max_distance",
    "contacts": "nearer than head.contact_distance",
    "long": "answers over head.max_answer_tokens",
    "reshaped": "of another aspect ratio",
    "inexact": "answers that end mid-token",
}
ESTIMATED_COUNTS = ("duplicates", "ambiguous_sources", "repeated_texts", "repeated_documents")
ESTIMATED_COUNTS += ("several_labels", "repeated_questions", "repeated_pieces")
ESTIMATED_COUNTS += ("repeated_images", "repeated_sequences")
MAX_LABELS = 20
BYTES_PER_MB = 1e6


def check(
    config: ConfigArgument,
    changes: ChangesArgument = None,
    as_json: JsonOption = False,
    skip_bad: SkipBadOption = False,
) -> None:
    """Check the data of CONFIG without training: counts, lengths, duplicates and leaks.

    For translation, also estimate the memory that training needs. What `regard train` would refuse
    is refused with the same line.
    """
    settings = load_settings(config, with_skip_bad(changes, skip_bad))
    with progress_bar("preparing", 1) as progress:
        refusal = find_refusal(settings)
        progress.advance(1)

    def probe(settings: Settings, sizes: dict[str, int], shape: BatchShape) -> MemoryUsage:
        if refusal is not None:
            raise refusal
        return track_memory(settings, sizes, shape)

    try:
        findings = find_task(settings.task).builder().check_data(settings, track_records, probe)
    except InputError as error:
        raise refusal or error from None
    print(
        json.dumps(findings, indent=1, ensure_ascii=False)
        if as_json
        else "\n".join(report_lines(findings))
    )
    if refusal is not None:
        raise refusal


def track_records(
    description: str, total: int | None, records: Iterator[Record]
) -> Iterator[Record]:
    """Yield the records, and show them in a progress bar."""
    with progress_bar(description, total) as progress:
        for number, record in enumerate(records):
            if number % RECORDS_PER_UPDATE == 0:
                progress.update(number, "")
            yield record


def track_memory(settings: Settings, sizes: dict[str, int], shape: BatchShape) -> MemoryUsage:
    """Measure the memory of a training, and show that this takes a while."""
    with progress_bar("measuring memory", 1) as progress:
        usage = measure_memory(settings, sizes, shape)
        progress.advance(1)
    return usage


def report_lines(findings: JsonObject) -> Iterator[str]:
    """Yield the lines of a report; each task has some of the rows."""
    splits = findings["splits"]
    yield from (findings["data"], "", table_row("", splits))
    for name, title in COUNT_TITLES.items():
        if any(name in counts for counts in splits.values()):
            yield table_row(title, [format_count(counts, name) for counts in splits.values()])
    for side in ("source", "target", "question", "text", "caption"):
        if side in splits.get("train", {}):
            yield from length_rows(side, [counts[side] for counts in splits.values()])
    for name, title in SHARE_TITLES.items():
        if name in splits.get("train", {}):
            yield table_row(title, [f"{counts[name]:.2%}" for counts in splits.values()])
    if "labels" in splits.get("train", {}):
        yield from label_rows([counts["labels"] for counts in splits.values()])
    yield from sampling_notes(splits)
    yield ""
    yield from training_lines(findings)
    yield ""
    if not findings["warnings"]:
        yield "No warnings."
        return
    yield "Warnings:"
    for line in findings["warnings"]:
        yield f"- {line}"


def length_rows(side: str, statistics: list[JsonObject]) -> Iterator[str]:
    yield table_row(f"{side} tokens, median", [f"{split['median']:,}" for split in statistics])
    yield table_row("  95th percentile", [f"{split['most']:,}" for split in statistics])
    yield table_row("  longest", [f"{split['longest']:,}" for split in statistics])
    yield table_row("  unknown", [f"{split['unknown']:.2%}" for split in statistics])


def label_rows(label_counts: list[dict[str, int]]) -> Iterator[str]:
    """Yield a row with the count of each label."""
    names = list(dict.fromkeys(name for counts in label_counts for name in counts))
    for name in names[:MAX_LABELS]:
        yield table_row(
            f"label {label(name, 22)}", [f"{counts.get(name, 0):,}" for counts in label_counts]
        )
    if (remaining := len(names) - MAX_LABELS) > 0:
        yield f"and {remaining} more labels"


def training_lines(findings: JsonObject) -> Iterator[str]:
    model, sizes = findings["model"], list[str]()
    if "batches" in findings:
        batches = findings["batches"]
        padding = f", {batches['padding']:.1%} of them padding" if "padding" in batches else ""
        yield f"an epoch     {batches['per_epoch']:,} batches{padding}"
    if "source_size" in model:
        sizes.append(f"vocabularies of {model['source_size']:,} and {model['target_size']:,}")
    if "size" in model:
        sizes.append(f"a vocabulary of {model['size']:,}")
    if "labels" in model:
        sizes.append(f"{model['labels']} labels")
    description = ", ".join([model["kind"], f"{model['parameters']:,} parameters", *sizes])
    yield f"the model    {description}"
    if "memory" in findings:
        yield f"memory       {format_memory(findings['memory'])}"


def table_row(title: str, cells: Iterable[str]) -> str:
    return f"{title:30}{''.join(f'{cell:>12}' for cell in cells)}".rstrip()


def format_count(counts: JsonObject, name: str) -> str:
    """Return the count, with "~" if it is estimated from a sample, or "" if there is none."""
    if name not in counts:
        return ""
    is_estimate = name in ESTIMATED_COUNTS and counts["one_source_in"] > 1
    return f"{'~' if is_estimate else ''}{counts[name]:,}"


def sampling_notes(splits: JsonObject) -> Iterator[str]:
    """Yield a note on each count that is estimated from a sample."""
    for split, counts in splits.items():
        if (stride := counts["one_source_in"]) > 1:
            yield f"{split}: numbers with ~ are estimated from one source in {stride}"
        for unit in ("pair", "text"):
            if (stride := counts.get(f"one_{unit}_in", 1)) > 1:
                yield f"{split}: tokens are counted in one {unit} of {stride}"


def format_memory(memory: JsonObject) -> str:
    shape = memory["shape"]
    fixed = memory["weights"] + memory["gradients"] + memory["optimizer"]
    return (
        f"about {memory['peak'] / BYTES_PER_MB:,.0f} MB at its peak: "
        f"{memory['process'] / BYTES_PER_MB:,.0f} for "
        f"Python and torch, {fixed / BYTES_PER_MB:,.0f} for weights, gradients and optimizer, "
        f"{memory['activations'] / BYTES_PER_MB:,.0f} for the largest batch "
        f"({shape['rows']} x {shape['source']} to {shape['target']} tokens)"
    )
