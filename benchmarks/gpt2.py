"""What a training step of GPT-2 costs beside one that is written by hand in plain PyTorch.

    python benchmarks/gpt2.py [--dim 128] [--layers 4] [--heads 4] [--context 64] [--batch 12]

CPU milliseconds on one thread for forward, backward, clipping and AdamW on the same ids, the least
of some rounds that take turns. By hand: one linear layer for query, key and value,
F.scaled_dot_product_attention, F.cross_entropy; with the exact GELU, as nanoGPT has it, and with
the tanh form, which is GPT-2's.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.models.gpt2 import Gpt2
from regard.tasks.loss import cross_entropy


class Layer(nn.Module):
    def __init__(self, dim: int, heads: int, rate: float, form: str):
        super().__init__()
        self.heads, self.rate = heads, rate
        self.before, self.between = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.three, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.feed = nn.Sequential(
            nn.Linear(dim, 4 * dim), nn.GELU(form), nn.Linear(4 * dim, dim), nn.Dropout(rate)
        )

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        three = self.three(self.before(x)).split(d, 2)
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in three)
        rate = self.rate if self.training else 0.0
        read = F.scaled_dot_product_attention(q, k, v, dropout_p=rate, is_causal=True)
        read = self.out(read.transpose(1, 2).reshape(b, t, d))
        x = x + F.dropout(read, self.rate, self.training)
        return x + self.feed(self.between(x))


class ByHand(nn.Module):
    def __init__(self, given: argparse.Namespace, form: str):
        super().__init__()
        self.words = nn.Embedding(given.words, given.dim)
        self.places = nn.Embedding(given.context, given.dim)
        self.drop = nn.Dropout(given.dropout)
        self.layers = nn.Sequential(
            *(Layer(given.dim, given.heads, given.dropout, form) for _ in range(given.layers))
        )
        self.norm = nn.LayerNorm(given.dim)
        for weight in self.parameters():
            if weight.ndim > 1:
                nn.init.normal_(weight, std=0.02)

    def forward(self, ids: Tensor, label: Tensor) -> Tensor:
        x = self.drop(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        logits = F.linear(self.norm(self.layers(x)), self.words.weight)
        return F.cross_entropy(logits.flatten(0, 1), label.flatten())


def ours(model: Gpt2, ids: Tensor, label: Tensor) -> Tensor:
    valid = torch.ones_like(ids, dtype=torch.bool)
    loss = cross_entropy(model.output, model.teacher_forced(None, ids), label, valid)
    return loss.total / loss.count


def step(model: nn.Module, loss: Callable[[], Tensor], optimiser: torch.optim.Optimizer) -> float:
    start = time.process_time()
    optimiser.zero_grad(set_to_none=True)
    loss().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    return 1e3 * (time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    sizes = {"dim": 128, "layers": 4, "heads": 4, "context": 64, "batch": 12, "words": 65}
    for name, default in {**sizes, "rounds": 40}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--dropout", type=float, default=0.0)
    given = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Gpt2(
        *(given.words,),
        dim=given.dim,
        heads=given.heads,
        layers=given.layers,
        max_positions=given.context,
        dropout=given.dropout,
    )
    ids, label = torch.randint(given.words, (2, given.batch, given.context))
    hands = {"by hand": ByHand(given, "none"), "by hand, tanh": ByHand(given, "tanh")}
    calls: dict[str, tuple[nn.Module, Callable[[], Tensor]]] = {
        name: (hand, partial(hand, ids, label)) for name, hand in hands.items()
    }
    calls["regard"] = (model, partial(ours, model, ids, label))
    least = dict.fromkeys(calls, float("inf"))
    optimisers = {
        name: torch.optim.AdamW(one.parameters(), lr=1e-3) for name, (one, _) in calls.items()
    }
    for _ in range(given.rounds):
        for name, (one, loss) in calls.items():
            least[name] = min(least[name], step(one, loss, optimisers[name]))
    for name, value in least.items():
        print(f"{name:16}{value:8.1f} ms  ratio {value / least['by hand']:.3f}")


if __name__ == "__main__":
    main()
