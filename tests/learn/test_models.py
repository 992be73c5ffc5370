"""Every translation model learns to write short words backwards.

With init="scaled": the starts of the papers are for layers of 1000 units, and at 32 units they take
many times as long to get anywhere.
"""

import time
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.models.catalogue import build_model

START, END, SYMBOLS, LONGEST = 1, 2, 5, 5
SIZE = 4 + SYMBOLS


def words(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Words of 2 to 5 letters with their end token, which of it is real, and the same backwards."""
    length = torch.randint(2, LONGEST + 1, (count, 1))
    place = torch.arange(LONGEST + 1)
    letters = torch.randint(4, SIZE, (count, LONGEST + 1))
    source = torch.where(place < length, letters, torch.where(place == length, END, 0))
    turned = source.gather(1, (length - 1 - place).clamp(min=0))
    return source, place <= length, torch.where(place < length, turned, source)


def train(model: Any, steps: int, rate: float) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps + 1)
    for _ in range(steps):
        source, valid, target = words(64)
        given = F.pad(target[:, :-1], (1, 0), value=START)
        states = model.teacher_forced(model.remember(source, valid), given)
        loss = F.cross_entropy(model.logits(states[valid]), target[valid])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


@torch.no_grad()
def written(model: Any, source: Tensor, valid: Tensor) -> Tensor:
    """The best next letter, again and again."""
    state = model.start(model.remember(source, valid))
    tokens, said = torch.full((len(source),), START), []
    for _ in range(source.shape[1]):
        scores, state = model.step(state, tokens)
        tokens = scores.argmax(-1)
        said.append(tokens)
    return torch.stack(said, 1)


@pytest.mark.parametrize(
    ("kind", "settings", "steps", "rate", "share"),
    [
        pytest.param("encdec", {"init": "scaled"}, 300, 1e-2, 0.8, id="encdec"),
        pytest.param("seq2seq", {"layers": 1, "init": "scaled"}, 300, 1e-2, 0.8, id="seq2seq"),
        pytest.param("rnnsearch", {"init": "scaled"}, 130, 1e-2, 0.95, id="rnnsearch"),
        pytest.param("luong", {"layers": 1, "init": "scaled"}, 150, 1e-2, 0.95, id="luong"),
        pytest.param(
            *("transformer", {"layers": 2, "heads": 4, "dropout": 0.0}, 220, 4e-3, 0.95),
            id="transformer",
        ),
        pytest.param("rnmt", {"layers": 1, "decoder_layers": 2}, 170, 1e-2, 0.95, id="rnmt"),
    ],
)
def test_it_writes_words_backwards(kind, settings, steps, rate, share, seed, unchecked):
    model: Any = build_model(
        kind, {"source_size": SIZE, "target_size": SIZE, "dim": 32, **settings}
    )
    start = time.process_time()
    train(model.train(), steps, rate)
    seconds = time.process_time() - start
    source, valid, target = words(500)
    right = ((written(model.eval(), source, valid) == target) | ~valid).all(1).float().mean().item()
    print(f"{kind}: {right:.3f} after {seconds:.1f} s, seed {seed}")
    assert right > share, f"seed {seed}"
