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

OFTEN = 1000  # records between two looks at the clock
ROWS = {
    "pairs": "pairs",
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
MEGA = 1e6


def check(
    config: Annotated[Path, typer.Argument(help="A TOML file; `regard init` writes one.")],
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE…", help="Such as text.kind=bpe.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Examine the data of CONFIG, and forecast the memory of its training. Trains nothing."""
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
    splits, batches, model = found["splits"], found["batches"], found["model"]
    yield from (found["data"], "", row("", splits))
    for name, label in ROWS.items():
        yield row(label, [amount(facts, name) for facts in splits.values()])
    for side in ("source", "target"):
        lengths = [facts[side] for facts in splits.values()]
        yield row(f"{side} tokens, median", [f"{one['median']:,}" for one in lengths])
        yield row("  95 % are at most", [f"{one['most']:,}" for one in lengths])
        yield row("  longest", [f"{one['longest']:,}" for one in lengths])
        yield row("  unknown", [f"{one['unknown']:.2%}" for one in lengths])
    yield row("over train.longest", [f"{facts['left_out']:.2%}" for facts in splits.values()])
    yield from sampled(splits)
    yield ""
    yield f"an epoch     {batches['per_epoch']:,} batches, {batches['padding']:.1%} of them padding"
    sizes = f"vocabularies of {model['source_size']:,} and {model['target_size']:,}"
    yield f"the model    {model['kind']}, {model['parameters']:,} parameters, {sizes}"
    yield f"memory       {forecast(found['memory'])}"
    yield ""
    if not found["warnings"]:
        yield "Nothing to warn of."
        return
    yield "Warnings:"
    for line in found["warnings"]:
        yield f"- {line}"


def row(label: str, cells: Any) -> str:
    return f"{label:30}{''.join(f'{cell:>12}' for cell in cells)}".rstrip()


def amount(facts: dict[str, Any], name: str) -> str:
    """A number; "~" if only some sources were remembered, "" where there is nothing to say."""
    if name not in facts:
        return ""
    some = name in ("duplicates", "ambiguous_sources") and facts["one_source_in"] > 1
    return f"{'~' if some else ''}{facts[name]:,}"


def sampled(splits: dict[str, Any]) -> Iterator[str]:
    """What was not counted in full, said."""
    for split, facts in splits.items():
        if (every := facts["one_source_in"]) > 1:
            yield f"{split}: numbers with ~ are from one source in {every}"
        if (every := facts["one_pair_in"]) > 1:
            yield f"{split}: tokens are from one pair in {every}"


def forecast(memory: dict[str, Any]) -> str:
    shape = memory["shape"]
    fixed = memory["weights"] + memory["gradients"] + memory["optimiser"]
    return (
        f"about {memory['peak'] / MEGA:,.0f} MB at its peak: {memory['process'] / MEGA:,.0f} for "
        f"Python and torch, {fixed / MEGA:,.0f} for weights, gradients and optimiser, "
        f"{memory['activations'] / MEGA:,.0f} for the largest batch "
        f"({shape['rows']} x {shape['source']} to {shape['target']} tokens)"
    )
