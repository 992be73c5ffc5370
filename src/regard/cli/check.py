"""`regard check`: the data doctor. What a training would meet, before it begins."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.progress import bar
from regard.config.load import load
from regard.corpora.corpus import Record
from regard.train.check import check as examine
from regard.view.terminal import label

OFTEN = 1000  # records between two looks at the clock
ROWS = {
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
SHARES = {
    "left_out": "over train.longest",
    "shortened": "cut at train.longest",
    "windowed": "read in several windows",
    "far": "beyond head.farthest",
    "contacts": "nearer than head.contact",
    "long": "answers over head.longest",
    "reshaped": "of another shape",
    "inexact": "answers that end in a token",
}
ESTIMATED = ("duplicates", "ambiguous_sources", "repeated_texts", "repeated_documents")
ESTIMATED += ("several_labels", "repeated_questions", "repeated_pieces")
ESTIMATED += ("repeated_pictures", "repeated_sequences")
MOST_LABELS = 20
MEGA = 1e6


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
    found = examine(load(config, changes or ()), shown)
    print(json.dumps(found, indent=1, ensure_ascii=False) if as_json else "\n".join(report(found)))


def shown(what: str, total: int | None, records: Iterator[Record]) -> Iterator[Record]:
    """The records, with a bar that follows them."""
    with bar(what, total) as drawn:
        for number, record in enumerate(records):
            if number % OFTEN == 0:
                drawn.show(number, "")
            yield record


def report(found: dict[str, Any]) -> Iterator[str]:
    """What there is of each task's own."""
    splits = found["splits"]
    yield from (found["data"], "", row("", splits))
    for name, called in ROWS.items():
        if any(name in facts for facts in splits.values()):
            yield row(called, [amount(facts, name) for facts in splits.values()])
    for side in ("source", "target", "question", "text", "caption"):
        if side in splits.get("train", {}):
            yield from lengths(side, [facts[side] for facts in splits.values()])
    for name, called in SHARES.items():
        if name in splits.get("train", {}):
            yield row(called, [f"{facts[name]:.2%}" for facts in splits.values()])
    if "labels" in splits.get("train", {}):
        yield from labels([facts["labels"] for facts in splits.values()])
    yield from sampled(splits)
    yield ""
    yield from training(found)
    yield ""
    if not found["warnings"]:
        yield "Nothing to warn of."
        return
    yield "Warnings:"
    for line in found["warnings"]:
        yield f"- {line}"


def lengths(side: str, each: list[dict[str, Any]]) -> Iterator[str]:
    yield row(f"{side} tokens, median", [f"{one['median']:,}" for one in each])
    yield row("  95 % are at most", [f"{one['most']:,}" for one in each])
    yield row("  longest", [f"{one['longest']:,}" for one in each])
    yield row("  unknown", [f"{one['unknown']:.2%}" for one in each])


def labels(each: list[dict[str, int]]) -> Iterator[str]:
    """How many there are of each, the commonest first."""
    names = list(dict.fromkeys(name for counts in each for name in counts))
    for name in names[:MOST_LABELS]:
        yield row(f"label {label(name, 22)}", [f"{counts.get(name, 0):,}" for counts in each])
    if (more := len(names) - MOST_LABELS) > 0:
        yield f"and {more} labels more"


def training(found: dict[str, Any]) -> Iterator[str]:
    model, sizes = found["model"], list[str]()
    if "batches" in found:
        batches = found["batches"]
        more = f", {batches['padding']:.1%} of them padding" if "padding" in batches else ""
        yield f"an epoch     {batches['per_epoch']:,} batches{more}"
    if "source_size" in model:
        sizes.append(f"vocabularies of {model['source_size']:,} and {model['target_size']:,}")
    if "size" in model:
        sizes.append(f"a vocabulary of {model['size']:,}")
    if "labels" in model:
        sizes.append(f"{model['labels']} labels")
    told = ", ".join([model["kind"], f"{model['parameters']:,} parameters", *sizes])
    yield f"the model    {told}"
    if "memory" in found:
        yield f"memory       {forecast(found['memory'])}"


def row(called: str, cells: Any) -> str:
    return f"{called:30}{''.join(f'{cell:>12}' for cell in cells)}".rstrip()


def amount(facts: dict[str, Any], name: str) -> str:
    """A number; "~" if only some sources were remembered, "" where there is nothing to say."""
    if name not in facts:
        return ""
    some = name in ESTIMATED and facts["one_source_in"] > 1
    return f"{'~' if some else ''}{facts[name]:,}"


def sampled(splits: dict[str, Any]) -> Iterator[str]:
    """What was not counted in full, said."""
    for split, facts in splits.items():
        if (every := facts["one_source_in"]) > 1:
            yield f"{split}: numbers with ~ are from one source in {every}"
        for what in ("pair", "text"):
            if (every := facts.get(f"one_{what}_in", 1)) > 1:
                yield f"{split}: tokens are from one {what} in {every}"


def forecast(memory: dict[str, Any]) -> str:
    shape = memory["shape"]
    fixed = memory["weights"] + memory["gradients"] + memory["optimiser"]
    return (
        f"about {memory['peak'] / MEGA:,.0f} MB at its peak: {memory['process'] / MEGA:,.0f} for "
        f"Python and torch, {fixed / MEGA:,.0f} for weights, gradients and optimiser, "
        f"{memory['activations'] / MEGA:,.0f} for the largest batch "
        f"({shape['rows']} x {shape['source']} to {shape['target']} tokens)"
    )
