"""From settings to a trained run in a folder; the same call again goes on where it was left."""

import json
import math
import tomllib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch

from regard.batch.batches import Batches, Stored, Streamed
from regard.batch.packed import Packed
from regard.batch.pair import Batch, Pair
from regard.config.load import load as load_settings
from regard.config.settings import Settings
from regard.config.train import Train
from regard.config.whole import clear, told_of, write_whole
from regard.corpora.build import build as build_corpus
from regard.corpora.corpus import Corpus, Record
from regard.metric.translation import bleu, chrf, exact_match, ter
from regard.tasks.loss import Loss
from regard.tasks.translate import Translator
from regard.train.average import Average, mean
from regard.train.checkpoint import Checkpoint, checkpoints, load, newest, prune, save
from regard.train.loop import Source, Step, Training
from regard.train.run import CONFIG, SIDES, VERSIONS, WEIGHTS, Run, prepare
from regard.train.schedule import Plateau, Schedule, constant, cosine, inverse_sqrt, noam

IN_MEMORY = 100_000_000  # characters; a longer corpus is read anew each epoch
DEV = 5000  # pairs of dev that are looked at
CHECKPOINTS, LOG = "checkpoints", "log.jsonl"


class Validation(NamedTuple):
    step: int
    loss: float  # a token's, on the dev split
    metric: float  # what is compared: the loss, or the metric of the settings
    best: bool


class Fit:
    """One training in one folder. `events` makes it, step by step; stop it when you like."""

    def __init__(self, settings: Settings, folder: Path, tell: Callable[[str], None] = print):
        self.settings, self.folder, self.tell = settings, folder, tell
        self.unsupported(settings.train)
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
        with (self.folder / LOG).open("ab", buffering=0) as log:
            while not self.finished():
                step = next(self.training.steps(self.training.done + 1))
                self.note(log, {"kind": "step", **step._asdict()})
                yield step
                if self.dev and step.number % train.validate_every == 0:
                    seen = self.validate()
                    self.note(log, {"kind": "dev", **seen._asdict()})
                    yield seen
                if step.number % train.save_every == 0:
                    self.save()
        self.close()

    def note(self, log: BinaryIO, entry: dict[str, Any]) -> None:
        """A line of the log, at once: a process that is killed later does not lose it."""
        with told_of(self.folder / LOG):
            written(log, f"{json.dumps(entry)}\n".encode())

    def finished(self) -> bool:
        train, done = self.settings.train, self.training.done
        if train.patience is not None and self.waited >= train.patience:
            return True
        if train.steps is not None:
            return done >= train.steps
        batches = self.training.batches
        return isinstance(batches, Batches) and batches.epoch >= (train.epochs or math.inf)

    def validate(self) -> Validation:
        """Loss and metric on dev; the best weights so far are those that the run uses."""
        metric = self.settings.train.metric
        loss = self.run.likelihood(self.dev)
        value = mean_loss = loss.total.item() / loss.tokens
        if metric != "loss":
            outputs = [best[0].text for best in self.run.predict([r["source"] for r in self.dev])]
            references = [record["target"] for record in self.dev]
            score = {"bleu": bleu, "chrf": chrf, "ter": ter}.get(metric)
            value = score(outputs, references).value if score else exact_match(outputs, references)
        self.run.model.train()
        sign = -1 if metric in ("loss", "ter") else 1
        best = self.best is None or sign * value > sign * self.best
        self.waited = 0 if best else self.waited + 1
        if best:
            self.best = value
            self.run.save_weights(self.folder, self.weights())
        if isinstance(self.training.schedule, Plateau):
            self.training.schedule.hear(best)
        return Validation(self.training.done, mean_loss, value, best)

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
        return Run(self.settings, run.task.source, run.task.target), run.corpus()

    def resume(self) -> None:
        clear(self.folder)
        found, skipped = newest(self.folder / CHECKPOINTS)
        for line in skipped:
            self.tell(line)
        if found is not None:
            self.training.restore(found.tensors, found.facts)
            self.best, self.waited = found.facts["best"], found.facts["waited"]
        cut_log(self.folder / LOG, self.training.done)

    def made(self) -> Training:
        train = self.settings.train
        batches = Batches(
            self.examples(),
            tokens=train.tokens_per_batch,
            sentences=train.sentences_per_batch,
            seed=self.settings.seed,
        )
        return training_of(self.settings, self.run.task, batches)

    def examples(self) -> Stored | Streamed:
        """All pairs as ids if their text is not too much, else read anew each epoch."""
        seed = self.settings.seed

        def read() -> Iterator[Record]:
            return self.corpus.read("train")

        def pairs(records: Iterable[Record]) -> Iterator[Pair]:
            return self.run.task.pairs(records, self.run.longest)

        if is_short(read(), IN_MEMORY):
            if packed := Packed(pairs(read())):
                return Stored(packed, seed)
        elif next(pairs(read()), None) is not None:
            return Streamed(read, pairs, seed, self.settings.train.buffer)
        raise ValueError("train: no pair is left; is the data empty, or train.longest small?")

    def unsupported(self, train: Train) -> None:
        """What the settings know and the loop does not yet: said, never passed over."""
        for name, off in (("teacher_forcing", 1.0), ("guided_alignment", 0.0), ("compile", False)):
            if getattr(train, name) != off:
                raise ValueError(f"train.{name} is not built yet: leave it at {off}")


def training_of(settings: Settings, task: Translator, batches: Source) -> Training:
    """Steps as the settings want them."""
    train, model = settings.train, task.model

    def loss_of(batch: Batch) -> Loss:
        return task.loss(batch, train.label_smoothing)

    return Training(
        model,
        loss_of,
        batches,
        optimiser_of(train, model),
        schedule=schedule_of(train, settings.model),
        clip=train.clip or None,
        accumulate=train.accumulate,
        average=None if train.ema is None else Average(model, train.ema),
        autocast=None if train.autocast is None else getattr(torch, train.autocast),
    )


def optimiser_of(train: Train, model: torch.nn.Module) -> torch.optim.Optimizer:
    kind, rate, parameters = train.optimiser, train.learning_rate, model.parameters()
    match kind.kind:
        case "adam":
            return torch.optim.Adam(parameters, rate, kind.betas, kind.eps, fused=True)
        case "adamw":
            decay = kind.weight_decay
            return torch.optim.AdamW(parameters, rate, kind.betas, kind.eps, decay, fused=True)
        case "adadelta":
            return torch.optim.Adadelta(parameters, rate, kind.rho, kind.eps)
        case "sgd":
            return torch.optim.SGD(parameters, rate, kind.momentum)


def schedule_of(train: Train, model: Any) -> Schedule | Plateau:
    kind = train.schedule
    match kind.kind:
        case "constant":
            return constant(kind.warmup)
        case "noam":
            return noam(model.dim, kind.warmup)
        case "inverse_sqrt":
            return inverse_sqrt(kind.warmup)
        case "cosine":
            return cosine(train.steps or 1, kind.warmup, kind.floor)
        case "plateau":
            return Plateau(kind.factor, kind.patience, kind.warmup)


def without_end(settings: Settings) -> dict[str, Any]:
    """Settings but for how long to train: a run may be trained longer."""
    plain = settings.model_dump()
    for name in ("steps", "epochs", "patience"):
        plain["train"].pop(name)
    return plain


def is_short(records: Iterable[Record], most: int) -> bool:
    """Whether the texts of all records have no more than so many characters."""
    for record in records:
        most -= len(record["source"]) + len(record["target"])
        if most < 0:
            return False
    return True


def written(file: BinaryIO, data: bytes) -> None:
    """All of it: a file without a buffer may take a part, as when the disk is full."""
    while data:
        data = data[file.write(data) :]


def check_free(folder: Path) -> None:
    """A new run goes into a folder of its own: other people's files are not written over."""
    ours = {CONFIG, WEIGHTS, VERSIONS, CHECKPOINTS, LOG, *(f"{side}.json" for side in SIDES)}
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


def cut_log(path: Path, done: int) -> None:
    """Take out of a log what is about to be done again."""
    if not path.is_file():
        return
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if line.endswith("\n") and place(json.loads(line)) <= done]
    if kept != lines:
        write_whole(path, "".join(kept).encode())


def place(entry: dict[str, Any]) -> int:
    return entry["number"] if entry["kind"] == "step" else entry["step"]
