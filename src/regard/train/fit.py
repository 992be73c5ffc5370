"""From settings to a trained run in a folder; the same call again goes on where it was left."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.batch.batches import Batches, Stored, Streamed
from regard.batch.pair import Batch, Pair
from regard.config.load import load as load_settings
from regard.config.settings import Settings
from regard.config.train import Train
from regard.corpora.build import build as build_corpus
from regard.corpora.corpus import Corpus, Record
from regard.metric.translation import bleu, chrf, exact_match, ter
from regard.tasks.guide import Guided
from regard.tasks.loss import Loss
from regard.tasks.translate import Translator
from regard.train.average import Average, mean
from regard.train.checkpoint import Checkpoint, checkpoints, load, newest, prune, save
from regard.train.log import Log, cut, summary_writer
from regard.train.loop import Step, Training
from regard.train.run import CONFIG, Run, prepare
from regard.train.schedule import Plateau, Schedule, constant, cosine, inverse_sqrt, noam

IN_MEMORY = 500_000  # pairs; a larger corpus is read anew each epoch
CHECKPOINTS = "checkpoints"


class Validation(NamedTuple):
    step: int
    loss: float  # a token's, on the dev split
    metric: float  # what is compared: the loss, or the metric of the settings
    best: bool


class Fit:
    """One training in one folder. `events` makes it, step by step; stop it when you like."""

    def __init__(self, settings: Settings, folder: Path, tell: Callable[[str], None] = print):
        self.settings, self.folder, self.tell = settings, folder, tell
        if settings.train.tensorboard:
            summary_writer()  # not installed: said before any work is done
        self.run, self.corpus = self.opened()
        self.lessons = self.guided()
        self.training = self.made()
        self.best: float | None = None
        self.waited = 0
        self.dev: list[Record] = []
        if "dev" in self.corpus.splits:
            self.dev = list(islice(self.corpus.read("dev"), 5000))
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
        batches = self.training.batches
        return isinstance(batches, Batches) and batches.epoch >= (train.epochs or math.inf)

    def validate(self) -> Validation:
        """Loss and metric on dev; the best weights so far are those that the run uses."""
        metric, average = self.settings.train.metric, self.training.average
        with nullcontext() if average is None else average.worn_by(self.run.model):
            mean_loss, value = self.measured()
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

    def measured(self) -> tuple[float, float]:
        """A token's loss on dev, and the settings' metric."""
        metric = self.settings.train.metric
        loss = self.run.task.likelihood(list(self.run.task.pairs(self.dev)))
        mean_loss = loss.total.item() / loss.tokens
        if metric == "loss":
            return mean_loss, mean_loss
        outputs = [best[0].text for best in self.run.predict([r["source"] for r in self.dev])]
        references = [record["target"] for record in self.dev]
        score = {"bleu": bleu, "chrf": chrf, "ter": ter}.get(metric)
        value = score(outputs, references).value if score else exact_match(outputs, references)
        return mean_loss, value

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
            corpus = build_corpus(self.settings.data)
            run = prepare(self.settings, corpus)
            run.save(self.folder)
            return run, corpus
        before = load_settings(config)
        if without_end(before) != without_end(self.settings):
            raise ValueError(f"{self.folder}: holds a run with other settings; take another folder")
        run = Run.load(self.folder)
        return Run(self.settings, run.task.source, run.task.target), run.corpus()

    def resume(self) -> None:
        found, skipped = newest(self.folder / CHECKPOINTS)
        for line in skipped:
            self.tell(line)
        if found is not None:
            self.training.restore(found.tensors, found.facts)
            self.best, self.waited = found.facts["best"], found.facts["waited"]
        cut(self.folder, self.training.done)

    def made(self) -> Training:
        train, model = self.settings.train, self.run.model
        if train.compile:
            for name in ("remember", "forced"):
                setattr(model, name, torch.compile(getattr(model, name), dynamic=True))
        batches = Batches(
            self.examples(),
            tokens=train.tokens_per_batch,
            sentences=train.sentences_per_batch,
            seed=self.settings.seed,
        )
        return Training(
            model,
            self.loss_of,
            batches,
            optimiser_of(train, model),
            schedule=schedule_of(train, self.settings.model),
            clip=train.clip or None,
            accumulate=train.accumulate,
            average=None if train.ema is None else Average(model, train.ema),
            autocast=None if train.autocast is None else getattr(torch, train.autocast),
        )

    def loss_of(self, batch: Batch) -> Loss:
        train, rate = self.settings.train, self.settings.train.teacher_forcing
        if train.teacher_forcing_steps:
            gone = min(self.training.done / train.teacher_forcing_steps, 1.0)
            rate = 1 - gone * (1 - rate)
        return self.lessons.loss(batch, train.label_smoothing, rate)

    def guided(self) -> Translator | Guided:
        """What gives pairs and their loss: the task, or the task with alignments."""
        train = self.settings.train
        if not train.guided_alignment or train.alignments is None:
            return self.run.task
        guided = Guided(self.run.task, train.alignments, train.guided_alignment)
        guided.check(self.corpus.read("train"))
        return guided

    def examples(self) -> Stored | Streamed:
        train, seed = self.settings.train, self.settings.seed

        def read() -> Iterable[Pair]:
            return self.lessons.pairs(self.corpus.read("train"), train.longest)

        pairs = iter(read())
        held = list(islice(pairs, IN_MEMORY))
        if not held:
            raise ValueError("train: no pair is left; is the data empty, or train.longest small?")
        if next(pairs, None) is None:
            return Stored(held, seed)
        return Streamed(read, seed, train.buffer)


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
    """Settings but for how long to train, and what is told: a run may be trained longer."""
    plain = settings.model_dump()
    for name in ("steps", "epochs", "patience", "tensorboard"):
        plain["train"].pop(name)
    return plain
