"""`regard compare`: the same data, several models, one report."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from regard.cli.contest import CONTESTS, Contest, Options
from regard.cli.progress import bar
from regard.cli.score import Tokenize
from regard.cli.train import follow
from regard.config.settings import Settings
from regard.config.vary import by_seed, varied
from regard.config.whole import write_whole
from regard.corpora.build import build
from regard.corpora.corpus import check_split
from regard.metric.comparison import Measured, spread
from regard.train.compare import check_ends, check_models
from regard.train.fit import Fit
from regard.train.log import Entry, read
from regard.train.run import Run
from regard.view import chart, report
from regard.view.chart import Lines
from regard.view.curve import Words
from regard.view.loss import losses, validated
from regard.view.sheet import sheet
from regard.view.terminal import Surface

Show = Annotated[bool, typer.Option("--show", help="Also show where each model looked.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Cores to use; all of them else.")]


def compare(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="CONFIG… [KEY=VALUE…]", help="TOML files, and changes to all of them."
        ),
    ],
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=A,B,…", help="One model for each value; may be repeated."),
    ] = None,
    runs: Annotated[Path, typer.Option(help="Where the models go, a folder each.")] = Path("runs"),
    to: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("runs/report"),
    split: Annotated[str, typer.Option(help="Which part of the data.")] = "test",
    join: Annotated[
        int, typer.Option("--joined", min=1, help="BLEU by length: join up to so many pairs.")
    ] = 1,
    gold: Annotated[
        Path | None, typer.Option(help="Known word alignments, for the error rate.")
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option(help="The pairs of --gold: source ||| target.")
    ] = None,
    base: Annotated[int, typer.Option(min=0, max=1, help="First word of --gold: 0 or 1.")] = 0,
    tokenize: Tokenize = "13a",
    show: Show = False,
    threads: Threads = None,
) -> None:
    """Train every model that is not trained yet, score all on the same split, and report.

    The same command again goes on. Models that differ in their seed alone are also averaged.
    Without --gold, AER is told where the data know their links.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    models, options = varied(words, vary or ()), Options(join, gold, pairs, base, tokenize, show)
    first = next(iter(models.values()))
    CONTESTS[first.task].check(options, first.task)
    check_models(models)
    check_ends(models, runs)
    corpus = build(first.data)
    check_split(split, corpus.splits)
    contest = CONTESTS[first.task](models, list(corpus.read(split)), options)
    told = Report(to, f"{split} of {corpus.describe()}", contest, models)
    for name, settings in models.items():
        if not trained(name, settings, runs / name):
            print(f"{name}: stopped. The same command goes on from there.")
            break
        run, log = Run.load(runs / name), read(runs / name)
        with bar(f"scoring {name}", contest.total) as shown:
            measured = contest.measure(shortened(name, models), run, log, shown.advance)
        told.add(name, measured, run, log)
        if show and (seen := contest.look(run, Surface.of(Console()))) is not None:
            print(f"{measured.name}: {seen}\n")
    told.tell()


def trained(name: str, settings: Settings, folder: Path) -> bool:
    """Train to the end; False if Ctrl-C came first."""
    with bar(f"training {name}", settings.train.steps) as shown:
        return not follow(Fit(settings, folder, shown.say), shown)


def shortened(name: str, models: Iterable[str]) -> str:
    """What differs: of "base,score=dot" the second part, if all are of one config."""
    config, _, more = name.partition(",")
    return more if more and {other.partition(",")[0] for other in models} == {config} else name


class Report:
    """A folder that is written anew after each model, so that what there is can be read."""

    def __init__(
        self, folder: Path, title: str, contest: Contest[Any], models: Mapping[str, Settings]
    ):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.title, self.contest = folder, title, contest
        self.groups = {shortened(name, models): names for name, names in by_seed(models).items()}
        self.metrics = {settings.train.metric for settings in models.values()}
        self.models: dict[str, Measured] = {}  # by their whole names
        self.curves: dict[str, Lines] = {}
        self.maps: list[list[str]] = []

    def add(self, name: str, model: Measured, run: Run, log: Sequence[Entry]) -> None:
        self.models[name] = model
        self.curves[model.name] = {**losses(log), **validated(log)}
        pictures = self.drawn(model.name, run) if chart.can_draw() else []
        told = self.told()
        inside = [(caption, (self.folder / file).read_bytes()) for caption, file in pictures]
        for file, content in (
            ("report.html", sheet(told, inside)),
            ("report.md", report.markdown(told, pictures)),
            ("report.csv", report.sheet(told)),
            ("report.json", report.as_json(told)),
        ):
            write_whole(self.folder / file, content.encode())

    def told(self) -> report.Told:
        spreads = []
        for name, members in self.groups.items():
            there = [self.models[member] for member in members if member in self.models]
            if len(there) > 1:
                spreads.append(spread(name, there))
        return report.Told(self.title, list(self.models.values()), spreads, self.contest.notes)

    def drawn(self, name: str, run: Run) -> list[list[str]]:
        """All pictures, as captions and files; those of all models are drawn anew."""
        pictures = []
        if any(model.by_length for model in self.models.values()):
            pictures.append(self.by_length())
        if any(self.curves.values()):
            pictures.append(self.learning())
        if (seen := self.contest.drawn(name, run)) is not None:
            write_whole(self.folder / f"heat-{name}.png", seen)
            self.maps.append([f"where {name} looked", f"heat-{name}.png"])
        return [*pictures, *self.maps]

    def by_length(self) -> list[str]:
        models = list(self.models.values())
        bins = list(models[0].by_length)
        lines = {m.name: (list(range(len(bins))), list(m.by_length.values())) for m in models}
        words = Words("BLEU by length of the source", "words of the source", "BLEU")
        write_whole(self.folder / "length.png", chart.draw(lines, words, bins))
        return [words.title, "length.png"]

    def learning(self) -> list[str]:
        """What was seen on dev; of trainings that never looked there, the loss."""
        kind, what = ("metric", *self.metrics) if len(self.metrics) == 1 else ("dev", "loss")
        if any(kind not in lines for lines in self.curves.values()):
            kind, what = "train", "loss"
        drawn = {name: lines[kind] for name, lines in self.curves.items() if kind in lines}
        words = Words(f"{what} of {'train' if kind == 'train' else 'dev'} by step", "steps", what)
        write_whole(self.folder / "learning.png", chart.draw(drawn, words))
        return [words.title, "learning.png"]

    def tell(self) -> None:
        if not self.models:
            return
        print(report.text(self.told()))
        print(
            f"\nWritten to {self.folder}: report.html, report.md, report.csv, report.json", end=""
        )
        print(" and pictures" if chart.can_draw() else "; for pictures, pip install 'regard[plot]'")
