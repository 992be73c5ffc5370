"""Two causal blocks learn to copy from their past, and cannot learn what is not there."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.masks import Mask, causal
from regard.attention.observe import observe
from regard.layers.embedding import Embedding
from regard.layers.positions import RotaryPositions
from regard.layers.transformer_block import TransformerBlock, TransformerStack

VOCABULARY, HALF = 16, 10


class Reader(nn.Module):
    """The smallest language model: tied embeddings around two pre-norm blocks."""

    def __init__(self, dim: int = 64, heads: int = 4):
        super().__init__()
        rotary = RotaryPositions()
        self.embed = Embedding(VOCABULARY, dim, scaled=True)
        self.stack = TransformerStack(
            TransformerBlock(dim, heads, 2 * dim, norm="pre", rotary=rotary) for _ in range(2)
        )

    def forward(self, ids: Tensor, mask: Mask | None) -> Tensor:
        states, _ = self.stack(self.embed(ids), mask=mask)
        return self.embed.logits(states)


def uniform() -> Tensor:
    return torch.randint(VOCABULARY, (32, 2 * HALF))


def repeated() -> Tensor:
    """Random ids, and the same again: the second half can be known, the first cannot."""
    ids = torch.randint(VOCABULARY, (32, HALF))
    return torch.cat([ids, ids], 1)


def losses(
    model: Reader, steps: int, draw: Callable[[], Tensor], mask: Mask | None, first: int = 0
) -> list[float]:
    """Train on fresh ids in every step; nats for each id that follows position `first` or later."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = []
    for _ in range(steps):
        ids = draw()
        logits = model(ids[:, :-1], mask)[:, first:]
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, first + 1 :].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return history


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def test_two_blocks_learn_to_copy_and_look_where_the_answer_is(seed: int, unchecked: None):
    model = Reader()
    history = losses(model, 250, repeated, causal, first=HALF - 1)
    assert mean(history[-20:]) < 0.2, f"seed {seed}"
    with observe(model) as seen, torch.no_grad():
        model(repeated()[:, :-1], causal)
    # The query at t must say the id at t + 1, which is the one at t + 1 - HALF.
    queries = torch.arange(HALF - 1, 2 * HALF - 1)
    looked = [
        w[..., queries, queries + 1 - HALF].mean((0, 2)).max().item() for (w,) in seen.values()
    ]
    assert max(looked) > 0.4, f"seed {seed}"


def test_nothing_leaks_from_the_future(seed: int, unchecked: None):
    """No model can do better than ln V on ids that are drawn at random."""
    history = losses(Reader(), 80, uniform, causal)
    assert mean(history[-20:]) > math.log(VOCABULARY) - 0.005, f"seed {seed}"
    assert mean(history[-20:]) < math.log(VOCABULARY) + 0.3, f"seed {seed}"


def test_a_leak_would_be_found(seed: int, unchecked: None):
    history = losses(Reader(), 160, uniform, None)
    assert mean(history[-20:]) < math.log(VOCABULARY) - 0.1, f"seed {seed}"
