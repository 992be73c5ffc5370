"""What attention costs: ours beside torch's own calls, interleaved in one run.

    python benchmarks/attention.py [--rounds 200]

Prints medians and the median of the ratios within a round; only the ratios travel between machines.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.additive import tanh_energy
from regard.attention.core import Attention
from regard.attention.masks import causal
from regard.attention.memory import Memory
from regard.attention.multihead import MultiHead
from regard.attention.observe import observe
from regard.attention.scores import ScaledDot


def compare(title: str, calls: dict[str, Callable[[], object]], rounds: int) -> None:
    """The first call is the yardstick; the order turns, so that none always goes first."""
    names = list(calls)
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(-3, rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = time.perf_counter()
            calls[name]()
            if turn >= 0:
                times[name].append(time.perf_counter() - start)
    print(f"\n{title}\n{'':44} {'ms':>9} {'ratio':>7}")
    for name in names:
        ratio = statistics.median(a / b for a, b in zip(times[name], times[names[0]], strict=True))
        print(f"{name:44} {1e3 * statistics.median(times[name]):9.3f} {ratio:7.3f}")


def fused(rounds: int) -> None:
    query, keys, values = torch.randn(3, 1, 8, 512, 64)
    attention = Attention(ScaledDot()).eval()
    memory = attention.remember(keys, None, values)

    def looked() -> Tensor:
        with observe(attention):
            return attention(query, memory)

    for mask in (None, causal):
        calls = {
            "F.scaled_dot_product_attention": lambda mask=mask: F.scaled_dot_product_attention(
                query, keys, values, is_causal=mask is causal
            ),
            "attention": lambda mask=mask: attention(query, memory, mask),
            "attention, remembering anew": lambda mask=mask: attention(
                query, attention.remember(keys, None, values), mask
            ),
        }
        if mask is None:
            calls["attention, observed"] = looked
        compare(f"8 heads, 512 x 512, d 64{', causal' if mask else ''}", calls, rounds)


def heads(rounds: int) -> None:
    ours = MultiHead(Attention(ScaledDot()), 512, 8).eval()
    theirs = nn.MultiheadAttention(512, 8, batch_first=True).eval()
    states = torch.randn(4, 128, 512)
    calls = {
        "nn.MultiheadAttention": lambda: theirs(states, states, states, need_weights=False),
        "nn.MultiheadAttention, weights": lambda: theirs(
            states, states, states, average_attn_weights=False
        ),
        "MultiHead": lambda: ours(states, ours.remember(states)),
    }
    compare("4 x 128 positions, dim 512, 8 heads", calls, rounds)


def cache(rounds: int) -> None:
    piece = Memory(torch.randn(8, 8, 1, 64), torch.randn(8, 8, 1, 64))

    def grow(append: Callable[[Memory, Memory], Memory]) -> None:
        memory = piece
        for _ in range(511):
            memory = append(memory, piece)

    calls = {
        "torch.cat at every step": lambda: grow(Memory.concatenate),
        "append": lambda: grow(Memory.append),
    }
    compare("a cache of 512 steps, batch 8, 8 heads, d 64", calls, max(5, rounds // 20))


def additive(rounds: int) -> None:
    made = [torch.randn(s, requires_grad=True) for s in ((64, 50, 512), (64, 50, 512), (512,))]

    def plain(query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
        return (query[..., :, None, :] + keys[..., None, :, :]).tanh() @ v

    calls = {
        "v . tanh(q + k), plain": lambda: plain(*made).sum().backward(),
        "v . tanh(q + k), in blocks": lambda: tanh_energy(*made).sum().backward(),
    }
    title = "additive, 64 x 50 x 50 pairs, 512 units, forward + backward"
    compare(title, calls, max(5, rounds // 20))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    with torch.no_grad():
        fused(rounds)
        heads(rounds)
        cache(rounds)
    additive(rounds)


if __name__ == "__main__":
    main()
