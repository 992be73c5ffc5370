"""`regard compare`: train several models on the same data, and report their scores."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from signal import Signals
from typing import Annotated

import torch
import typer
from rich.console import Console

from regard.cli.options import GoldBaseOption, ThreadsOption
from regard.cli.train import train_with_progress
from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.data.corpus import check_split
from regard.explain.comparison import check_models, check_training_lengths, measure_run
from regard.files import write_atomic
from regard.metrics.comparison import ModelResult, seed_spread
from regard.run import Run
from regard.tasks.catalogue import find_task
from regard.tasks.comparison import Comparison, ComparisonOptions
from regard.tasks.sweep import expand_sweep, seed_groups
from regard.training.log import LogEntry, read_log
from regard.training.signals import exit_code
from regard.training.trainer import Trainer
from regard.view import chart, report
from regard.view.attention_map import AttentionMap
from regard.view.chart import Lines
from regard.view.curve import ChartLabels
from regard.view.html_report import as_html
from regard.view.loss_curves import loss_lines, metric_lines
from regard.view.progress import progress_bar
from regard.view.terminal import Surface

ConfigsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="CONFIG… [KEY=VALUE…]",
        help="TOML files or names of presets, then settings to change in all of them.",
    ),
]
SweepOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=A,B,…",
        help="Train one model for each value of this setting. Repeatable: all combinations.",
    ),
]
RunsOption = Annotated[Path, typer.Option(help="Folder that holds a folder for each run.")]
ReportFolderOption = Annotated[Path, typer.Option(help="Folder of the report.")]
ScoreSplitOption = Annotated[str, typer.Option(help="Split that the models are scored on.")]
JoinOption = Annotated[
    int,
    typer.Option(
        "--join",
        min=1,
        help="For BLEU by source length: join 1 to this many consecutive pairs, which adds "
        "longer sources.",
    ),
]
GoldAlignmentsOption = Annotated[
    Path | None,
    typer.Option(
        help="File of gold word links for the alignment error rate, one line per pair of --pairs."
    ),
]
PairsOption = Annotated[
    Path | None,
    typer.Option(help="File of the pairs that --gold aligns: lines `source ||| target`."),
]
ShowAttentionOption = Annotated[
    bool, typer.Option("--show-attention", help="Also print the attention of each model.")
]


def compare(
    arguments: ConfigsArgument,
    sweep: SweepOption = None,
    runs: RunsOption = Path("runs"),
    report_folder: ReportFolderOption = Path("runs/report"),
    split: ScoreSplitOption = "test",
    join: JoinOption = 1,
    gold: GoldAlignmentsOption = None,
    pairs: PairsOption = None,
    gold_base: GoldBaseOption = 0,
    show_attention: ShowAttentionOption = False,
    threads: ThreadsOption = None,
) -> None:
    """Train each model that is not trained yet, score all on the same split, and report.

    To resume after an interruption, give the same command again. The report also averages models
    that differ only in their seed. Without --gold, it has alignment
    error rates only if the data contain gold links.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    models = expand_sweep(arguments, sweep or ())
    options = ComparisonOptions(join, gold, pairs, gold_base, show_attention)
    first_settings = next(iter(models.values()))
    comparison_class = find_task(first_settings.task).builder().comparison_class
    comparison_class.check_options(options, first_settings.task)
    check_models(models)
    check_training_lengths(models, runs)
    corpus = build_corpus(first_settings.data)
    check_split(split, corpus.splits)
    comparison = comparison_class(models, list(corpus.read(split)), options)
    writer = ReportWriter(report_folder, f"{split} of {corpus.describe()}", comparison, models)
    stop: Signals | None = None
    for name, settings in models.items():
        stop = train_model(name, settings, runs / name)
        if stop is not None:
            print(f"{name}: stopped; give the same command to resume.")
            break
        run, log = load_run(runs / name, settings), read_log(runs / name)
        with progress_bar(f"scoring {name}", comparison.total) as progress:
            result = measure_run(short_name(name, models), run, log, comparison, progress.advance)
        writer.add(name, result, run, log)
        if show_attention:
            surface = Surface.from_console(Console())
            if (rendering := comparison.render_attention(run.task, surface)) is not None:
                print(f"{result.name}: {rendering}\n")
    writer.print_summary()
    if stop is not None:
        raise typer.Exit(exit_code(stop))


def train_model(name: str, settings: Settings, folder: Path) -> Signals | None:
    """Train a model; return the signal that stopped it, if any."""
    with progress_bar(f"training {name}", settings.train.steps) as progress:
        return train_with_progress(Trainer(settings, folder, progress.log), progress)


def load_run(folder: Path, settings: Settings) -> Run:
    """Load a trained run with the metrics of `settings`, which may differ from those it saved."""
    run = Run.load(folder, device=settings.train.device)
    metrics = getattr(settings, "metrics", None)
    if metrics is None:
        return run
    return Run(run.settings.model_copy(update={"metrics": metrics}), run.vocabularies, run.model)


def short_name(name: str, models: Iterable[str]) -> str:
    """Return "score=dot" for "base,score=dot" if all models have the same config."""
    config, _, variant = name.partition(",")
    return (
        variant if variant and {other.partition(",")[0] for other in models} == {config} else name
    )


class ReportWriter:
    """The folder of a report. It is written after each model, so that it can be read early."""

    def __init__(
        self, folder: Path, title: str, comparison: Comparison, models: Mapping[str, Settings]
    ):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.title, self.comparison = folder, title, comparison
        self.groups = {
            short_name(name, models): names for name, names in seed_groups(models).items()
        }
        self.metrics = {settings.train.metric for settings in models.values()}
        self.models: dict[str, ModelResult] = {}  # by full name, as in "base,score=dot"
        self.curves: dict[str, Lines] = {}
        self.heatmaps: list[list[str]] = []
        self.maps: list[tuple[str, AttentionMap]] = []

    def add(self, name: str, model: ModelResult, run: Run, log: Sequence[LogEntry]) -> None:
        self.models[name] = model
        self.curves[model.name] = {**loss_lines(log), **metric_lines(log)}
        charts, heatmaps = self.write_pictures(model.name, run) if chart.can_draw() else ([], [])
        if (attention := self.comparison.attention_map(run.task)) is not None:
            self.maps.append((model.name, attention))
        contents = self.contents()
        embedded = [(caption, (self.folder / file).read_bytes()) for caption, file in charts]
        pictures = [*charts, *heatmaps]
        for file, content in (
            ("report.html", as_html(contents, embedded, self.maps)),
            ("report.md", report.as_markdown(contents, pictures)),
            ("report.csv", report.as_csv(contents)),
            ("report.json", report.as_json(contents)),
        ):
            write_atomic(self.folder / file, content.encode())

    def contents(self) -> report.ComparisonReport:
        spreads = []
        for name, members in self.groups.items():
            finished = [self.models[member] for member in members if member in self.models]
            if len(finished) > 1:
                spreads.append(seed_spread(name, finished))
        return report.ComparisonReport(
            self.title, list(self.models.values()), spreads, self.comparison.notes
        )

    def write_pictures(self, name: str, run: Run) -> tuple[list[list[str]], list[list[str]]]:
        """Write the charts of all models and the heatmap of this run.

        Return captions and files of the charts, and of the heatmaps of all runs so far.
        """
        pictures = []
        if any(model.by_length for model in self.models.values()):
            pictures.append(self.write_length_chart())
        if any(self.curves.values()):
            pictures.append(self.write_learning_chart())
        if (heatmap := self.comparison.attention_png(name, run.task)) is not None:
            write_atomic(self.folder / f"heat-{name}.png", heatmap)
            self.heatmaps.append([f"attention of {name}", f"heat-{name}.png"])
        return pictures, self.heatmaps

    def write_length_chart(self) -> list[str]:
        models = list(self.models.values())
        bins = list(models[0].by_length)
        lines = {m.name: (list(range(len(bins))), list(m.by_length.values())) for m in models}
        labels = ChartLabels("BLEU by source length", "source words", "BLEU")
        write_atomic(self.folder / "length.png", chart.line_chart_png(lines, labels, bins))
        return [labels.title, "length.png"]

    def write_learning_chart(self) -> list[str]:
        """Plot the dev metric by step, or the training loss if a training has no validation."""
        kind, metric = ("metric", *self.metrics) if len(self.metrics) == 1 else ("dev", "loss")
        if any(kind not in lines for lines in self.curves.values()):
            kind, metric = "train", "loss"
        plotted = {name: lines[kind] for name, lines in self.curves.items() if kind in lines}
        labels = ChartLabels(
            f"{metric} of {'train' if kind == 'train' else 'dev'} by step", "steps", metric
        )
        write_atomic(self.folder / "learning.png", chart.line_chart_png(plotted, labels))
        return [labels.title, "learning.png"]

    def print_summary(self) -> None:
        if not self.models:
            return
        print(report.as_text(self.contents()))
        print(
            f"\nWritten to {self.folder}: report.html, report.md, report.csv, report.json", end=""
        )
        print(" and pictures" if chart.can_draw() else "; for pictures, pip install 'regard[plot]'")
