"""What recurrent layers cost: ours beside torch.nn, at the same weights, interleaved in one run.

    python benchmarks/recurrent.py [--rounds 30] [--threads 1]

Prints medians and the median of the ratios within a round; only the ratios travel between machines.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.layers.cells import GRU, LSTM, Cell
from regard.layers.recurrent import Recurrent

SIZES = [(32, 50, 128, 256, 1, False), (64, 25, 256, 512, 1, False), (32, 30, 128, 128, 2, True)]


def compare(title: str, calls: Mapping[str, Callable[[], object]], rounds: int) -> None:
    """The first call is the yardstick; the order turns, so that none always goes first."""
    names = list(calls)
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(-2, rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = time.perf_counter()
            calls[name]()
            if turn >= 0:
                times[name].append(time.perf_counter() - start)
    ratios = {
        name: statistics.median(a / b for a, b in zip(times[name], times[names[0]], strict=True))
        for name in names
    }
    told = "   ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items())
    print(f"{title:54} {1e3 * statistics.median(times[names[0]]):8.2f} ms   {told}", flush=True)


def layers(
    kind: type[Cell],
    peer: Callable[..., nn.RNNBase],
    size: tuple[int, int, int, int, int, bool],
    rounds: int,
) -> None:
    batch, steps, input_dim, hidden_dim, depth, both = size
    theirs = peer(input_dim, hidden_dim, depth, bidirectional=both, batch_first=True)
    ours = Recurrent(kind, input_dim, hidden_dim, depth, both).load_torch_weights(theirs)
    unfused = type("Loop", (kind,), {"kernel": None})
    loop = Recurrent(unfused, input_dim, hidden_dim, depth, both).load_torch_weights(theirs)
    inputs = torch.randn(batch, steps, input_dim)
    lengths = torch.randint(steps // 3, steps + 1, (batch,))
    lengths[0] = steps
    valid = torch.arange(steps) < lengths[:, None]

    def packed() -> Tensor:
        data = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(theirs(data)[0], batch_first=True)[0]

    full: dict[str, Callable[[], Tensor]] = {
        "torch.nn": lambda: theirs(inputs)[0],
        "ours": lambda: ours(inputs)[0],
        "loop": lambda: loop(inputs)[0],
    }
    padded: dict[str, Callable[[], Tensor]] = {
        "torch.nn": packed,
        "ours": lambda: ours(inputs, valid)[0],
        "loop": lambda: loop(inputs, valid)[0],
    }
    for what, calls in (("full", full), ("padded", padded)):
        title = f"{kind.__name__} {size} {what}"
        with torch.no_grad():
            compare(f"{title} forward", calls, rounds)
        trained = {n: lambda c=call: c().sum().backward() for n, call in calls.items()}
        compare(f"{title} training", trained, rounds)


def step(batch: int, dim: int, rounds: int) -> None:
    cell, layer = nn.LSTMCell(dim, dim), Recurrent(LSTM, dim, dim)
    x, state = torch.randn(batch, dim), layer.initial_state(batch)
    pair = (state[0][0], state[1][0])
    calls = {"torch.nn": lambda: cell(x, pair), "ours": lambda: layer.step(x, state)}
    with torch.no_grad():
        compare(f"LSTM step, batch {batch}, dim {dim}", calls, rounds)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--rounds", type=int, default=30)
    words.add_argument("--threads", type=int, default=1)
    given = words.parse_args()
    torch.set_num_threads(given.threads)
    for size in SIZES:
        layers(LSTM, nn.LSTM, size, given.rounds)
        layers(GRU, nn.GRU, size, given.rounds)
    for batch, dim in ((1, 64), (32, 256)):
        step(batch, dim, 10 * given.rounds)


if __name__ == "__main__":
    main()
