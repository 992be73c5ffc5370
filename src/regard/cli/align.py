"""`regard align`: word alignments from the cross-attention of a run, and their error rate."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import regard
from regard.cli.options import DeviceOption, GoldBaseOption, RunArgument
from regard.data.corpus import Record, check_name
from regard.data.formats.text_pairs import read_pairs
from regard.errors import InputError
from regard.files import JsonObject, write_atomic
from regard.metrics.alignment import SYMMETRIZATIONS, agreement, best_links, strong_links
from regard.metrics.alignment_files import GoldAlignment, Links, read_gold, to_pharaoh
from regard.run import Run
from regard.tasks.alignment import (
    Aligner,
    LinkExtractor,
    ScoredSelection,
    TextPairs,
    WeightSelection,
    rank_by_agreement,
    rank_by_gold,
)
from regard.text.tokenizer import WORD_PATTERN
from regard.view.progress import progress_bar

DEFAULT_SYMMETRIZATION = "grow-diag"  # as Garg et al. 2019 and Chen et al. 2020 do
FORWARD = "forward"  # in signatures: links of one direction, without symmetrization
SYMMETRIZERS = {name.replace("_", "-"): join for name, join in SYMMETRIZATIONS.items()}

PairsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PAIRS",
        help="Sentence pairs: a file with lines `source ||| target`, a TSV file, a source file and "
        "a target file, or - for standard input. Default: a split of the run's data.",
    ),
]
PairsSplitOption = Annotated[
    str, typer.Option(help="Split of the run's data, if PAIRS is not given.")
]
ReverseOption = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN", help="Run that translates in the other direction, to symmetrize with."
    ),
]
SymmetrizeOption = Annotated[
    str,
    typer.Option(
        help="How links of both directions are combined, with --reverse: "
        f"{', '.join(SYMMETRIZERS)}."
    ),
]
AlignLayerOption = Annotated[
    str | None,
    typer.Option(help="Decoder layer, from 1, or 'all' for the mean. Default: the last but one."),
]
AlignHeadOption = Annotated[
    int | None, typer.Option(help="Head of that layer, from 1. Default: the mean of all heads.")
]
ShiftOption = Annotated[
    int | None,
    typer.Option(
        help="0: attention of the step that predicts a word; 1: of the step that reads it. "
        "Default: 0."
    ),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(
        help="Smallest weight that becomes a link, above 0. Default: link each target word to the "
        "source word of the greatest weight."
    ),
]
DevOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Sentence pairs on which layer, head and shift are selected, in a format of PAIRS."
    ),
]
DevGoldOption = Annotated[
    Path | None,
    typer.Option(
        help="Gold links of --dev. Without it, select the layer on which both directions agree "
        "best (needs --reverse)."
    ),
]
GoldFileOption = Annotated[
    Path | None,
    typer.Option(
        help="Gold links of PAIRS, one line per pair; prints error rate, precision and recall."
    ),
]
SaveLinksOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File for the links. Default: standard output."),
]
LinksJsonOption = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON object: links, scores, and the scores of each candidate."
    ),
]


def align(
    folder: RunArgument,
    pairs: PairsArgument = None,
    split: PairsSplitOption = "test",
    reverse: ReverseOption = None,
    symmetrize: SymmetrizeOption = DEFAULT_SYMMETRIZATION,
    layer: AlignLayerOption = None,
    head: AlignHeadOption = None,
    shift: ShiftOption = None,
    threshold: ThresholdOption = None,
    dev: DevOption = None,
    dev_gold: DevGoldOption = None,
    gold: GoldFileOption = None,
    gold_base: GoldBaseOption = 0,
    save: SaveLinksOption = None,
    as_json: LinksJsonOption = False,
    device: DeviceOption = None,
) -> None:
    """Link the words of each sentence pair by the cross-attention of RUN.

    Print one line of links per pair, such as `0-0 1-2` (Pharaoh format): source word 1, counted
    from 0, is linked to target word 2.
    """
    check_name("symmetrize", symmetrize, SYMMETRIZERS)
    check_options(dev, dev_gold, reverse, (layer, head, shift))
    if save is not None and not save.parent.is_dir():
        raise InputError(f"{save.parent}: there is no such folder; create it first")
    extract_links = best_links if threshold is None else partial(strong_links, threshold=threshold)
    folders = [path for path in (folder, reverse) if path is not None]
    aligners = [
        load_aligner(path, extract_links, device or "auto", target_to_source=number == 1)
        for number, path in enumerate(folders)
    ]
    texts = text_pairs(read_pairs(pairs) if pairs else Run.load(folder).read_split(split))
    gold_links = None if gold is None else read_gold(gold, gold_base, sizes=word_counts(texts))
    tables = select_on_dev(dev, dev_gold, gold_base, aligners) if dev else []
    selections = [selection for table in tables for selection in table[0].selections]
    selections = selections or [
        item.check(selection_from_options(layer, head, shift, item)) for item in aligners
    ]
    links = symmetrized_links(aligners, selections, texts, symmetrize)
    signature_fields = {
        "links": FORWARD if reverse is None else symmetrize,
        **selection_fields(selections),
        "method": "best" if threshold is None else f"threshold-{threshold:g}",
        "sentences": str(len(texts)),
    }
    print_report(links, signature_fields, tables, gold_links, save, as_json)


def check_options(
    dev: list[str] | None,
    dev_gold: Path | None,
    reverse: Path | None,
    selection: tuple[str | int | None, ...],
) -> None:
    """Check that the options fit together."""
    if dev and any(part is not None for part in selection):
        raise InputError("--dev selects layer, head and shift; leave out either it or them")
    if dev and dev_gold is None and reverse is None:
        raise InputError("--dev needs --dev-gold, or --reverse; give one of them")
    if dev_gold is not None and not dev:
        raise InputError("--dev-gold needs --dev; give the pairs of these links")


def load_aligner(
    folder: Path, extract_links: LinkExtractor, device: str, *, target_to_source: bool
) -> Aligner:
    """Return the aligner of the run in a folder."""
    aligner = Run.load(folder, device=device).task.aligner()
    if aligner is None:
        raise InputError(f"{folder}: the run has no attention to a source; give one that has")
    aligner.extract_links, aligner.target_to_source = extract_links, target_to_source
    return aligner


def text_pairs(records: Iterable[Record]) -> TextPairs:
    return [(record["source"], record["target"]) for record in records]


def word_counts(texts: TextPairs) -> list[tuple[int, int]]:
    return [
        (len(WORD_PATTERN.findall(source)), len(WORD_PATTERN.findall(target)))
        for source, target in texts
    ]


def selection_from_options(
    layer: str | None, head: int | None, shift: int | None, aligner: Aligner
) -> WeightSelection:
    """Convert the options, which count from 1; options that are not given keep the default."""
    selection = aligner.default_selection()._replace(shift=shift or 0)
    if layer is not None:
        if layer != "all" and not layer.isdecimal():
            raise InputError(f"--layer must be a number from 1, or 'all', not {layer!r}")
        layer_index = (
            None if layer == "all" else option_index("--layer", int(layer), aligner.layers)
        )
        selection = selection._replace(layer=layer_index)
    if head is None:
        return selection
    if (layer is None or layer == "all") and aligner.layers > 1:
        raise InputError("--head needs --layer; give the layer of this head")
    return selection._replace(head=option_index("--head", head, aligner.heads))


def option_index(option: str, number: int, count: int) -> int:
    """Convert the number of an option, which counts from 1, to an index."""
    if not 1 <= number <= count:
        bounds = f"from 1 to {count}" if count > 1 else "1"
        raise InputError(f"{option} must be {bounds}, not {number}")
    return number - 1


def select_on_dev(
    files: Sequence[str], gold: Path | None, base: int, aligners: Sequence[Aligner]
) -> list[list[ScoredSelection]]:
    """Return all candidates, the best first: a table per direction, or one for both directions."""
    texts = text_pairs(read_pairs(files))
    gold_links = None if gold is None else read_gold(gold, base, sizes=word_counts(texts))
    with progress_bar("selecting", len(texts) * len(aligners)) as progress:
        if gold_links is None:
            return [rank_by_agreement(aligners[0], aligners[1], texts, progress.advance)]
        return [rank_by_gold(aligner, texts, gold_links, progress.advance) for aligner in aligners]


def symmetrized_links(
    aligners: Sequence[Aligner],
    selections: Sequence[WeightSelection],
    texts: TextPairs,
    symmetrize: str,
) -> list[Links]:
    with progress_bar("aligning", len(texts) * len(aligners)) as progress:
        aligner_selections = zip(aligners, selections, strict=True)
        links_by_direction = [
            aligner.links(texts, [selection], on_progress=progress.advance)[0]
            for aligner, selection in aligner_selections
        ]
    if len(links_by_direction) == 1:
        return links_by_direction[0]
    return [
        SYMMETRIZERS[symmetrize](*directions)
        for directions in zip(*links_by_direction, strict=True)
    ]


def selection_fields(selections: Sequence[WeightSelection]) -> dict[str, str]:
    """Return layer and head, from 1, and shift; a plus separates two directions."""
    return {
        "layer": "+".join(
            "all" if selection.layer is None else str(selection.layer + 1)
            for selection in selections
        ),
        "heads": "+".join(
            "mean" if selection.head is None else str(selection.head + 1)
            for selection in selections
        ),
        "shift": "+".join(str(selection.shift) for selection in selections),
    }


def print_report(
    links: Sequence[Links],
    signature_fields: dict[str, str],
    tables: Sequence[Sequence[ScoredSelection]],
    gold_links: Sequence[GoldAlignment] | None,
    save: Path | None,
    as_json: bool,
) -> None:
    """Write links to a file or to standard output; print scores to standard error."""
    lines = [to_pharaoh(sentence_links) for sentence_links in links]
    scores: dict[str, float | str] = {}
    if save is not None:
        write_atomic(save, "".join(f"{line}\n" for line in lines).encode())
    if gold_links is not None:
        score = agreement(links, gold_links)
        signature_parts = "|".join(f"{name}:{value}" for name, value in signature_fields.items())
        scores = {name: getattr(score, name) for name in ("aer", "precision", "recall", "f1")}
        scores["signature"] = f"aer|{signature_parts}|v:{regard.__version__}"
    if as_json:
        candidates = [[choice_fields(choice) for choice in table] for table in tables]
        alignments = {} if save is not None else {"alignments": lines}
        print(
            json.dumps(
                {
                    **signature_fields,
                    "sentences": len(lines),
                    **scores,
                    "tried": candidates,
                    **alignments,
                }
            )
        )
        return
    for table in tables:
        print(*choice_table_lines(table), sep="\n", file=sys.stderr)
    if save is None:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    for name, value in scores.items():
        formatted = value if isinstance(value, str) else f"{value:.4f}"
        print(f"{name:10} {formatted}", file=sys.stderr)


def choice_fields(choice: ScoredSelection) -> JsonObject:
    score = choice.agreement
    scores = {"aer": score.aer, "precision": score.precision, "recall": score.recall}
    return {**selection_fields(choice.selections), **scores}


def choice_table_lines(table: Sequence[ScoredSelection]) -> Iterator[str]:
    """Yield the lines of a table of candidates; the first one is selected."""
    yield f"  {'layer':>7} {'heads':>9} {'shift':>5} {'aer':>9} {'precision':>9} {'recall':>6}"
    for number, choice in enumerate(table):
        layer, heads, shift, aer, precision, recall = choice_fields(choice).values()
        mark = "   selected" if number == 0 else ""
        selection = f"  {layer:>7} {heads:>9} {shift:>5}"
        yield f"{selection} {aer:9.4f} {precision:9.4f} {recall:6.4f}{mark}"
