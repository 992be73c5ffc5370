"""`regard check`: the data doctor. What a training would meet, before it begins."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.progress import progress_bar
from regard.data.corpus import Record
from regard.tasks.catalogue import find_task
from regard.tasks.load import load_settings
from regard.training.memory import measure_memory
from regard.view.terminal import label

RECORDS_PER_UPDATE = 1000  # records between two looks at the clock
COUNT_TITLES = {
    "pairs": "pairs",
    "texts": "texts",
    "questions": "questions",
    "contexts": "contexts",
    "without_answer": "without an answer",
    "documents": "documents",
    "episodes": "episodes",
    "classes": "classes",
    "pictures": "pictures",
    "fewest": "pictures of a class, least",
    "captions": "captions",
    "broken": "cannot be read",
    "shortest_side": "shortest side, in pixels",
    "usual_side": "shorter side, the median",
    "longest_side": "longest side",
    "repeated_pictures": "pictures seen before",
    "leaked_pictures": "pictures also in train",
    "leaked_classes": "classes also in train",
    "nearest": "% right, by the nearest mean",
    "at_best": "% right, at best",
    "sequences": "sequences",
    "vectors": "vectors to be told",
    "smallest": "smallest size",
    "largest": "largest size",
    "residues": "residues",
    "aligned": "aligned sequences",
    "other_residues": "residues that are not known",
    "untold": "states that are not known",
    "distances": "distances",
    "worlds": "worlds",
    "pieces": "pieces",
    "steps": "steps",
    "random": "return by chance",
    "optimal": "the most a player can get",
    "known": "return of who knows them",
    "notes": "notes",
    "silent": "silent steps",
    "lowest": "lowest pitch",
    "highest": "highest pitch",
    "unplayable": "cannot be played",
    "characters": "characters",
    "tokens": "tokens, ends included",
    "empty_text": "empty",
    "repeated_texts": "texts seen before",
    "repeated_questions": "questions seen before",
    "repeated_documents": "documents seen before",
    "repeated_pieces": "pieces seen before",
    "repeated_sequences": "sequences seen before",
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
    "duplicates": "pairs seen before",
    "ambiguous_sources": "sources with several targets",
    "leaked_pairs": "pairs also in train",
    "leaked_sources": "sources also in train",
    "ratio_outliers": "sides of very unequal length",
    "replacement_characters": "with U+FFFD",
    "control_characters": "with control characters",
    "not_nfc": "not in Unicode form NFC",
}
SHARE_TITLES = {
    "left_out": "over train.max_tokens",
    "shortened": "cut at train.max_tokens",
    "windowed": "read in several windows",
    "far": "beyond head.max_distance",
    "contacts": "nearer than head.contact_distance",
    "long": "answers over head.max_answer_tokens",
    "reshaped": "of another shape",
    "inexact": "answers that end in a token",
}
ESTIMATED_COUNTS = ("duplicates", "ambiguous_sources", "repeated_texts", "repeated_documents")
ESTIMATED_COUNTS += ("several_labels", "repeated_questions", "repeated_pieces")
ESTIMATED_COUNTS += ("repeated_pictures", "repeated_sequences")
MAX_LABELS = 20
BYTES_PER_MB = 1e6


def check(
    config: Annotated[Path, typer.Argument(help="A TOML file; `regard init` writes one.")],
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE…", help="Such as text.kind=bpe.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Examine the data of CONFIG; for translation, forecast the memory of its training, too.

    Trains nothing.
    """
    settings = load_settings(config, changes or ())
    builder = find_task(settings.task).builder()
    findings = builder.check_data(settings, track_records, measure_memory)
    print(
        json.dumps(findings, indent=1, ensure_ascii=False)
        if as_json
        else "\n".join(report_lines(findings))
    )


def track_records(
    description: str, total: int | None, records: Iterator[Record]
) -> Iterator[Record]:
    """The records, with a bar that follows them."""
    with progress_bar(description, total) as progress:
        for number, record in enumerate(records):
            if number % RECORDS_PER_UPDATE == 0:
                progress.update(number, "")
            yield record


def report_lines(findings: dict[str, Any]) -> Iterator[str]:
    """What there is of each task's own."""
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
        yield "Nothing to warn of."
        return
    yield "Warnings:"
    for line in findings["warnings"]:
        yield f"- {line}"


def length_rows(side: str, statistics: list[dict[str, Any]]) -> Iterator[str]:
    yield table_row(
        f"{side} tokens, median",
        [f"{split_statistics['median']:,}" for split_statistics in statistics],
    )
    yield table_row(
        "  95 % are at most", [f"{split_statistics['most']:,}" for split_statistics in statistics]
    )
    yield table_row(
        "  longest", [f"{split_statistics['longest']:,}" for split_statistics in statistics]
    )
    yield table_row(
        "  unknown", [f"{split_statistics['unknown']:.2%}" for split_statistics in statistics]
    )


def label_rows(label_counts: list[dict[str, int]]) -> Iterator[str]:
    """How many there are of each, the commonest first."""
    names = list(dict.fromkeys(name for counts in label_counts for name in counts))
    for name in names[:MAX_LABELS]:
        yield table_row(
            f"label {label(name, 22)}", [f"{counts.get(name, 0):,}" for counts in label_counts]
        )
    if (remaining := len(names) - MAX_LABELS) > 0:
        yield f"and {remaining} labels more"


def training_lines(findings: dict[str, Any]) -> Iterator[str]:
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


def table_row(title: str, cells: Any) -> str:
    return f"{title:30}{''.join(f'{cell:>12}' for cell in cells)}".rstrip()


def format_count(counts: dict[str, Any], name: str) -> str:
    """A number; "~" if only some sources were remembered, "" where there is nothing to say."""
    if name not in counts:
        return ""
    is_estimate = name in ESTIMATED_COUNTS and counts["one_source_in"] > 1
    return f"{'~' if is_estimate else ''}{counts[name]:,}"


def sampling_notes(splits: dict[str, Any]) -> Iterator[str]:
    """What was not counted in full, said."""
    for split, counts in splits.items():
        if (stride := counts["one_source_in"]) > 1:
            yield f"{split}: numbers with ~ are from one source in {stride}"
        for unit in ("pair", "text"):
            if (stride := counts.get(f"one_{unit}_in", 1)) > 1:
                yield f"{split}: tokens are from one {unit} in {stride}"


def format_memory(memory: dict[str, Any]) -> str:
    shape = memory["shape"]
    fixed = memory["weights"] + memory["gradients"] + memory["optimizer"]
    return (
        f"about {memory['peak'] / BYTES_PER_MB:,.0f} MB at its peak: "
        f"{memory['process'] / BYTES_PER_MB:,.0f} for "
        f"Python and torch, {fixed / BYTES_PER_MB:,.0f} for weights, gradients and optimizer, "
        f"{memory['activations'] / BYTES_PER_MB:,.0f} for the largest batch "
        f"({shape['rows']} x {shape['source']} to {shape['target']} tokens)"
    )
