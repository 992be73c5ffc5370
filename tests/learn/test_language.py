"""What recurrent language models learn where the truth is known.

Tasks that take longer are in benchmarks/recurrent_tasks.py.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.models.rnnlm import Rnnlm


def train(model: nn.Module, loss, steps: int, rate: float) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps + 1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def test_a_carried_state_knows_every_third_bit(unchecked):
    """Temporal XOR (Elman 1990) in windows of 8 bits, which begin at any phase of a triple."""
    model, rows = Rnnlm(2, cell="gru", dim=8, hidden_dim=24), 64
    coins = torch.randint(2, (rows, 800, 2))
    stream = torch.cat([coins, coins.sum(-1, keepdim=True) % 2], -1).flatten(1)
    state, place = model.begin(rows), 0

    def nats(length: int) -> Tensor:
        nonlocal state, place
        here = stream[:, place : place + length + 1]
        states, state = model.read(model.detach(state), here[:, :-1])
        place += length
        logits = model.logits(states).flatten(0, 1)
        return F.cross_entropy(logits, here[:, 1:].flatten(), reduction="none").view(rows, -1)

    train(model, lambda: nats(8).mean(), 220, 1e-2)
    with torch.no_grad():
        thirds = torch.arange(place + 1, place + 601) % 3 == 2
        loss = nats(600)
    assert loss[:, thirds].mean() < 0.1
    assert loss[:, ~thirds].mean() == pytest.approx(math.log(2), abs=0.06)
