"""Train a run in a folder, or resume its training."""

import math
import tomllib
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch

from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.data.corpus import Corpus, Record
from regard.errors import InputError
from regard.files import JsonObject, remove_stale_drafts
from regard.run import Run
from regard.tasks.building import batch_options
from regard.tasks.catalogue import find_task
from regard.tasks.load import load_settings
from regard.tasks.run_folder import (
    CHECKPOINTS_FOLDER,
    CONFIG_FILE,
    DATA_FOLDER,
    VERSIONS_FILE,
    WEIGHTS_FILE,
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
from regard.training.loop import AnyTraining, Step
from regard.training.schedule import Plateau

MAX_DEV_RECORDS = 5000  # records of dev that are used for validation
LOWER_IS_BETTER = ("loss", "ter", "perplexity", "mae")


class Validation(NamedTuple):
    """The result of one validation on the dev split."""

    step: int
    loss: float  # mean over the units of the task, such as tokens
    metric: float  # the value of train.metric, which may be the loss
    best: bool  # whether it is the best metric so far


class Trainer:
    """One training in one folder; iterate over it to train.

    Each item is a `Step` or a `Validation`. Stop whenever you like: a new trainer of the same
    folder continues from the last checkpoint. torch's global random generator is restored after
    each item.

    >>> import regard
    >>> settings = regard.resolve_settings(
    ...     {"data": {"kind": "dates", "size": 8, "held_out": 2}, "train": {"steps": 2}}
    ... )
    >>> for event in regard.Trainer(settings, "runs/dates"):
    ...     print(event.number)
    1
    2
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path | str,
        on_message: Callable[[str], None] = print,
    ):
        settings = find_task(settings.task).builder().resolve_settings(settings)
        self.settings, self.folder, self.on_message = settings, Path(folder), on_message
        if settings.train.tensorboard:
            summary_writer()  # raises an error if it is not installed, before any work is done
        self.run, self.corpus = self.open_run()
        self.random_state = self.run.random_state
        self.best_metric: float | None = None
        self.validations_without_gain = 0
        self.dev_records: list[Record] = []
        if "dev" in self.corpus.splits:
            self.dev_records = list(islice(self.corpus.read("dev"), MAX_DEV_RECORDS))
        with self.own_random_state():
            self.training = self.build_training()
            if not (self.folder / CONFIG_FILE).is_file():  # only after all data has been read
                self.run.save(self.folder)
            self.resume()

    @contextmanager
    def own_random_state(self) -> Generator[None]:
        """Use the random state of this training, and restore torch's global one at the end."""
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.random_state)
            try:
                yield
            finally:
                self.random_state = torch.get_rng_state()

    def __iter__(self) -> Generator[Step | Validation]:
        """Yield steps and validations until train.steps, train.epochs or train.patience ends it."""
        train = self.settings.train
        steps_done = self.training.steps_done
        with Log(self.folder, tensorboard=train.tensorboard, steps_done=steps_done) as log:
            while not self.is_finished():
                with self.own_random_state():
                    step = self.training.step()
                log.add("step", step._asdict())
                yield step
                if self.dev_records and step.number % train.validate_every == 0:
                    with self.own_random_state():
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
        """Compute loss and metric on dev; save the weights if the metric is the best so far."""
        metric, ema = self.settings.train.metric, self.training.ema
        with nullcontext() if ema is None else ema.applied_to(self.run.model):
            mean_loss, value = self.dev_loss_and_metric()
        self.run.model.train()
        sign = -1 if metric in LOWER_IS_BETTER else 1
        resets_after = self.run.task.best_resets_after
        steps_since = self.training.steps_done - resets_after
        if resets_after and 0 < steps_since <= self.settings.train.validate_every:
            self.best_metric, self.validations_without_gain = None, 0
        is_best = self.best_metric is None or sign * value > sign * self.best_metric
        self.validations_without_gain = 0 if is_best else self.validations_without_gain + 1
        if is_best:
            self.best_metric = value
            self.run.save_weights(self.folder, self.weights())
        if isinstance(self.training.schedule, Plateau):
            self.training.schedule.update(is_best)
        return Validation(self.training.steps_done, mean_loss, value, is_best)

    def dev_loss_and_metric(self) -> tuple[float, float]:
        metric, task = self.settings.train.metric, self.run.task
        loss = task.negative_log_likelihood(self.dev_records)
        mean_loss = loss.total.item() / loss.count
        if metric == "loss":
            return mean_loss, mean_loss
        return mean_loss, task.validation_metric(metric, self.dev_records)

    def weights(self) -> dict[str, torch.Tensor]:
        """Return the weights of the run: the moving average, if train.ema is set."""
        ema = self.training.ema
        return dict(self.run.model.state_dict()) if ema is None else ema.weights

    def save(self) -> None:
        """Write a checkpoint, and remove old ones."""
        with self.own_random_state():
            tensors, metadata = self.training.state_dict()
        metadata |= {"best": self.best_metric, "waited": self.validations_without_gain}
        folder = self.folder / CHECKPOINTS_FOLDER
        save_checkpoint(folder, Checkpoint(self.training.steps_done, tensors, metadata))
        prune_checkpoints(folder, self.settings.train.keep_checkpoints)

    def close(self) -> None:
        """Write a checkpoint, and the weights of the run if no validation has selected them."""
        self.save()
        count = self.settings.train.average_checkpoints
        if count > 1:
            paths = checkpoint_folders(self.folder / CHECKPOINTS_FOLDER)[:count]
            weights = mean_weights(load_checkpoint(path).tensors["weights"] for path in paths)
            self.run.save_weights(self.folder, weights)
        elif self.best_metric is None:
            self.run.save_weights(self.folder, self.weights())

    def open_run(self) -> tuple[Run, Corpus]:
        """Return the run in the folder if its settings are the same, or a new one."""
        config = self.folder / CONFIG_FILE
        if not config.is_file():
            check_folder_is_free(self.folder, self.settings)
            corpus = build_corpus(self.settings.data)
            return Run.create(self.settings, corpus), corpus
        if not (self.folder / WEIGHTS_FILE).is_file():
            raise InputError(
                f"{self.folder}: has a {CONFIG_FILE}, but no {WEIGHTS_FILE}; use another folder"
            )
        check_task(config, self.settings.task)
        saved_settings = load_settings(config)
        if settings_without_duration(saved_settings) != settings_without_duration(self.settings):
            raise InputError(f"{self.folder}: holds a run with other settings; use another folder")
        run = Run.load(self.folder)
        return Run(self.settings, run.vocabularies), run.corpus()

    def resume(self) -> None:
        """Continue from the newest checkpoint that is intact."""
        remove_stale_drafts(self.folder)
        checkpoint, skipped = load_newest_checkpoint(self.folder / CHECKPOINTS_FOLDER)
        for line in skipped:
            self.on_message(line)
        if checkpoint is not None:
            self.training.load_state_dict(checkpoint.tensors, checkpoint.metadata)
            self.best_metric = checkpoint.metadata["best"]
            self.validations_without_gain = checkpoint.metadata["waited"]
        truncate_log(self.folder, self.training.steps_done)

    def build_training(self) -> AnyTraining:
        task = self.run.task
        batches = task.batches(self.corpus, batch_options(self.settings))
        return build_training(self.settings, task, batches)


def settings_without_duration(settings: Settings) -> JsonObject:
    """Return the settings that may not change when a training is resumed.

    The length of the training and the metrics may change.
    """
    values = settings.model_dump(exclude={"metrics"})
    for name in ("steps", "epochs", "patience"):
        values["train"].pop(name)
    return values


def check_folder_is_free(folder: Path, settings: Settings) -> None:
    """Raise an error if a folder holds files that do not belong to a run of these settings."""
    loaders = find_task(settings.task).builder().vocabulary_loaders(settings)
    run_files = {CONFIG_FILE, WEIGHTS_FILE, VERSIONS_FILE, CHECKPOINTS_FOLDER, DATA_FOLDER}
    run_files |= set(LOG_FILES)
    run_files |= {f"{name}.json" for name in loaders}
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder for the run")
    for path in folder.iterdir() if folder.exists() else ():
        if path.name not in run_files and not path.name.startswith("."):
            raise InputError(f"{folder}: is not a run (it holds {path.name}); use another folder")


def check_task(config: Path, task: str) -> None:
    """Check the task of a saved config before its settings, whose tables depend on the task."""
    try:
        saved_task = tomllib.loads(config.read_text("utf-8")).get("task", task)
    except ValueError as error:
        raise InputError(f"{config}: is not the config of a run ({error})") from None
    if saved_task != task:
        raise InputError(
            f"{config.parent}: holds a run of task {saved_task!r}, not {task!r}; use another folder"
        )
