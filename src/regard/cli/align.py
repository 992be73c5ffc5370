"""`regard align`: which word translates which, by what a run looked at; and is it right?"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import regard
from regard.cli.progress import bar
from regard.config.whole import write_whole
from regard.corpora.corpus import Record, check_name
from regard.corpora.files import pairs as read_pairs
from regard.metric.alignment import SYMMETRISATIONS, agreement, best_links, strong_links
from regard.metric.links import Gold, Links, pharaoh, read_gold
from regard.tasks.align import Aligner, Choice, Texts, Way, by_agreement, by_gold
from regard.text.tokeniser import WORD
from regard.train.translate import TranslateRun

GROW = "grow-diag"  # as Garg et al. 2019 and Chen et al. 2020 do
FORWARD = "forward"  # what signatures say of one direction
JOINED = {name.replace("_", "-"): join for name, join in SYMMETRISATIONS.items()}

Folder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Pairs = Annotated[
    list[str] | None,
    typer.Argument(metavar="PAIRS", help="`source ||| target`, TSV, or two files; - is stdin."),
]
Split = Annotated[str, typer.Option(help="Without PAIRS: this part of the run's data.")]
Reverse = Annotated[Path | None, typer.Option(metavar="RUN", help="A run of the other direction.")]
Symmetrise = Annotated[str, typer.Option(help=f"Both into one: {', '.join(JOINED)}.")]
Layer = Annotated[str | None, typer.Option(help="The layer, from 0, or 'all'; else last but one.")]
Head = Annotated[int | None, typer.Option(help="The head of that layer, from 0; else their mean.")]
Shift = Annotated[int | None, typer.Option(help="0: look where a word is written; 1: read.")]
Threshold = Annotated[float | None, typer.Option(help="Link weights from here on; else the best.")]
Dev = Annotated[list[str] | None, typer.Option(help="Pairs to choose layer, head and shift on.")]
DevGold = Annotated[Path | None, typer.Option(help="Their links; without, two directions agree.")]
GoldLinks = Annotated[Path | None, typer.Option(help="Links of PAIRS made by people: shows AER.")]
Base = Annotated[int, typer.Option(min=0, max=1, help="First word's number in gold files.")]
Out = Annotated[Path | None, typer.Option(help="Where the links go; else they are printed.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object: links, scores and choice.")]


def align(
    folder: Folder,
    files: Pairs = None,
    split: Split = "test",
    reverse: Reverse = None,
    symmetrise: Symmetrise = GROW,
    layer: Layer = None,
    head: Head = None,
    shift: Shift = None,
    threshold: Threshold = None,
    dev: Dev = None,
    dev_gold: DevGold = None,
    gold: GoldLinks = None,
    gold_base: Base = 0,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Link the words of each pair by what RUN looked at: a line 0-0 1-2 … (Pharaoh) for each."""
    check_name("symmetrise", symmetrise, JOINED)
    check_choice(dev, dev_gold, reverse, (layer, head, shift))
    if out is not None and not out.parent.is_dir():
        raise ValueError(f"{out.parent}: there is no such folder")
    runs = [opened(one) for one in (folder, reverse) if one is not None]
    find = best_links if threshold is None else partial(strong_links, threshold=threshold)
    aligners = [Aligner(run.task, turned=n == 1, find=find) for n, run in enumerate(runs)]
    texts = texts_of(read_pairs(files) if files else runs[0].corpus().read(split))
    known = None if gold is None else read_gold(gold, gold_base, sizes=sizes(texts))
    tables = chosen_on(dev, dev_gold, gold_base, aligners) if dev else []
    ways = [way for table in tables for way in table[0].ways]
    ways = ways or [one.check(way_of(layer, head, shift, one)) for one in aligners]
    links = joined(aligners, ways, texts, symmetrise)
    how = {
        "links": FORWARD if reverse is None else symmetrise,
        **named(ways),
        "method": "best" if threshold is None else f"threshold-{threshold:g}",
        "sentences": str(len(texts)),
    }
    report(links, how, tables, known, out, as_json)


def check_choice(
    dev: list[str] | None, dev_gold: Path | None, reverse: Path | None, way: tuple[Any, ...]
) -> None:
    """Options that do not go together."""
    if dev and any(part is not None for part in way):
        raise ValueError("--dev chooses layer, head and shift: leave it or them out")
    if dev and dev_gold is None and reverse is None:
        raise ValueError("--dev needs --dev-gold, or --reverse to see how well the two agree")
    if dev_gold is not None and not dev:
        raise ValueError("--dev-gold needs --dev: the pairs whose links these are")


def opened(folder: Path) -> TranslateRun:
    run = TranslateRun.load(folder)
    if not run.model.cross:
        kind = run.settings.model.kind
        raise ValueError(f"{folder}: model {kind} has no attention to the source to align by")
    return run


def texts_of(records: Iterable[Record]) -> Texts:
    return [(record["source"], record["target"]) for record in records]


def sizes(texts: Texts) -> list[tuple[int, int]]:
    return [(len(WORD.findall(source)), len(WORD.findall(target))) for source, target in texts]


def way_of(layer: str | None, head: int | None, shift: int | None, aligner: Aligner) -> Way:
    """What the options say, and the default where they are silent."""
    way = aligner.default()._replace(shift=shift or 0)
    if layer is not None:
        if layer != "all" and not layer.isdecimal():
            raise ValueError(f"--layer must be a number from 0, or 'all', not {layer!r}")
        way = way._replace(layer=None if layer == "all" else int(layer))
    if head is not None and (layer is None or layer == "all") and aligner.layers > 1:
        raise ValueError("--head needs --layer: the one that has this head")
    return way._replace(head=head)


def chosen_on(
    files: Sequence[str], gold: Path | None, base: int, aligners: Sequence[Aligner]
) -> list[list[Choice]]:
    """Tables of all that was tried, the best first: one for each direction, or for both at once."""
    texts = texts_of(read_pairs(files))
    known = None if gold is None else read_gold(gold, base, sizes=sizes(texts))
    with bar("choosing", len(texts) * len(aligners)) as shown:
        if known is None:
            return [by_agreement(aligners[0], aligners[1], texts, shown.advance)]
        return [by_gold(one, texts, known, shown.advance) for one in aligners]


def joined(
    aligners: Sequence[Aligner], ways: Sequence[Way], texts: Texts, symmetrise: str
) -> list[Links]:
    with bar("aligning", len(texts) * len(aligners)) as shown:
        each = zip(aligners, ways, strict=True)
        found = [one.links(texts, [way], told=shown.advance)[0] for one, way in each]
    if len(found) == 1:
        return found[0]
    return [JOINED[symmetrise](*both) for both in zip(*found, strict=True)]


def named(ways: Sequence[Way]) -> dict[str, str]:
    """`layer`, `heads` and `shift`, those of two directions with a plus between."""
    return {
        "layer": "+".join("all" if way.layer is None else str(way.layer) for way in ways),
        "heads": "+".join("mean" if way.head is None else str(way.head) for way in ways),
        "shift": "+".join(str(way.shift) for way in ways),
    }


def report(
    links: Sequence[Links],
    how: dict[str, str],
    tables: Sequence[Sequence[Choice]],
    known: Sequence[Gold] | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Links to a file or to standard output; what is said about them to standard error."""
    lines, found = [pharaoh(one) for one in links], dict[str, Any]()
    if out is not None:
        write_whole(out, "".join(f"{line}\n" for line in lines).encode())
    if known is not None:
        score = agreement(links, known)
        parts = "|".join(f"{name}:{value}" for name, value in how.items())
        found = {name: getattr(score, name) for name in ("aer", "precision", "recall", "f1")}
        found["signature"] = f"aer|{parts}|v:{regard.__version__}"
    if as_json:
        tried = [[listed(choice) for choice in table] for table in tables]
        printed = {} if out is not None else {"alignments": lines}
        print(json.dumps({**how, "sentences": len(lines), **found, "tried": tried, **printed}))
        return
    for table in tables:
        print(*rows(table), sep="\n", file=sys.stderr)
    if out is None:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    for name, value in found.items():
        shown = value if isinstance(value, str) else f"{value:.4f}"
        print(f"{name:10} {shown}", file=sys.stderr)


def listed(choice: Choice) -> dict[str, Any]:
    score = choice.agreement
    scores = {"aer": score.aer, "precision": score.precision, "recall": score.recall}
    return {**named(choice.ways), **scores}


def rows(table: Sequence[Choice]) -> Iterator[str]:
    """What was tried, as text; the first is what was chosen."""
    yield f"  {'layer':>7} {'heads':>9} {'shift':>5} {'aer':>9} {'precision':>9} {'recall':>6}"
    for number, choice in enumerate(table):
        layer, heads, shift, aer, precision, recall = listed(choice).values()
        chosen = "   chosen" if number == 0 else ""
        way = f"  {layer:>7} {heads:>9} {shift:>5}"
        yield f"{way} {aer:9.4f} {precision:9.4f} {recall:6.4f}{chosen}"
