"""Temporal XOR (Elman 1990): every third bit is known to who remembers the two before it.

A stream a, b, a xor b, a', b', ... of fair coins costs ln 2 nats a bit without a memory. With one,
and knowing which bit is a third, the thirds cost nothing.
"""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.layers.cells import GRU, LSTM, Elman
from regard.layers.recurrent import Recurrent

TRIPLES, HIDDEN = 6, 24


def streams(count: int) -> Tensor:
    coins = torch.randint(2, (count, TRIPLES, 2))
    return torch.cat([coins, coins.sum(-1, keepdim=True) % 2], -1).flatten(1).float()


class Listener(nn.Module):
    """Reads bits, says the next; a forgetful one starts anew at every bit."""

    def __init__(self, layer: Recurrent, forgetful: bool = False):
        super().__init__()
        self.layer, self.forgetful = layer, forgetful
        self.out = nn.Linear(layer.output_dim, 1)

    def losses(self, bits: Tensor) -> Tensor:
        """Nats of every bit but the first."""
        heard = 2 * bits[:, :-1, None] - 1
        if self.forgetful:
            states, _ = self.layer(heard.flatten(0, 1)[:, None])
            states = states.view(*heard.shape[:2], -1)
        else:
            states, _ = self.layer(heard)
        logits = self.out(states).squeeze(-1)
        return F.binary_cross_entropy_with_logits(logits, bits[:, 1:], reduction="none")


def trained(listener: Listener, steps: int) -> Tensor:
    """The mean loss at each place, on streams not trained on."""
    optimizer = torch.optim.Adam(listener.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        listener.losses(streams(64)).mean().backward()
        nn.utils.clip_grad_norm_(listener.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        return listener.losses(streams(1000)).mean(0)


@pytest.mark.parametrize(
    ("cell", "steps"),
    [
        pytest.param(Elman, 300, id="elman"),
        pytest.param(LSTM, 150, id="lstm"),
        pytest.param(partial(LSTM, layer_norm=True), 100, id="lstm norm"),
        pytest.param(partial(GRU, reset="before"), 100, id="gru before"),
    ],
)
def test_a_memory_knows_every_third_bit(cell, steps):
    loss = trained(Listener(Recurrent(cell, 1, HIDDEN)), steps)
    thirds = torch.arange(1, 3 * TRIPLES) % 3 == 2
    assert loss[thirds].mean() < 0.1
    assert loss[~thirds].mean() == pytest.approx(math.log(2), abs=0.06)


def test_without_a_memory_nothing_is_known():
    loss = trained(Listener(Recurrent(LSTM, 1, HIDDEN), forgetful=True), 50)
    assert loss.mean() > math.log(2) - 0.01
