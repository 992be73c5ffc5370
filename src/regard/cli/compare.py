"""`regard compare`: the same data, several models, one report."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from regard.cli.look import picture
from regard.cli.progress import bar
from regard.cli.score import Tokenize
from regard.cli.train import follow
from regard.config.settings import Settings
from regard.config.vary import varied
from regard.config.whole import write_whole
from regard.corpora.build import build
from regard.corpora.corpus import Record, check_split
from regard.metric.comparison import Measured, joined
from regard.train.compare import Truth, check_models, from_files, measure, planted
from regard.train.fit import Fit
from regard.train.log import read
from regard.train.translate import TranslateRun
from regard.view import chart, report
from regard.view.curve import Words
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

    The same command again goes on. Without --gold, AER is told where the data know their links.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    models = varied(words, vary or ())
    check_models(models)
    corpus = build(next(iter(models.values())).data)
    check_split(split, corpus.splits)
    records = list(corpus.read(split))
    truth = known(records, gold, pairs, base)
    told = Report(to, f"{split} of {corpus.describe()}", notes_on(models, join))
    for name, settings in models.items():
        if not trained(name, settings, runs / name):
            print(f"{name}: stopped. The same command goes on from there.")
            break
        run, longer = TranslateRun.load(runs / name), joined(records, join) if join > 1 else ()
        with bar(f"scoring {name}", len(records) + len(longer)) as shown:
            measured, signature = measure(
                shortened(name, models),
                run,
                read(runs / name),
                records,
                longer=longer,
                truth=truth,
                told=shown.advance,
                tokenize=tokenize,
            )
        told.add(measured, signature, run, records[0]["source"])
        if show and run.model.cross:
            print(f"{measured.name}: {picture(run, records[0]['source'], Surface.of(Console()))}\n")
    told.tell()


def trained(name: str, settings: Settings, folder: Path) -> bool:
    """Train to the end; False if Ctrl-C came first."""
    with bar(f"training {name}", settings.train.steps) as shown:
        return not follow(Fit(settings, folder, shown.say), shown)


def shortened(name: str, models: Iterable[str]) -> str:
    """What differs: of "base,score=dot" the second part, if all are of one config."""
    config, _, more = name.partition(",")
    return more if more and {other.partition(",")[0] for other in models} == {config} else name


def known(
    records: Sequence[Record], gold: Path | None, pairs: Path | None, base: int
) -> Truth | None:
    if (gold is None) != (pairs is None):
        raise ValueError("--gold and --pairs belong together: give both")
    if gold is None or pairs is None:
        return planted(records)
    return from_files(gold, pairs, base)


def notes_on(models: dict[str, Settings], join: int) -> list[str]:
    """What a reader has to know to compare."""
    notes = ["AER: links by the greatest weight, the reference being read"]
    if join > 1:
        notes.append(f"BLEU by length: sentences of 1 to {join} consecutive pairs, joined")
    if len({settings.text.model_dump_json() for settings in models.values()}) > 1:
        notes.append("perplexities are of different tokens, and cannot be compared")
    return notes


class Report:
    """A folder that is written anew after each model, so that what there is can be read."""

    def __init__(self, folder: Path, title: str, notes: Sequence[str]):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.title, self.notes = folder, title, list(notes)
        self.models: list[Measured] = []
        self.pictures: list[list[str]] = []
        self.maps: list[list[str]] = []

    def add(self, model: Measured, signature: str, run: TranslateRun, text: str) -> None:
        self.models.append(model)
        if f"BLEU: {signature}" not in self.notes:
            self.notes.insert(0, f"BLEU: {signature}")
        if chart.can_draw():
            self.draw(model.name, run, text)
        pictures = [*self.pictures, *self.maps]
        for file, content in (
            ("report.md", report.markdown(self.title, self.models, self.notes, pictures)),
            ("report.csv", report.sheet(self.models)),
            ("report.json", report.as_json(self.title, self.models, self.notes)),
        ):
            write_whole(self.folder / file, content.encode())

    def draw(self, name: str, run: TranslateRun, text: str) -> None:
        """BLEU by length of all models so far, and where this one looked."""
        bins = list(self.models[0].by_length)
        curves = {m.name: (list(range(len(bins))), list(m.by_length.values())) for m in self.models}
        words = Words("BLEU by length of the source", "words of the source", "BLEU")
        write_whole(self.folder / "length.png", chart.draw(curves, words, bins))
        self.pictures = [[words.title, "length.png"]]
        if run.model.cross:
            best = run(text)
            seen = run.task.align(text, best.ids)
            if max(seen.weights.shape) <= chart.MOST_CELLS:
                title = f"{name}: {best.text}"
                drawn = chart.heat_map(seen.weights.tolist(), seen.target, seen.source, title)
                write_whole(self.folder / f"heat-{name}.png", drawn)
                self.maps.append([f"where {name} looked", f"heat-{name}.png"])

    def tell(self) -> None:
        if not self.models:
            return
        print(report.aligned(report.overview(self.models)))
        print("\n".join(self.notes) + "\n")
        print(report.aligned(report.lengths(self.models)))
        print(f"\nWritten to {self.folder}: report.md, report.csv, report.json", end="")
        print(" and pictures" if self.pictures else "; for pictures, pip install 'regard[plot]'")
