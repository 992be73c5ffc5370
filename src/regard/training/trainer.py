"""Train a run in a folder, or resume its training."""

import math
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch

from regard.batching.device import find_device
from regard.config.settings import Settings
from regard.data.corpus import Corpus
from regard.data.formats.skipped_rows import SkippedRows
from regard.errors import InputError
from regard.files import JsonObject, remove_drafts
from regard.kernels.linear import release_packed_weights
from regard.manifest import Manifest, digests_to_json, read_manifest
from regard.run import Run
from regard.tasks.automatic import describe_choices, with_saved_choices
from regard.tasks.catalogue import find_task
from regard.tasks.load import load_settings
from regard.tasks.run_folder import (
    CHECKPOINTS_FOLDER,
    CONFIG_FILE,
    WEIGHTS_FILE,
    digest_training_data,
    verify_run,
)
from regard.tasks.run_weights import read_weights
from regard.tasks.tensor_file import whole_tensors
from regard.training.checkpoint import (
    Checkpoint,
    CheckpointWeights,
    TensorFilter,
    checkpoint_folders,
    has_checkpoint,
    keep_nothing,
    keep_whole,
    load_newest_checkpoint,
    prune_checkpoints,
    remove_checkpoint,
    save_checkpoint,
)
from regard.training.differences import setting_differences
from regard.training.distributed.group import WorkerGroup
from regard.training.ema import mean_weights
from regard.training.folder_checks import changed_versions, check_folder_is_free, check_task
from regard.training.lock import FolderLock, FollowerLock
from regard.training.log import Log, summary_writer, truncate_log
from regard.training.loop import Step
from regard.training.prepare import create_run, prepare_training, read_dev_records
from regard.training.schedule import Plateau

if TYPE_CHECKING:
    from regard.training.distributed.sharding import ShardedTraining

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
    each item. Of the processes of a `group`, the first one writes all files.

    >>> import regard
    >>> settings = regard.resolve_settings(
    ...     {"data": {"kind": "dates", "size": 8, "held_out": 2}, "train": {"steps": 2}}
    ... )
    >>> for event in regard.Trainer(settings, "runs/dates"):
    ...     print(type(event).__name__)
    Step
    Validation
    Step
    Validation
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path | str,
        on_message: Callable[[str], None] = print,
        *,
        accept_changed_data: bool = False,
        group: WorkerGroup | None = None,
    ):
        self.group = group or WorkerGroup(device=str(find_device(settings.train.device)))
        settings = find_task(settings.task).builder().resolve_settings(settings)
        self.settings, self.folder, self.on_message = settings, Path(folder), on_message
        self.given_settings, self.accept_changed_data = settings, accept_changed_data
        if settings.train.tensorboard:
            summary_writer()  # raises an error if it is not installed, before any work is done
        self.best_metric: float | None = None
        self.best_loss = math.inf
        self.validations_without_gain = 0
        self.is_between_steps, self.is_validating, self.needs_validation = True, False, False
        self.saved_step: int | None = None  # whose checkpoint holds the present state
        self.is_closed = False  # finished, and its checkpoints were removed
        self.lock: FolderLock | FollowerLock = FollowerLock()
        try:
            self.group.from_main(self.lock_folder)
            self.group.from_main(self.prepare)
            if not self.group.is_main:
                self.prepare()  # opens the run that the first process has written
            self.group.copy_from_main(self.run.model.state_dict().values())
            self.sharded = self.shard()
            self.group.from_main(self.resume)
            if not self.group.is_main:
                self.resume()
        except BaseException:
            self.lock.abandon()
            raise

    def lock_folder(self) -> None:
        if not (self.folder / CONFIG_FILE).is_file():
            check_folder_is_free(self.folder, self.settings)
        self.lock = FolderLock(self.folder)

    def prepare(self) -> None:
        """Read the data, and build the training."""
        if self.group.is_main:
            remove_drafts(self.folder)
        self.run, self.corpus = self.open_run()
        self.run.use_device(self.group.device)
        self.random_state = self.run.random_state
        with self.own_random_state():
            self.training = prepare_training(self.run, self.corpus, self.group)
            self.dev_records = read_dev_records(self.run.task, self.corpus)
            self.settings = self.run.settings
            if not (self.folder / CONFIG_FILE).is_file():  # only after all data has been read
                digests = digest_training_data(self.settings, self.folder)
                self.run.save(self.folder, data_files=digests)
                if (choices := describe_choices(self.given_settings, self.settings)) is not None:
                    self.on_message(choices)
        skipped = getattr(self.corpus, "skipped", None)
        if isinstance(skipped, SkippedRows) and skipped.messages:
            self.on_message(skipped.describe())

    def shard(self) -> "ShardedTraining | None":
        """Keep only a part of the training in each process, if the settings say so."""
        if self.settings.train.sharding == "none" or self.group.size == 1:
            return None
        from regard.training.distributed.sharding import ShardedTraining  # imports FSDP2

        return ShardedTraining(self.training, self.run)

    @property
    def validated_run(self) -> Run:
        """The run that validates: a copy, if the training is sharded."""
        return self.run if self.sharded is None else self.sharded.run

    @contextmanager
    def own_random_state(self) -> Generator[None]:
        """Use the random state of this training, and restore torch's global one at the end."""
        devices = [self.group.device] if self.group.device.startswith("cuda") else []
        with torch.random.fork_rng(devices):
            torch.set_rng_state(self.random_state)
            try:
                yield
            finally:
                self.random_state = torch.get_rng_state()

    def __iter__(self) -> Generator[Step | Validation]:
        """Yield steps and validations until train.steps, train.epochs or train.patience ends it."""
        self.lock.check()
        train = self.settings.train
        steps_done = self.training.steps_done
        if self.is_closed:
            self.lock.release()
            return
        if steps_done and self.saved_step is None:
            self.save()  # continues a finished training
        with self.open_log() as log:
            while True:
                if self.needs_validation:
                    validation = self.validate()
                    self.needs_validation, self.saved_step = False, None
                    if log is not None:
                        log.add("dev", validation._asdict())
                    yield validation
                if self.training.steps_done % train.save_every == 0:
                    self.save()
                if self.is_finished():
                    break
                step = self.step()
                if log is not None:
                    log.add("step", step._asdict())
                yield step
        self.close()

    def open_log(self) -> AbstractContextManager[Log | None]:
        """Return the log of the folder, which only the first process writes."""
        if not self.group.is_main:
            return nullcontext()
        tensorboard, steps_done = self.settings.train.tensorboard, self.training.steps_done
        return Log(self.folder, tensorboard=tensorboard, steps_done=steps_done)

    def step(self) -> Step:
        """Run one optimizer step; if it is interrupted, the state can no longer be saved."""
        self.lock.check()
        self.is_between_steps, self.saved_step = False, None
        with self.own_random_state():
            step = self.training.step()
        is_due = step.number % self.settings.train.validate_every == 0
        self.needs_validation = is_due and bool(self.dev_records)
        self.is_between_steps = True
        return step

    def is_finished(self) -> bool:
        if self.needs_validation:
            return False
        train, steps_done = self.settings.train, self.training.steps_done
        if train.patience is not None and self.validations_without_gain >= train.patience:
            return True
        if train.steps is not None:
            return steps_done >= train.steps
        return self.training.batches.epoch >= (train.epochs or math.inf)

    def validate(self) -> Validation:
        """Compute loss and metric on dev; save the weights if the metric is the best so far.

        Of weights with the same metric, those with the lower loss are kept.
        """
        self.lock.check()
        with self.whole_weights():
            loss, value = self.group.from_main(self.dev_loss_and_metric)
        sign = -1 if self.settings.train.metric in LOWER_IS_BETTER else 1
        if self.is_first_after_reset():
            self.best_metric, self.validations_without_gain = None, 0
        is_gain = not math.isnan(value)
        is_tie = value == self.best_metric
        if self.best_metric is not None:
            is_gain = sign * value > sign * self.best_metric
        is_best = is_gain or (is_tie and loss < self.best_loss)
        self.validations_without_gain = 0 if is_gain else self.validations_without_gain + 1
        if is_best:
            self.best_metric, self.best_loss = value, loss
            self.save_weights()
        if isinstance(self.training.schedule, Plateau):
            self.training.schedule.update(is_gain)
        return Validation(self.training.steps_done, loss, value, is_best)

    def is_first_after_reset(self) -> bool:
        """Return whether this is the first validation after the task has changed its metric."""
        resets_after = self.run.task.best_resets_after
        steps_since = self.training.steps_done - resets_after
        return bool(resets_after) and 0 < steps_since <= self.settings.train.validate_every

    def whole_weights(self) -> AbstractContextManager[None]:
        """Give the first process the weights to validate; a sharded training gathers them."""
        if self.sharded is not None:
            return self.sharded.whole_weights(self.weights())
        ema = self.training.ema
        if ema is None or not self.group.is_main:
            return nullcontext()
        return ema.applied_to(self.run.model)

    def dev_loss_and_metric(self) -> tuple[float, float]:
        """Return the mean loss and the metric on dev; an interruption changes no state."""
        random_state = self.random_state
        try:
            with self.own_random_state(), self.interruptible():
                return self.compute_loss_and_metric()
        except BaseException:
            self.random_state = random_state
            raise
        finally:
            self.validated_run.model.train()
            release_packed_weights(self.validated_run.model)

    @contextmanager
    def interruptible(self) -> Generator[None]:
        """Let a stop signal end this block at once, since it can be repeated."""
        self.is_validating = True
        try:
            yield
        finally:
            self.is_validating = False

    def compute_loss_and_metric(self) -> tuple[float, float]:
        metric, task = self.settings.train.metric, self.validated_run.task
        loss = task.negative_log_likelihood(self.dev_records)
        mean_loss = loss.total.item() / loss.count
        if metric == "loss":
            return mean_loss, mean_loss
        return mean_loss, task.validation_metric(metric, self.dev_records)

    def weights(self) -> dict[str, torch.Tensor]:
        """Return the weights of the run: the moving average, if train.ema is set."""
        ema = self.training.ema
        return dict(self.run.model.state_dict()) if ema is None else ema.weights

    def save_weights(self) -> None:
        """Replace the weights of the run by the present ones."""
        if self.group.is_main:
            self.validated_run.save_weights(self.folder, self.weights())
        else:
            self.help_write(self.weights())

    def help_write(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Send the rows of this process to the first one, which writes."""
        if self.sharded is not None:
            for _ in whole_tensors(tensors):
                pass

    def save(self) -> None:
        """Write a checkpoint unless there is one of this state, and remove old ones."""
        self.lock.check()
        steps_done = self.training.steps_done
        if self.saved_step == steps_done or not steps_done:
            return
        with self.own_random_state():
            tensors, metadata = self.training.state_dict()
        metadata |= {
            "best": self.best_metric,
            "best_loss": self.best_loss if math.isfinite(self.best_loss) else None,
            "waited": self.validations_without_gain,
            "needs_validation": self.needs_validation,
        }
        checkpoint = Checkpoint(steps_done, tensors, metadata)
        if self.sharded is None or not self.group.from_main(partial(self.has_saved, checkpoint)):
            self.write_checkpoint(checkpoint)
        if self.group.is_main:
            self.prune()
        self.saved_step = steps_done

    def has_saved(self, checkpoint: Checkpoint) -> bool:
        return has_checkpoint(self.folder / CHECKPOINTS_FOLDER, checkpoint)

    def write_checkpoint(self, checkpoint: Checkpoint) -> None:
        if self.group.is_main:
            save_checkpoint(self.folder / CHECKPOINTS_FOLDER, checkpoint)
        else:
            for tensors in checkpoint.tensors.values():
                self.help_write(tensors)

    def prune(self) -> None:
        """Remove old checkpoints."""
        train = self.settings.train
        folder = self.folder / CHECKPOINTS_FOLDER
        prune_checkpoints(folder, train.keep_checkpoints, train.save_every)

    def close(self) -> None:
        """Write a checkpoint, and the weights of the run if no validation has selected them.

        Then release the folder. After an interrupted step, the last checkpoint stays as it is. A
        finished training removes its checkpoints, unless train.keep_finished is set.
        """
        if self.lock.handle is None:
            return
        if self.is_between_steps:
            self.save()
            if self.settings.train.average_checkpoints > 1 and self.training.steps_done:
                self.save_average()
            elif self.best_metric is None:
                self.save_weights()
            is_kept = self.settings.train.keep_finished or not self.is_finished()
            if self.group.is_main and not is_kept:
                self.remove_checkpoints()
        self.lock.release()

    def save_average(self) -> None:
        """Replace the weights of the run by the mean of the last checkpoints."""
        if self.group.is_main:
            count = self.settings.train.average_checkpoints
            paths = checkpoint_folders(self.folder / CHECKPOINTS_FOLDER)[:count]
            weights = mean_weights([CheckpointWeights(path) for path in paths])
            self.validated_run.save_weights(self.folder, weights)

    def remove_checkpoints(self) -> None:
        """Remove all checkpoints; the manifest keeps the position of the training."""
        folder = self.folder / CHECKPOINTS_FOLDER
        checkpoint, _ = load_newest_checkpoint(folder, keep_nothing)
        if checkpoint is not None:
            manifest = read_manifest(self.folder)
            facts = {**manifest.facts, "finished": checkpoint.metadata}
            Manifest(manifest.files, facts).write(self.folder)
        for path in checkpoint_folders(folder):
            remove_checkpoint(path)
        self.is_closed = True

    def open_run(self) -> tuple[Run, Corpus]:
        """Return the run in the folder if its settings are the same, or a new one."""
        config = self.folder / CONFIG_FILE
        if not config.is_file():
            return create_run(self.settings)
        if not (self.folder / WEIGHTS_FILE).is_file():
            raise InputError(
                f"{self.folder}: has a {CONFIG_FILE}, but no {WEIGHTS_FILE}; use another folder"
            )
        manifest = verify_run(self.folder)
        check_task(config, self.settings.task)
        saved_settings = load_settings(config)
        self.settings = with_saved_choices(self.settings, saved_settings)
        if differences := setting_differences(saved_settings, self.settings):
            raise InputError(
                f"{self.folder}: holds a run with other settings ({differences}); use another "
                "folder"
            )
        self.check_manifest(manifest)
        run = Run.load(self.folder, device="cpu")
        return Run(self.settings, run.vocabularies), run.corpus()

    def check_manifest(self, manifest: Manifest) -> None:
        """Refuse data that were changed since the first training, and complete the manifest."""
        saved_digests = manifest.facts.get("data_files", {})
        digests = digests_to_json(digest_training_data(self.settings, self.folder))
        changed = [
            name for name in digests if saved_digests.get(name, digests[name]) != digests[name]
        ]
        if changed and not self.accept_changed_data:
            raise InputError(
                f"{changed[0]}: was changed since the training in {self.folder} began; use another "
                "folder, or accept the change (--accept-changed-data, in Python "
                "accept_changed_data=True)"
            )
        for line in changed_versions(manifest.facts.get("versions", {}), self.group.device):
            self.on_message(f"{self.folder}: {line}")
        complete = Manifest(manifest.files, {**manifest.facts, "data_files": digests})
        if self.group.is_main and complete != read_manifest(self.folder):
            complete.write(self.folder)

    def resume(self) -> None:
        """Continue from the newest checkpoint that is intact."""
        with self.own_random_state():
            self.restore()

    def restore(self) -> None:
        keep = keep_whole if self.sharded is None else self.sharded.keep_rows
        checkpoint, skipped = load_newest_checkpoint(self.folder / CHECKPOINTS_FOLDER, keep)
        for line in skipped:
            self.on_message(line)
        if self.group.is_main and not skipped:  # a kill may have come before this
            self.prune()
        finished = read_manifest(self.folder).facts.get("finished")
        if checkpoint is not None:
            self.training.load_state_dict(checkpoint.tensors, checkpoint.metadata)
            self.load_metadata(checkpoint.metadata)
            self.saved_step = checkpoint.step
        elif finished is not None:
            self.resume_finished(finished, keep)
        if self.group.is_main:
            validated = not self.needs_validation
            truncate_log(self.folder, self.training.steps_done, validated=validated)

    def load_metadata(self, metadata: JsonObject) -> None:
        self.best_metric, best_loss = metadata["best"], metadata["best_loss"]
        self.best_loss = math.inf if best_loss is None else best_loss
        self.validations_without_gain = metadata["waited"]
        self.needs_validation = metadata["needs_validation"]

    def resume_finished(self, metadata: JsonObject, keep: TensorFilter) -> None:
        """Continue a finished training from its weights; its optimizer state is not kept."""
        stored = read_weights(self.folder / WEIGHTS_FILE)
        weights = {name: keep("weights", name, tensor) for name, tensor in stored.items()}
        self.training.resume_from_weights(weights, metadata)
        self.load_metadata(metadata)
        self.is_closed = self.is_finished()
        if not self.is_closed:
            self.on_message(
                f"{self.folder}: was finished after {self.training.steps_done} steps; continues "
                "from its best weights with a new optimizer, so not exactly as one long training "
                "would (train.keep_finished = true keeps the optimizer)"
            )
