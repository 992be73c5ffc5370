"""Memory and time of training by the length of inputs, and of a loss with a large vocabulary.

    python benchmarks/long_inputs.py [--models gpt2 bert] [--picture length.png]

A step has 4,096 tokens, in rows of 64 to 4,096. Memory is the most bytes of tensors at once beside
weights, gradients and optimizer. The time is that of one thread's CPU, the least of some steps.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.models.bert import Bert
from regard.models.gpt2 import Gpt2
from regard.tasks.loss import cross_entropy
from regard.training.build import recompute_activations
from regard.training.live_tensors import LiveTensors

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
TOKENS, VOCABULARY, LARGE_VOCABULARY, STEPS = 4096, 1000, 250_000, 2
SIZES = {"dim": 64, "heads": 4, "layers": 4, "max_positions": LENGTHS[-1], "dropout": 0.1}


def gpt2_loss(model: Gpt2, ids: Tensor) -> Tensor:
    valid = torch.ones_like(ids, dtype=torch.bool)
    return cross_entropy(model.output, model.teacher_forced(None, ids), ids, valid).total


def bert_loss(model: Bert, ids: Tensor) -> Tensor:
    valid = torch.arange(ids.shape[1]).expand_as(ids) < ids.shape[1] - 3
    return model.encode(ids, valid).states.square().sum()


def step_cost(model: nn.Module, loss: Callable[[], Tensor]) -> tuple[float, float]:
    """Return the peak of the activations in bytes, and the CPU seconds."""
    with LiveTensors(model.parameters()) as live:
        loss().backward()
    model.zero_grad()
    least = float("inf")
    for _ in range(STEPS):
        start = time.process_time()
        loss().backward()
        least = min(least, time.process_time() - start)
        model.zero_grad()
    return live.activation_peak, least


def length_table(models: list[str]) -> dict[str, list[tuple[float, float]]]:
    """Return KB and microseconds of a token by model, for each length."""
    table: dict[str, list[tuple[float, float]]] = {}
    for name, build, loss in (("gpt2", Gpt2, gpt2_loss), ("bert", Bert, bert_loss)):
        for recomputes in (False, True) if name in models else ():
            torch.manual_seed(0)
            model = build(VOCABULARY, **SIZES).train()
            if recomputes:
                recompute_activations(model)
            row = table[name + (", recomputed" if recomputes else "")] = []
            for length in LENGTHS:
                ids = torch.randint(5, VOCABULARY, (TOKENS // length, length))
                memory, seconds = step_cost(model, partial(loss, model, ids))
                row.append((memory / TOKENS / 1e3, seconds / TOKENS * 1e6))
                print(
                    f"{name:6}{recomputes!s:7}{length:6}{row[-1][0]:10.2f} KB{row[-1][1]:10.1f} us",
                    flush=True,
                )
    return table


def vocabulary_lines(rows: int = 256) -> None:
    """Print the memory of a loss over a large vocabulary, ours and with all logits."""
    layer = nn.Linear(SIZES["dim"], LARGE_VOCABULARY, bias=False)
    states = torch.randn(1, rows, SIZES["dim"], requires_grad=True)
    labels = torch.randint(1, LARGE_VOCABULARY, (1, rows))
    valid = torch.ones(1, rows, dtype=torch.bool)
    losses = {
        "regard": lambda: cross_entropy(layer, states, labels, valid).total,
        "all logits": lambda: F.cross_entropy(layer(states)[0], labels[0], reduction="sum"),
    }
    for name, loss in losses.items():
        memory, seconds = step_cost(layer, loss)
        figures = f"{memory / 1e6:.0f} MB, {seconds:.2f} s"
        print(f"vocabulary {LARGE_VOCABULARY:,}, {rows} tokens, {name}: {figures}")


def draw(table: dict[str, list[tuple[float, float]]], path: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    for axis, index, title in ((axes[0], 0, "KB a token"), (axes[1], 1, "CPU µs a token")):
        for name, row in table.items():
            style = "--" if "recomputed" in name else "-"
            axis.plot(LENGTHS, [cell[index] for cell in row], style, marker="o", label=name)
        axis.set(xscale="log", xticks=LENGTHS, xticklabels=LENGTHS, xlabel="tokens of a row")
        axis.set(title=title, ylim=(0, None))
        axis.minorticks_off()
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--picture")
    parser.add_argument("--models", nargs="*", default=["gpt2", "bert"])
    given = parser.parse_args()
    torch.set_num_threads(1)
    table = length_table(given.models)
    for name, row in table.items():
        print("| " + " | ".join([name, *(f"{kb:.1f} / {us:.0f}" for kb, us in row)]) + " |")
    vocabulary_lines()
    if given.picture:
        draw(table, given.picture)


if __name__ == "__main__":
    main()
