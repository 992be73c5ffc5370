"""Time of one more token against the length of the output, with the cache and without.

    python benchmarks/output_length.py [--picture docs/pictures/output-length.png]

One output of 4,096 tokens by a gpt2 and by the decoder of a transformer (a source of 32 tokens), of
width 256 with 4 layers. A token's time is the CPU time of one thread: the median of the 32 steps
before a length, and of these the least of some rounds. Without the cache, the model reads the whole
output anew for each token.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from regard.models.gpt2 import Gpt2
from regard.models.transformer import Transformer

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
VOCABULARY, SOURCE_LENGTH, WINDOW = 10_000, 32, 32
SIZES: Any = {"dim": 256, "heads": 4, "layers": 4}


def memory_of(model: Gpt2 | Transformer) -> Any:
    if isinstance(model, Gpt2):
        return model.begin(1)
    source = torch.randint(4, VOCABULARY, (1, SOURCE_LENGTH))
    return model.remember(source, torch.ones_like(source, dtype=torch.bool))


def cpu_time(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


@torch.inference_mode()
def cached_times(model: Any) -> list[float]:
    """Return the seconds of a token at each length, when each step reads one token."""
    state, tokens, seconds = model.start(memory_of(model)), torch.tensor([1]), list[float]()
    for _ in range(LENGTHS[-1]):
        start = time.process_time()
        log_probs, state = model.step(state, tokens)
        tokens = log_probs.argmax(-1)
        seconds.append(time.process_time() - start)
    return [statistics.median(seconds[length - WINDOW : length]) for length in LENGTHS]


@torch.inference_mode()
def uncached_times(model: Any) -> list[float]:
    """Return the seconds of a token at each length, when each step reads all tokens."""
    ids = torch.randint(4, VOCABULARY, (1, LENGTHS[-1]))
    memory = memory_of(model)
    return [
        cpu_time(
            lambda length=length: model.logits(model.teacher_forced(memory, ids[:, :length])[:, -1])
        )
        for length in LENGTHS
    ]


def draw(table: dict[str, list[float]], path: str) -> None:
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4))
    for name, row in table.items():
        style = "--" if "without" in name else "-"
        axis.plot(LENGTHS, [1e3 * seconds for seconds in row], style, marker="o", label=name)
    axis.set(xscale="log", yscale="log", xticks=LENGTHS, xticklabels=LENGTHS)
    axis.set(xlabel="tokens of the output", ylabel="CPU ms for one more token")
    axis.minorticks_off()
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--picture")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    models = {
        "gpt2": Gpt2(VOCABULARY, max_positions=LENGTHS[-1], **SIZES),
        "transformer": Transformer(VOCABULARY, VOCABULARY, tie_embeddings="all", **SIZES),
    }
    table: dict[str, list[float]] = {}
    for name, model in models.items():
        model.eval()
        for label, measure in ((name, cached_times), (f"{name} without cache", uncached_times)):
            rounds = [measure(model) for _ in range(given.rounds)]
            table[label] = [min(column) for column in zip(*rounds, strict=True)]
            cells = (f"{1e3 * seconds:.2f}" for seconds in table[label])
            print("| " + " | ".join([label, *cells]) + " |", flush=True)
    if given.picture:
        draw(table, given.picture)


if __name__ == "__main__":
    main()
