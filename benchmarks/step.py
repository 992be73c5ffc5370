"""What the two parts of a training step that were made here cost beside torch's own.

    python benchmarks/step.py [--rows 2000] [--words 10000] [--dim 128]

CPU milliseconds on one thread, forward and backward, the least of some rounds that take turns.
"""

import argparse
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.layers.dropout import dropout
from regard.tasks.loss import cross_entropy


def milliseconds(calls: dict[str, Callable[[], Tensor]], rounds: int = 10) -> dict[str, float]:
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            call().backward()
            least[name] = min(least[name], 1e3 * (time.process_time() - start))
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2000, help="predictions in a batch")
    parser.add_argument("--words", type=int, default=10_000, help="size of the vocabulary")
    parser.add_argument("--dim", type=int, default=128)
    given = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layer = nn.Linear(given.dim, given.words)
    states = torch.randn(1, given.rows, given.dim, requires_grad=True)
    labels = torch.randint(1, given.words, (1, given.rows))
    valid = torch.ones(1, given.rows, dtype=torch.bool)

    def theirs() -> Tensor:
        logits, label = layer(states).flatten(0, 1), labels.flatten()
        return F.cross_entropy(logits, label, reduction="sum", label_smoothing=0.1)

    tables = {
        "loss with smoothed labels": {
            "torch": theirs,
            "regard": lambda: cross_entropy(layer, states, labels, valid, smoothing=0.1).total,
        },
        "dropout": {
            "torch": lambda: F.dropout(states, 0.3).sum(),
            "regard": lambda: dropout(states, 0.3).sum(),
        },
    }
    for what, calls in tables.items():
        found = milliseconds(calls)
        ratio = found["regard"] / found["torch"]
        times = "  ".join(f"{name} {value:8.2f} ms" for name, value in found.items())
        print(f"{what:28}{times}  ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
