"""train.sharding changes neither losses nor gradients, or it is refused."""

import re
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.processes import run_in_group

from regard.config.settings import Settings
from regard.data.build import build_corpus
from regard.errors import InputError
from regard.tasks.building import batch_options, build_untrained_run
from regard.tasks.tensor_file import whole_tensor
from regard.training.build import build_training
from regard.training.distributed.group import WorkerGroup
from regard.training.distributed.sharding import shard_training

from .conftest import TinyRun, example_name

STACKED = {"transformer", "gpt2", "bert", "vit", "roll_gpt", "msa"}
# Tasks that call a stack by methods of their own, and settings of [train]
TRAININGS = [
    ("translate", "transformer", {}),
    ("translate", "transformer", {"recompute_activations": True}),
    ("language", "gpt2", {}),
    ("classify", "bert", {}),
    ("answer", "bert", {}),
    ("image", "vit", {}),
    ("music", "roll_gpt", {}),
    ("fold", "msa", {}),
]


def write_gradients(group: WorkerGroup, settings: Settings, path: Path) -> None:
    """Write the loss and the gradients of the first step, without dropout."""
    corpus = build_corpus(settings.data)
    run = build_untrained_run(settings, corpus)
    batches = run.task.batches(corpus, batch_options(settings))
    training = build_training(settings, run.task, batches, group)
    if group.size > 1:
        shard_training(training)
    run.model.eval()
    loss, _ = training.backward()
    tensors = {"loss": torch.tensor(loss)}
    for name, parameter in run.model.named_parameters():
        if parameter.grad is not None:
            tensors[name] = whole_tensor(parameter.grad)
    if group.is_main:
        save_file(tensors, path)


@pytest.mark.parametrize(("task", "kind", "train"), TRAININGS)
def test_sharded_models_have_the_same_gradients(tiny_settings, tmp_path, task, kind, train):
    tiny = TinyRun(task, kind, example_name(task, kind))
    settings = tiny_settings(tiny, {"sharding": "full", **train})
    write_gradients(WorkerGroup(), settings, tmp_path / "alone")
    function = partial(write_gradients, settings=settings, path=tmp_path / "sharded")
    run_in_group(function, tmp_path / "output.txt")
    alone, sharded = load_file(tmp_path / "alone"), load_file(tmp_path / "sharded")
    assert len(alone) > 10
    torch.testing.assert_close(sharded, alone, rtol=1e-3, atol=1e-6)


def test_other_models_are_refused(tiny_model, tiny_settings, unchecked):
    if tiny_model.kind in STACKED:
        return
    settings = tiny_settings(tiny_model, {"sharding": "full"})
    corpus = build_corpus(settings.data)
    task = build_untrained_run(settings, corpus).task
    with pytest.raises(InputError) as error:
        build_training(settings, task, task.batches(corpus, batch_options(settings)))
    assert re.fullmatch(
        r'train.sharding: \w+ has no stack of blocks; use train.sharding = "none"',
        str(error.value),
    )
