"""Prepare a training: what `regard train` and `regard check` do before the first step."""

from itertools import islice

import torch

from regard.config.settings import Settings
from regard.data.build import build_corpus, resolve_held_out
from regard.data.corpus import Corpus, Record
from regard.errors import InputError
from regard.run import Run
from regard.tasks.automatic import resolve_training
from regard.tasks.base import AnyTask
from regard.tasks.building import batch_options
from regard.tasks.catalogue import find_task
from regard.tasks.run_weights import check_settings_limits
from regard.training.build import build_training
from regard.training.distributed.group import WorkerGroup
from regard.training.loop import AnyTraining

MAX_DEV_RECORDS = 5000  # records of dev that are used for validation


def create_run(settings: Settings) -> tuple[Run, Corpus]:
    """Return a new run with vocabularies from its data, and the data."""
    settings = find_task(settings.task).builder().resolve_settings(settings)
    check_settings_limits(settings, "settings")
    settings = settings.model_copy(update={"data": resolve_held_out(settings.data)})
    corpus = build_corpus(settings.data)
    return Run.create(settings, corpus), corpus


def read_dev_records(task: AnyTask, corpus: Corpus) -> list[Record]:
    """Return the records for validation, after the checks that a validation makes."""
    if "dev" not in corpus.splits:
        return []
    records = list(islice(corpus.read("dev"), MAX_DEV_RECORDS))
    with torch.random.fork_rng(devices=[]):
        if not sum(1 for _ in task.examples(records)):  # a validation may have other limits
            task.negative_log_likelihood(records)
            task.model.train()
    return records


def prepare_training(run: Run, corpus: Corpus, group: WorkerGroup | None = None) -> AnyTraining:
    """Return the training of a run before its first step; choose its length by the data."""
    batches = run.task.batches(corpus, batch_options(run.settings))
    run.settings = resolve_training(run.settings, batches, run.task.best_resets_after)
    return build_training(run.settings, run.task, batches, group)


def find_refusal(settings: Settings) -> InputError | None:
    """Return the error with which a training of these settings would end, if it would."""
    try:
        run, corpus = create_run(settings)
        next(prepare_training(run, corpus).batches)
        read_dev_records(run.task, corpus)
    except InputError as error:
        return error
    return None
