"""`regard align`: which word translates which, by what a run looked at; and is it right?"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import regard
from regard.cli.progress import progress_bar
from regard.data.corpus import Record, check_name
from regard.data.formats.text_pairs import read_pairs as read_pairs
from regard.files import write_atomic
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

DEFAULT_SYMMETRIZATION = "grow-diag"  # as Garg et al. 2019 and Chen et al. 2020 do
FORWARD = "forward"  # what signatures say of one direction
SYMMETRIZERS = {name.replace("_", "-"): join for name, join in SYMMETRIZATIONS.items()}

AlignRunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
PairsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="PAIRS", help="`source ||| target`, TSV, or two files; - is stdin."),
]
SplitOption = Annotated[str, typer.Option(help="Without PAIRS: this part of the run's data.")]
ReverseOption = Annotated[
    Path | None, typer.Option(metavar="RUN", help="A run of the other direction.")
]
SymmetrizeOption = Annotated[str, typer.Option(help=f"Both into one: {', '.join(SYMMETRIZERS)}.")]
AlignLayerOption = Annotated[
    str | None, typer.Option(help="The layer, from 1, or 'all'; else last but one.")
]
AlignHeadOption = Annotated[
    int | None, typer.Option(help="The head of that layer, from 1; else their mean.")
]
ShiftOption = Annotated[int | None, typer.Option(help="0: look where a word is written; 1: read.")]
ThresholdOption = Annotated[
    float | None, typer.Option(help="Link weights from here on; else the best.")
]
DevOption = Annotated[
    list[str] | None, typer.Option(help="Pairs to choose layer, head and shift on.")
]
DevGoldOption = Annotated[
    Path | None, typer.Option(help="Their links; without, two directions agree.")
]
GoldFileOption = Annotated[
    Path | None, typer.Option(help="Links of PAIRS made by people: shows AER.")
]
GoldBaseOption = Annotated[
    int, typer.Option(min=0, max=1, help="First word's number in gold files.")
]
SaveLinksOption = Annotated[
    Path | None, typer.Option(help="Where the links go; else they are printed.")
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="One JSON object: links, scores and choice.")
]


def align(
    folder: AlignRunArgument,
    pairs: PairsArgument = None,
    split: SplitOption = "test",
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
    as_json: JsonOption = False,
) -> None:
    """Link the words of each pair by what RUN looked at: a line 0-0 1-2 … (Pharaoh) for each."""
    check_name("symmetrize", symmetrize, SYMMETRIZERS)
    check_options(dev, dev_gold, reverse, (layer, head, shift))
    if save is not None and not save.parent.is_dir():
        raise ValueError(f"{save.parent}: there is no such folder")
    extract_links = best_links if threshold is None else partial(strong_links, threshold=threshold)
    folders = [path for path in (folder, reverse) if path is not None]
    aligners = [
        load_aligner(path, extract_links, target_to_source=number == 1)
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
    dev: list[str] | None, dev_gold: Path | None, reverse: Path | None, selection: tuple[Any, ...]
) -> None:
    """Options that do not go together."""
    if dev and any(part is not None for part in selection):
        raise ValueError("--dev chooses layer, head and shift: leave it or them out")
    if dev and dev_gold is None and reverse is None:
        raise ValueError("--dev needs --dev-gold, or --reverse to see how well the two agree")
    if dev_gold is not None and not dev:
        raise ValueError("--dev-gold needs --dev: the pairs whose links these are")


def load_aligner(folder: Path, extract_links: LinkExtractor, *, target_to_source: bool) -> Aligner:
    """Return the aligner of the run in a folder."""
    aligner = Run.load(folder).task.aligner()
    if aligner is None:
        raise ValueError(f"{folder}: the run has no attention to a source to align by")
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
    """What the options say, which count from 1, and the default where they are silent."""
    selection = aligner.default_selection()._replace(shift=shift or 0)
    if layer is not None:
        if layer != "all" and not layer.isdecimal():
            raise ValueError(f"--layer must be a number from 1, or 'all', not {layer!r}")
        layer_index = (
            None if layer == "all" else option_index("--layer", int(layer), aligner.layers)
        )
        selection = selection._replace(layer=layer_index)
    if head is None:
        return selection
    if (layer is None or layer == "all") and aligner.layers > 1:
        raise ValueError("--head needs --layer: the one that has this head")
    return selection._replace(head=option_index("--head", head, aligner.heads))


def option_index(option: str, number: int, count: int) -> int:
    """The index, from 0, of a number that an option counts from 1."""
    if not 1 <= number <= count:
        bounds = f"from 1 to {count}" if count > 1 else "1, the only one"
        raise ValueError(f"{option} must be {bounds}, not {number}")
    return number - 1


def select_on_dev(
    files: Sequence[str], gold: Path | None, base: int, aligners: Sequence[Aligner]
) -> list[list[ScoredSelection]]:
    """Tables of all that was tried, the best first: one for each direction, or for both at once."""
    texts = text_pairs(read_pairs(files))
    gold_links = None if gold is None else read_gold(gold, base, sizes=word_counts(texts))
    with progress_bar("choosing", len(texts) * len(aligners)) as progress:
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
    """`layer` and `heads`, from 1, and `shift`, those of two directions with a plus between."""
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
    """Links to a file or to standard output; what is said about them to standard error."""
    lines, scores = [to_pharaoh(sentence_links) for sentence_links in links], dict[str, Any]()
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


def choice_fields(choice: ScoredSelection) -> dict[str, Any]:
    score = choice.agreement
    scores = {"aer": score.aer, "precision": score.precision, "recall": score.recall}
    return {**selection_fields(choice.selections), **scores}


def choice_table_lines(table: Sequence[ScoredSelection]) -> Iterator[str]:
    """What was tried, as text; the first is what was chosen."""
    yield f"  {'layer':>7} {'heads':>9} {'shift':>5} {'aer':>9} {'precision':>9} {'recall':>6}"
    for number, choice in enumerate(table):
        layer, heads, shift, aer, precision, recall = choice_fields(choice).values()
        chosen = "   chosen" if number == 0 else ""
        selection = f"  {layer:>7} {heads:>9} {shift:>5}"
        yield f"{selection} {aer:9.4f} {precision:9.4f} {recall:6.4f}{chosen}"
