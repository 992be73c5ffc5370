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
from regard.data.build import build_corpus as build_corpus
from regard.data.corpus import Corpus, Record
from regard.files import remove_stale_drafts
from regard.train.run import (
    CHECKPOINTS_FOLDER,
    CONFIG_FILE,
    RUN_CLASSES,
    VERSIONS_FILE,
    WEIGHTS_FILE,
    Run,
    build_run,
    find_run_class,
)
from regard.training.build import build_training
from regard.training.checkpoint import (
    Checkpoint,
    checkpoint_folders,
    load_checkpoint,
    load_newest_checkpoint,
    prune_checkpoints,
    save_checkpoint,
)
from regard.training.ema import mean_weights
from regard.training.log import LOG_FILES, Log, summary_writer, truncate_log
from regard.training.loop import Step, Training
from regard.training.schedule import Plateau

MAX_DEV_RECORDS = 5000  # pairs of dev that are looked at
LOWER_IS_BETTER = ("loss", "ter", "perplexity", "mae")  # less is better


class Validation(NamedTuple):
    step: int
    loss: float  # a token's, on the dev split
    metric: float  # what is compared: the loss, or the metric of the settings
    best: bool


class Trainer:
    """One training in one folder. `events` makes it, step by step; stop it when you like."""

    def __init__(self, settings: Settings, folder: Path, on_message: Callable[[str], None] = print):
        settings = find_run_class(settings.run_kind).resolve_settings(settings)
        self.settings, self.folder, self.on_message = settings, folder, on_message
        if settings.train.tensorboard:
            summary_writer()  # not installed: said before any work is done
        self.run, self.corpus = self.open_run()
        self.best_metric: float | None = None
        self.validations_without_gain = 0
        self.dev_records: list[Record] = []
        if "dev" in self.corpus.splits:
            self.dev_records = list(islice(self.corpus.read("dev"), MAX_DEV_RECORDS))
        self.training = self.build_training()
        if not (self.folder / CONFIG_FILE).is_file():  # now that all the data was seen to be right
            self.run.save(self.folder)
        self.resume()

    def events(self) -> Iterator[Step | Validation]:
        """Steps and validations, until the settings' end or until nothing improves any more."""
        train = self.settings.train
        with Log(
            self.folder, tensorboard=train.tensorboard, steps_done=self.training.steps_done
        ) as log:
            while not self.is_finished():
                step = next(self.training.steps(self.training.steps_done + 1))
                log.add("step", step._asdict())
                yield step
                if self.dev_records and step.number % train.validate_every == 0:
                    validation = self.validate()
                    log.add("dev", validation._asdict())
                    yield validation
                if step.number % train.save_every == 0:
                    self.save()
        self.close()

    def is_finished(self) -> bool:
        train, steps_done = self.settings.train, self.training.steps_done
        if train.patience is not None and self.validations_without_gain >= train.patience:
            return True
        if train.steps is not None:
            return steps_done >= train.steps
        return self.training.batches.epoch >= (train.epochs or math.inf)

    def validate(self) -> Validation:
        """Loss and metric on dev; the best weights so far are those that the run uses."""
        metric, ema = self.settings.train.metric, self.training.ema
        with nullcontext() if ema is None else ema.applied_to(self.run.model):
            mean_loss, metric_value = self.dev_loss_and_metric()
        self.run.model.train()
        sign = -1 if metric in LOWER_IS_BETTER else 1
        if (
            self.run.best_resets_after
            and 0
            < self.training.steps_done - self.run.best_resets_after
            <= self.settings.train.validate_every
        ):
            self.best_metric, self.validations_without_gain = None, 0
        is_best = self.best_metric is None or sign * metric_value > sign * self.best_metric
        self.validations_without_gain = 0 if is_best else self.validations_without_gain + 1
        if is_best:
            self.best_metric = metric_value
            self.run.save_weights(self.folder, self.weights())
        if isinstance(self.training.schedule, Plateau):
            self.training.schedule.update(is_best)
        return Validation(self.training.steps_done, mean_loss, metric_value, is_best)

    def dev_loss_and_metric(self) -> tuple[float, float]:
        """A token's loss on dev, and the settings' metric."""
        metric, loss = (
            self.settings.train.metric,
            self.run.negative_log_likelihood(self.dev_records),
        )
        mean_loss = loss.total.item() / loss.count
        return mean_loss, mean_loss if metric == "loss" else self.run.validation_metric(
            metric, self.dev_records
        )

    def weights(self) -> dict[str, torch.Tensor]:
        ema = self.training.ema
        return dict(self.run.model.state_dict()) if ema is None else ema.weights

    def save(self) -> None:
        tensors, metadata = self.training.state_dict()
        metadata |= {"best": self.best_metric, "waited": self.validations_without_gain}
        save_checkpoint(
            self.folder / CHECKPOINTS_FOLDER,
            Checkpoint(self.training.steps_done, tensors, metadata),
        )
        prune_checkpoints(self.folder / CHECKPOINTS_FOLDER, self.settings.train.keep_checkpoints)

    def close(self) -> None:
        """Keep what there is: a checkpoint, and weights to use if no validation chose any."""
        self.save()
        checkpoint_count = self.settings.train.average_checkpoints
        if checkpoint_count > 1:
            paths = checkpoint_folders(self.folder / CHECKPOINTS_FOLDER)[:checkpoint_count]
            self.run.save_weights(
                self.folder, mean_weights(load_checkpoint(p).tensors["weights"] for p in paths)
            )
        elif self.best_metric is None:
            self.run.save_weights(self.folder, self.weights())

    def open_run(self) -> tuple[Run, Corpus]:
        """The run in the folder if it is this one, else a new one; never another's."""
        config = self.folder / CONFIG_FILE
        if not config.is_file():
            check_folder_is_free(self.folder)
            corpus = build_corpus(self.settings.data)
            return build_run(self.settings, corpus), corpus
        if not (self.folder / WEIGHTS_FILE).is_file():
            raise ValueError(
                f"{self.folder}: has a {CONFIG_FILE}, but is no run; take another folder"
            )
        check_task(config, self.settings.task)
        saved_settings = load_settings(config)
        if settings_without_duration(saved_settings) != settings_without_duration(self.settings):
            raise ValueError(f"{self.folder}: holds a run with other settings; take another folder")
        run = Run.load(self.folder)
        return type(run)(self.settings, run.vocabularies), run.corpus()

    def resume(self) -> None:
        remove_stale_drafts(self.folder)
        checkpoint, skipped = load_newest_checkpoint(self.folder / CHECKPOINTS_FOLDER)
        for line in skipped:
            self.on_message(line)
        if checkpoint is not None:
            self.training.load_state_dict(checkpoint.tensors, checkpoint.metadata)
            self.best_metric, self.validations_without_gain = (
                checkpoint.metadata["best"],
                checkpoint.metadata["waited"],
            )
        truncate_log(self.folder, self.training.steps_done)

    def build_training(self) -> Training:
        batches = self.run.batches(self.corpus)
        return build_training(
            self.settings, self.run.model, self.run.loss, batches, self.run.parameter_groups()
        )


def settings_without_duration(settings: Settings) -> dict[str, Any]:
    """Settings but for how long to train: a run may be trained longer."""
    values = settings.model_dump()
    for name in ("steps", "epochs", "patience"):
        values["train"].pop(name)
    return values


def check_folder_is_free(folder: Path) -> None:
    """A new run goes into a folder of its own: other people's files are not written over."""
    vocabularies = {
        f"{name}.json" for run in RUN_CLASSES for name in find_run_class(run).vocabulary_loaders
    }
    run_files = {
        CONFIG_FILE,
        WEIGHTS_FILE,
        VERSIONS_FILE,
        CHECKPOINTS_FOLDER,
        *LOG_FILES,
        *vocabularies,
    }
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: is a file; name a folder for the run")
    for path in folder.iterdir() if folder.exists() else ():
        if path.name not in run_files and not path.name.startswith("."):
            raise ValueError(f"{folder}: is not a run, it holds {path.name}; take another folder")


def check_task(config: Path, task: str) -> None:
    """A run of another task may have settings that are not even known here."""
    try:
        saved_task = tomllib.loads(config.read_text("utf-8")).get("task", task)
    except ValueError as error:
        raise ValueError(f"{config}: is not the config of a run ({error})") from None
    if saved_task != task:
        raise ValueError(
            f"{config.parent}: holds a run of task {saved_task!r}, not {task!r}; take "
            "another folder"
        )
