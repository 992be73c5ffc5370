"""`regard heads`: measure each head of a run, and save runs with fewer heads."""

import json
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from regard.cli.options import DeviceOption, JsonOption, RunArgument, SplitOption
from regard.data.corpus import Record
from regard.errors import InputError
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
from regard.files import JsonObject, write_atomic
from regard.run import Run
from regard.view.chart import line_chart_png
from regard.view.curve import ChartLabels, check_path
from regard.view.head_roles import ROLES, dominant_role
from regard.view.layer_names import layer_label
from regard.view.progress import progress_bar
from regard.view.report import render_table

SaveCurveOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File for a plot of the pruning curve: .png or .svg."),
]


class CurvePoint(NamedTuple):
    """The metrics of a run that keeps some of its heads."""

    head_count: int
    metrics: dict[str, float]


def heads(
    folder: RunArgument,
    split: SplitOption = "dev",
    limit: Annotated[
        int, typer.Option(min=1, help="Number of records to measure on, from the start of SPLIT.")
    ] = 200,
    with_metrics: Annotated[
        bool,
        typer.Option(
            "--metrics", help="Also compute the standard metrics without each head (slower)."
        ),
    ] = False,
    curve_points: Annotated[
        int,
        typer.Option(
            "--curve-points",
            min=0,
            help="Number of points of the pruning curve: metrics with ever fewer heads.",
        ),
    ] = 0,
    keep_heads: Annotated[
        int | None,
        typer.Option(
            min=0, help="Number of heads to keep; prunes the least important. Needs --save-run."
        ),
    ] = None,
    save_run: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Folder of the pruned run. Needs --keep-heads."),
    ] = None,
    save: SaveCurveOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = None,
) -> None:
    """Remove each head of RUN in turn; report the increase of the loss, and where the head attends.

    The most important heads come first: those whose removal increases the loss most.
    """
    if (keep_heads is None) != (save_run is None):
        raise InputError("--keep-heads and --save-run are given together; add the missing one")
    if save is not None:
        check_path(save)
        curve_points = curve_points or 8
    run = Run.load(folder, device=device or "auto")
    records = run.read_split(split)[:limit]
    head_count = sum(max(n, 1) for n in head_counts(run).values())
    with progress_bar("heads", head_count) as progress:
        measured_heads = measure_heads(run, records, progress.advance, with_metrics=with_metrics)
    full_loss, pruning_order = ablated_loss(run, records), names_by_importance(measured_heads)
    if keep_heads is not None and keep_heads > head_count:
        raise InputError(f"--keep-heads {keep_heads}: there are {head_count} heads; give fewer")
    curve = pruning_curve(run, records, pruning_order, curve_points) if curve_points else []
    if save_run is not None and keep_heads is not None:
        prune_heads(run, pruning_order[: head_count - keep_heads])
        run.save(save_run)
    if save is not None:
        write_atomic(save, curve_chart(curve))
    print_heads(measured_heads, full_loss, curve, as_json=as_json)
    if save_run is not None and not as_json:
        loss = ablated_loss(run, records)
        kept = f"a run with {keep_heads} of {head_count} heads"
        print(f"\n{save_run}: {kept}, loss {loss:.4f} nats per token")


def print_heads(
    measured_heads: list[HeadReport], full_loss: float, curve: list[CurvePoint], *, as_json: bool
) -> None:
    """Print the measures of each head and the pruning curve, as tables or as JSON."""
    if as_json:
        report = {"loss": full_loss, "heads": list(map(head_as_dict, measured_heads))}
        print(json.dumps({**report, "curve": curve}, indent=1))
        return
    print(heads_table(measured_heads, full_loss))
    if curve:
        print("\n" + curve_table(curve))


def curve_chart(curve: list[CurvePoint]) -> bytes:
    """Plot the first metric by the number of heads that are left."""
    metric = next(iter(curve[0].metrics))
    line = {metric: ([p.head_count for p in curve], [p.metrics[metric] for p in curve])}
    labels = ChartLabels("Pruned heads, least important first", "heads", metric)
    return line_chart_png(line, labels)


def pruning_curve(
    run: Run, records: list[Record], pruning_order: list[HeadName], curve_points: int
) -> list[CurvePoint]:
    """Return the loss and the standard metrics with ever fewer heads."""
    head_count = len(pruning_order)
    curve: list[CurvePoint] = []
    removed_counts = sorted({round(head_count * n / curve_points) for n in range(curve_points + 1)})
    with progress_bar("pruning curve", len(removed_counts)) as progress:
        for removed_count in removed_counts:
            removed = pruning_order[:removed_count]
            metrics = ablated_metrics(run, records, removed)
            metrics["nats"] = ablated_loss(run, records, removed)
            curve.append(CurvePoint(head_count - removed_count, metrics))
            progress.advance(1)
    return curve


def heads_table(measured_heads: list[HeadReport], full_loss: float) -> str:
    """Return a table with a row for each head, the most important first."""
    has_aer = any(report.aer is not None for report in measured_heads)
    metrics = [*measured_heads[0].metric_changes][:1] + [
        metric for metric in measured_heads[0].metric_changes if metric == "aer"
    ]
    rows = [["attention", "head", "loss without it", *metrics, "bits", "distance", "attends to"]]
    rows[0] += [*(["own AER"] if has_aer else []), "name"]
    for report in sorted(measured_heads, key=lambda report: -report.loss_increase):
        name, head = report.name
        numbers = [f"{report.loss_increase:+.4f}"]
        # AER is a fraction; the metrics of a task are percentages
        numbers += [f"{report.metric_changes[m]:+.{3 if m == 'aer' else 2}f}" for m in metrics]
        numbers += [f"{report.pattern.entropy:.2f}", f"{report.pattern.distance:.1f}"]
        aer = "-" if report.aer is None else f"{report.aer:.3f}"
        cells = [layer_label(name), str(head + 1), *numbers, dominant_pattern(report)]
        rows.append([*cells, *([aer] if has_aer else []), name])
    table = render_table(rows, left_aligned=(0, len(rows[0]) - 1))
    return f"{table}\n\nloss with all heads: {full_loss:.4f} nats per token"


def dominant_pattern(head: HeadReport) -> str:
    role = dominant_role({name: getattr(head.pattern, name) for name in ROLES})
    return f"{role.name} {role.share:.0%}" if role.name else "-"


def curve_table(curve: list[CurvePoint]) -> str:
    names = list(curve[0].metrics)
    rows = [["heads", *names]]
    rows += [[str(p.head_count), *(f"{p.metrics[name]:.2f}" for name in names)] for p in curve]
    return render_table(rows)


def head_as_dict(report: HeadReport) -> JsonObject:
    name, head = report.name
    return {
        "attention": name,
        "label": layer_label(name),
        "head": head + 1,
        "rise": report.loss_increase,
        "aer": report.aer,
        "changes": dict(report.metric_changes),
        **report.pattern._asdict(),
    }
