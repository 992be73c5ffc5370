"""From settings to a trained run in a folder; the same call again goes on where it was left."""

import math
import tomllib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.config.load import load as load_settings
from regard.config.settings import Settings
from regard.config.whole import clear
from regard.corpora.build import build as build_corpus
from regard.corpora.corpus import Corpus, Record
from regard.train.average import mean
from regard.train.checkpoint import Checkpoint, checkpoints, load, newest, prune, save
from regard.train.log import LOGS, Log, cut, summary_writer
from regard.train.loop import Step, Training
from regard.train.make import training_of
from regard.train.run import CHECKPOINTS, CONFIG, RUNS, VERSIONS, WEIGHTS, Run, find, prepare
from regard.train.schedule import Plateau

DEV = 5000  # pairs of dev that are looked at
LOWER = ("loss", "ter", "perplexity", "mae")  # less is better


class Validation(NamedTuple):
    step: int
    loss: float  # a token's, on the dev split
    metric: float  # what is compared: the loss, or the metric of the settings
    best: bool


class Fit:
    """One training in one folder. `events` makes it, step by step; stop it when you like."""

    def __init__(self, settings: Settings, folder: Path, tell: Callable[[str], None] = print):
        settings = find(settings.run).settled(settings)
        self.settings, self.folder, self.tell = settings, folder, tell
        if settings.train.tensorboard:
            summary_writer()  # not installed: said before any work is done
        self.run, self.corpus = self.opened()
        self.best: float | None = None
        self.waited = 0
        self.dev: list[Record] = []
        if "dev" in self.corpus.splits:
            self.dev = list(islice(self.corpus.read("dev"), DEV))
        self.training = self.made()
        if not (self.folder / CONFIG).is_file():  # now that all the data was seen to be right
            self.run.save(self.folder)
        self.resume()

    def events(self) -> Iterator[Step | Validation]:
        """Steps and validations, until the settings' end or until nothing improves any more."""
        train = self.settings.train
        with Log(self.folder, tensorboard=train.tensorboard, done=self.training.done) as log:
            while not self.finished():
                step = next(self.training.steps(self.training.done + 1))
                log.add("step", step._asdict())
                yield step
                if self.dev and step.number % train.validate_every == 0:
                    seen = self.validate()
                    log.add("dev", seen._asdict())
                    yield seen
                if step.number % train.save_every == 0:
                    self.save()
        self.close()

    def finished(self) -> bool:
        train, done = self.settings.train, self.training.done
        if train.patience is not None and self.waited >= train.patience:
            return True
        if train.steps is not None:
            return done >= train.steps
        return self.training.batches.epoch >= (train.epochs or math.inf)

    def validate(self) -> Validation:
        """Loss and metric on dev; the best weights so far are those that the run uses."""
        metric, average = self.settings.train.metric, self.training.average
        with nullcontext() if average is None else average.worn_by(self.run.model):
            mean_loss, value = self.measured()
        self.run.model.train()
        sign = -1 if metric in LOWER else 1
        if (
            self.run.turn
            and 0 < self.training.done - self.run.turn <= self.settings.train.validate_every
        ):
            self.best, self.waited = None, 0
        best = self.best is None or sign * value > sign * self.best
        self.waited = 0 if best else self.waited + 1
        if best:
            self.best = value
            self.run.save_weights(self.folder, self.weights())
        if isinstance(self.training.schedule, Plateau):
            self.training.schedule.hear(best)
        return Validation(self.training.done, mean_loss, value, best)

    def measured(self) -> tuple[float, float]:
        """A token's loss on dev, and the settings' metric."""
        metric, loss = self.settings.train.metric, self.run.likelihood(self.dev)
        mean_loss = loss.total.item() / loss.tokens
        return mean_loss, mean_loss if metric == "loss" else self.run.measured(metric, self.dev)

    def weights(self) -> dict[str, torch.Tensor]:
        average = self.training.average
        return dict(self.run.model.state_dict()) if average is None else average.weights

    def save(self) -> None:
        tensors, facts = self.training.state()
        facts |= {"best": self.best, "waited": self.waited}
        save(self.folder / CHECKPOINTS, Checkpoint(self.training.done, tensors, facts))
        prune(self.folder / CHECKPOINTS, self.settings.train.keep)

    def close(self) -> None:
        """Keep what there is: a checkpoint, and weights to use if no validation chose any."""
        self.save()
        average = self.settings.train.average
        if average > 1:
            last = checkpoints(self.folder / CHECKPOINTS)[:average]
            self.run.save_weights(self.folder, mean(load(p).tensors["weights"] for p in last))
        elif self.best is None:
            self.run.save_weights(self.folder, self.weights())

    def opened(self) -> tuple[Run, Corpus]:
        """The run in the folder if it is this one, else a new one; never another's."""
        config = self.folder / CONFIG
        if not config.is_file():
            check_free(self.folder)
            corpus = build_corpus(self.settings.data)
            return prepare(self.settings, corpus), corpus
        if not (self.folder / WEIGHTS).is_file():
            raise ValueError(f"{self.folder}: has a {CONFIG}, but is no run; take another folder")
        check_task(config, self.settings.task)
        before = load_settings(config)
        if without_end(before) != without_end(self.settings):
            raise ValueError(f"{self.folder}: holds a run with other settings; take another folder")
        run = Run.load(self.folder)
        return type(run)(self.settings, run.vocabularies), run.corpus()

    def resume(self) -> None:
        clear(self.folder)
        found, skipped = newest(self.folder / CHECKPOINTS)
        for line in skipped:
            self.tell(line)
        if found is not None:
            self.training.restore(found.tensors, found.facts)
            self.best, self.waited = found.facts["best"], found.facts["waited"]
        cut(self.folder, self.training.done)

    def made(self) -> Training:
        batches = self.run.batches(self.corpus)
        return training_of(self.settings, self.run.model, self.run.loss, batches, self.run.groups())


def without_end(settings: Settings) -> dict[str, Any]:
    """Settings but for how long to train: a run may be trained longer."""
    plain = settings.model_dump()
    for name in ("steps", "epochs", "patience"):
        plain["train"].pop(name)
    return plain


def check_free(folder: Path) -> None:
    """A new run goes into a folder of its own: other people's files are not written over."""
    vocabularies = {f"{name}.json" for run in RUNS for name in find(run).kept}
    ours = {CONFIG, WEIGHTS, VERSIONS, CHECKPOINTS, *LOGS, *vocabularies}
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: is a file; name a folder for the run")
    for path in folder.iterdir() if folder.exists() else ():
        if path.name not in ours and not path.name.startswith("."):
            raise ValueError(f"{folder}: is not a run, it holds {path.name}; take another folder")


def check_task(config: Path, task: str) -> None:
    """A run of another task may have settings that are not even known here."""
    try:
        before = tomllib.loads(config.read_text("utf-8")).get("task", task)
    except ValueError as error:
        raise ValueError(f"{config}: is not the config of a run ({error})") from None
    if before != task:
        raise ValueError(
            f"{config.parent}: holds a run of task {before!r}, not {task!r}; take another folder"
        )
