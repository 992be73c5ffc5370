"""Every model trains in bfloat16 and in float16, with about the loss of float32."""

import math

import pytest
import torch

from regard.data.build import build_corpus
from regard.tasks.building import batch_options, build_untrained_run
from regard.training.build import build_training


def first_losses(settings) -> list[float]:
    torch.manual_seed(1)
    corpus = build_corpus(settings.data)
    run = build_untrained_run(settings, corpus)
    batches = run.task.batches(corpus, batch_options(settings))
    training = build_training(settings, run.task, batches)
    return [step.loss for step in training.steps(2)]


def test_losses_are_close_to_those_of_float32(tiny, tiny_settings, unchecked):
    expected = first_losses(tiny_settings(tiny, {}))
    for autocast in ("bfloat16", "float16"):
        losses = first_losses(tiny_settings(tiny, {"autocast": autocast}))
        assert all(math.isfinite(loss) for loss in losses)
        assert losses == pytest.approx(expected, rel=0.05, abs=0.02)
