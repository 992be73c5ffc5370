"""train.recompute_activations changes neither losses nor gradients, or it is refused."""

import re

import pytest
import torch

from regard.data.build import build_corpus
from regard.errors import InputError
from regard.tasks.building import batch_options, build_untrained_run
from regard.training.build import build_training

STACKED = {"transformer", "gpt2", "bert", "vit", "roll_gpt", "msa"}


def loss_and_gradients(settings) -> tuple[float, list[torch.Tensor]]:
    corpus = build_corpus(settings.data)
    task = build_untrained_run(settings, corpus).task
    training = build_training(settings, task, task.batches(corpus, batch_options(settings)))
    task.model.train()
    torch.manual_seed(3)
    loss, _ = training.backward()
    return loss, [p.grad for p in task.model.parameters() if p.grad is not None]


def test_recomputed_activations_give_the_same_gradients(tiny, tiny_settings, unchecked):
    settings = tiny_settings(tiny, {"recompute_activations": True})
    if tiny.kind not in STACKED:
        with pytest.raises(InputError) as error:
            loss_and_gradients(settings)
        assert re.fullmatch(
            r"train.recompute_activations: \w+ has no stack of blocks; set it to false",
            str(error.value),
        )
        return
    loss, gradients = loss_and_gradients(settings)
    expected_loss, expected = loss_and_gradients(tiny_settings(tiny, {}))
    assert loss == expected_loss
    torch.testing.assert_close(gradients, expected, rtol=0, atol=0)


def test_recomputed_activations_in_bfloat16(tiny_model, tiny_settings, unchecked):
    if tiny_model.kind not in STACKED:
        pytest.skip("it has no stack of blocks")
    tiny, train = tiny_model, {"autocast": "bfloat16"}
    loss, gradients = loss_and_gradients(
        tiny_settings(tiny, {**train, "recompute_activations": True})
    )
    expected_loss, expected = loss_and_gradients(tiny_settings(tiny, train))
    assert loss == expected_loss
    torch.testing.assert_close(gradients, expected, rtol=0, atol=0)
