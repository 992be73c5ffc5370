"""`regard heads`: what each head of a run looks at, what is lost without it, runs with fewer."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.progress import bar
from regard.config.whole import write_whole
from regard.train.heads import Head, Name, heads_of, loss, measured, order, scores, take_away
from regard.train.run import Run
from regard.view.chart import draw
from regard.view.curve import Words, check_path
from regard.view.report import aligned

KINDS = ("previous", "same", "next", "first", "last", "separator")  # of several, the first
MUCH = 0.4  # share of a head's weight that is worth a word


def heads(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    split: Annotated[str, typer.Option(help="Which part of the data.")] = "dev",
    limit: Annotated[int, typer.Option(min=1, help="Texts to measure on, from its start.")] = 200,
    scored: Annotated[
        bool, typer.Option("--scores", help="Also the standard metrics without each: slower.")
    ] = False,
    points: Annotated[
        int, typer.Option("--curve", min=0, help="Also score with fewer heads, so many times.")
    ] = 0,
    keep: Annotated[
        int | None, typer.Option(min=0, help="Take all but so many heads away; with --to.")
    ] = None,
    to: Annotated[Path | None, typer.Option(metavar="RUN", help="Where that run goes.")] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The curve as a .png or .svg.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Take each head of RUN away in turn: how much worse does it get, and where did the head look?

    Heads are listed by how much they are missed. Taken away are those that are missed least.
    """
    if (keep is None) != (to is None):
        raise ValueError("--keep and --to are given together")
    if save is not None:
        check_path(save)
        points = points or 8
    run = Run.load(folder)
    records = list(run.corpus().read(split))[:limit]
    count = sum(max(n, 1) for n in heads_of(run).values())
    with bar("heads", count) as shown:
        found = measured(run, records, shown.advance, scored=scored)
    whole, names = loss(run, records), order(found)
    if keep is not None and keep > count:
        raise ValueError(f"--keep {keep}: there are {count} heads")
    curve = fewer(run, records, names, points) if points else []
    if to is not None and keep is not None:
        take_away(run, names[: count - keep])
        run.save(to)
    if save is not None:
        metric = next(iter(curve[0][1]))
        line = {metric: ([kept for kept, _ in curve], [one[metric] for _, one in curve])}
        write_whole(
            save, draw(line, Words("Heads taken away, least missed first", "heads", metric))
        )
    if as_json:
        print(
            json.dumps({"loss": whole, "heads": list(map(plain, found)), "curve": curve}, indent=1)
        )
        return
    print(told(found, whole))
    if curve:
        print("\n" + lines(curve))
    if to is not None:
        print(f"\n{to}: a run with {keep} of {count} heads, loss {loss(run, records):.4f}")


def fewer(run: Run, records: list[Any], names: list[Name], points: int) -> list[Any]:
    """The loss, and the standard metrics, with ever fewer heads."""
    count, found = len(names), []
    steps = sorted({round(count * n / points) for n in range(points + 1)})
    with bar("with fewer heads", len(steps)) as shown:
        for gone in steps:
            some = names[:gone]
            found.append(
                (count - gone, {**scores(run, records, some), "nats": loss(run, records, some)})
            )
            shown.advance(1)
    return found


def told(found: list[Head], whole: float) -> str:
    """A row for each head, the most missed first."""
    known = any(one.aer is not None for one in found)
    first = [*found[0].changes][:1] + [metric for metric in found[0].changes if metric == "aer"]
    rows = [["attention", "head", "loss without it", *first, "bits", "distance", "looks at"]]
    rows[0] += ["own AER"] if known else []
    for one in sorted(found, key=lambda one: -one.rise):
        name, head = one.name
        numbers = [f"{one.rise:+.4f}"]
        # rates of error are shares, the metrics of a task per cent
        numbers += [f"{one.changes[m]:+.{3 if m == 'aer' else 2}f}" for m in first]
        numbers += [f"{one.place.entropy:.2f}", f"{one.place.distance:.1f}"]
        aer = "-" if one.aer is None else f"{one.aer:.3f}"
        rows.append([name, str(head + 1), *numbers, habit(one), *([aer] if known else [])])
    return f"{aligned(rows)}\n\nloss with all of them: {whole:.4f} nats a token"


def habit(one: Head) -> str:
    shares = {kind: getattr(one.place, kind) for kind in KINDS}
    best = max(KINDS, key=shares.__getitem__)
    return f"{best} {shares[best]:.0%}" if shares[best] >= MUCH else "-"


def lines(curve: list[Any]) -> str:
    names = list(curve[0][1])
    rows = [["heads", *names]]
    rows += [[str(kept), *(f"{one[name]:.2f}" for name in names)] for kept, one in curve]
    return aligned(rows)


def plain(one: Head) -> dict[str, Any]:
    name, head = one.name
    told = {"attention": name, "head": head + 1, "rise": one.rise, "aer": one.aer}
    told |= {"changes": dict(one.changes)}
    return {**told, **one.place._asdict()}
