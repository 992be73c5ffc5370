"""`regard heads`: what each head of a run looks at, what is lost without it, runs with fewer."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.progress import progress_bar
from regard.explain.heads import (
    HeadName,
    HeadReport,
    ablated_loss,
    ablated_metrics,
    head_counts,
    measure_heads,
    names_by_importance,
    prune_heads,
)
from regard.files import write_atomic
from regard.run import Run
from regard.view.chart import line_chart_png
from regard.view.curve import ChartLabels, check_path
from regard.view.report import render_table

PATTERNS = ("previous", "same", "next", "first", "last", "separator")  # of several, the first
MIN_PATTERN_SHARE = 0.4  # share of a head's weight that is worth a word


def heads(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    split: Annotated[str, typer.Option(help="Which part of the data.")] = "dev",
    limit: Annotated[int, typer.Option(min=1, help="Texts to measure on, from its start.")] = 200,
    with_metrics: Annotated[
        bool, typer.Option("--metrics", help="Also the standard metrics without each: slower.")
    ] = False,
    curve_points: Annotated[
        int,
        typer.Option("--curve-points", min=0, help="Also score with fewer heads, so many times."),
    ] = 0,
    keep_heads: Annotated[
        int | None, typer.Option(min=0, help="Take all but so many heads away; with --save-run.")
    ] = None,
    save_run: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Where that run goes.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The curve as a .png or .svg.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Take each head of RUN away in turn: how much worse does it get, and where did the head look?

    Heads are listed by how much they are missed. Taken away are those that are missed least.
    """
    if (keep_heads is None) != (save_run is None):
        raise ValueError("--keep-heads and --save-run are given together")
    if save is not None:
        check_path(save)
        curve_points = curve_points or 8
    run = Run.load(folder)
    records = list(run.corpus().read(split))[:limit]
    head_count = sum(max(n, 1) for n in head_counts(run).values())
    with progress_bar("heads", head_count) as progress:
        measured_heads = measure_heads(run, records, progress.advance, with_metrics=with_metrics)
    full_loss, pruning_order = ablated_loss(run, records), names_by_importance(measured_heads)
    if keep_heads is not None and keep_heads > head_count:
        raise ValueError(f"--keep-heads {keep_heads}: there are {head_count} heads")
    curve = pruning_curve(run, records, pruning_order, curve_points) if curve_points else []
    if save_run is not None and keep_heads is not None:
        prune_heads(run, pruning_order[: head_count - keep_heads])
        run.save(save_run)
    if save is not None:
        write_atomic(save, curve_chart(curve))
    if as_json:
        report = {"loss": full_loss, "heads": list(map(head_as_dict, measured_heads))}
        print(json.dumps({**report, "curve": curve}, indent=1))
        return
    print(heads_table(measured_heads, full_loss))
    if curve:
        print("\n" + curve_table(curve))
    if save_run is not None:
        print(
            f"\n{save_run}: a run with {keep_heads} of {head_count} heads, loss "
            f"{ablated_loss(run, records):.4f}"
        )


def curve_chart(curve: list[Any]) -> bytes:
    """The first metric by the number of heads that are left."""
    metric = next(iter(curve[0][1]))
    line = {metric: ([kept for kept, _ in curve], [metrics[metric] for _, metrics in curve])}
    labels = ChartLabels("Heads taken away, least missed first", "heads", metric)
    return line_chart_png(line, labels)


def pruning_curve(
    run: Run, records: list[Any], pruning_order: list[HeadName], curve_points: int
) -> list[Any]:
    """The loss, and the standard metrics, with ever fewer heads."""
    head_count, curve = len(pruning_order), []
    steps = sorted({round(head_count * n / curve_points) for n in range(curve_points + 1)})
    with progress_bar("with fewer heads", len(steps)) as progress:
        for removed_count in steps:
            removed = pruning_order[:removed_count]
            curve.append(
                (
                    head_count - removed_count,
                    {
                        **ablated_metrics(run, records, removed),
                        "nats": ablated_loss(run, records, removed),
                    },
                )
            )
            progress.advance(1)
    return curve


def heads_table(measured_heads: list[HeadReport], full_loss: float) -> str:
    """A row for each head, the most missed first."""
    has_aer = any(measured_head.aer is not None for measured_head in measured_heads)
    metrics = [*measured_heads[0].metric_changes][:1] + [
        metric for metric in measured_heads[0].metric_changes if metric == "aer"
    ]
    rows = [["attention", "head", "loss without it", *metrics, "bits", "distance", "looks at"]]
    rows[0] += ["own AER"] if has_aer else []
    for measured_head in sorted(
        measured_heads, key=lambda measured_head: -measured_head.loss_increase
    ):
        name, head = measured_head.name
        numbers = [f"{measured_head.loss_increase:+.4f}"]
        # rates of error are shares, the metrics of a task per cent
        numbers += [
            f"{measured_head.metric_changes[m]:+.{3 if m == 'aer' else 2}f}" for m in metrics
        ]
        numbers += [f"{measured_head.pattern.entropy:.2f}", f"{measured_head.pattern.distance:.1f}"]
        aer = "-" if measured_head.aer is None else f"{measured_head.aer:.3f}"
        rows.append(
            [
                name,
                str(head + 1),
                *numbers,
                dominant_pattern(measured_head),
                *([aer] if has_aer else []),
            ]
        )
    return f"{render_table(rows)}\n\nloss with all of them: {full_loss:.4f} nats a token"


def dominant_pattern(head: HeadReport) -> str:
    shares = {kind: getattr(head.pattern, kind) for kind in PATTERNS}
    best = max(PATTERNS, key=shares.__getitem__)
    return f"{best} {shares[best]:.0%}" if shares[best] >= MIN_PATTERN_SHARE else "-"


def curve_table(curve: list[Any]) -> str:
    names = list(curve[0][1])
    rows = [["heads", *names]]
    rows += [[str(kept), *(f"{metrics[name]:.2f}" for name in names)] for kept, metrics in curve]
    return render_table(rows)


def head_as_dict(measured_head: HeadReport) -> dict[str, Any]:
    name, head = measured_head.name
    data = {
        "attention": name,
        "head": head + 1,
        "rise": measured_head.loss_increase,
        "aer": measured_head.aer,
    }
    data |= {"changes": dict(measured_head.metric_changes)}
    return {**data, **measured_head.pattern._asdict()}
