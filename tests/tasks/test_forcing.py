"""The translator's loss when the decoder reads some of its own guesses."""

import math
from typing import Any

import pytest
import torch

from regard.batching.example import Example, collate
from regard.config.decode import GreedyConfig
from regard.models.catalogue import build_model
from regard.tasks.generation import build_decoding
from regard.tasks.translate.task import TranslateTask
from regard.text.train import train_tokenizer


@pytest.fixture
def task(seed: int) -> TranslateTask:
    words = train_tokenizer("characters", ["abcdefgh"], 20)
    sizes = {"source_size": words.size, "target_size": words.size}
    model = build_model("transformer", {**sizes, "dim": 16, "dropout": 0.0})
    return TranslateTask(
        model, words, words, decoding=build_decoding(GreedyConfig(), max_positions=math.inf)
    )


BATCH = collate([Example(n, [4, 5, 6, 7], [8, 9, 10, 11] * 40) for n in range(20)])


def heard(task: TranslateTask, monkeypatch: pytest.MonkeyPatch, forcing: float) -> torch.Tensor:
    """What the decoder was given when the loss was made."""
    given: list[Any] = []
    forced = task.model.teacher_forced

    def listen(memory: Any, target: torch.Tensor) -> torch.Tensor:
        given.append(target)
        return forced(memory, target)

    monkeypatch.setattr(task.model, "teacher_forced", listen)
    monkeypatch.setattr(task, "teacher_forcing_rate", lambda _: forcing)
    task.loss(BATCH, 0)
    return given[-1]


def test_all_true_tokens_without_scheduled_sampling(task, monkeypatch):
    assert heard(task, monkeypatch, 1.0) is BATCH.target_in


@pytest.mark.parametrize("forcing", [0.0, 0.7])
def test_share_of_true_tokens(task, monkeypatch, forcing: float):
    """A model that always says 4, which is never true: what is not 4 was forced."""
    monkeypatch.setattr(
        task.model, "logits", lambda s: torch.eye(20)[4].mul(50).expand(*s.shape[:-1], -1)
    )
    given = heard(task, monkeypatch, forcing)
    assert torch.equal(given[:, 0], BATCH.target_in[:, 0])
    true = given[:, 1:] == BATCH.target_in[:, 1:]
    assert (given[:, 1:][~true] == 4).all()
    spread = (forcing * (1 - forcing) / true.numel()) ** 0.5
    assert true.double().mean().item() == pytest.approx(forcing, abs=5 * spread)


def test_guesses_are_for_the_position_they_stand_in(task, monkeypatch):
    """A model that says at position t the token that it was given at t, one higher."""

    def next_up(memory: Any, target: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.one_hot(target + 1, 40).float().mul(100)

    monkeypatch.setattr(task.model, "teacher_forced", next_up)
    monkeypatch.setattr(task.model, "logits", lambda states: states)
    given = task.scheduled_sampling(None, torch.tensor([[1, 8, 9, 20, 21]]), 0.0)
    assert given.tolist() == [[1, 2, 9, 10, 21]]
