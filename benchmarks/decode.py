"""What search costs beside the model it searches, and whether a batch changes its outputs.

    python benchmarks/decode.py [--models transformer rnnsearch] [--size 10000] [--batches 1 64]

First table: CPU milliseconds a step on one thread, of the model alone (as many rows, the same
moves of its state) and of the whole search. Second: outputs of 256 inputs in float32 that differ
between batches of 64, 7 and 1 and shuffled order; weights are random, so near ties are common.
"""

import argparse
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from regard.decoding.beam import beam_search
from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.decoding.sampling import SamplingOptions, sample
from regard.models.catalogue import build_model

LENGTH = 24
Search = Callable[[Any, Sequence[int]], list[list[Any]]]  # (memory, seeds) -> n-best outputs


def made(kind: str, size: int) -> Any:
    """A model of random weights, wide enough that some words are likelier than others."""
    torch.manual_seed(0)
    model = build_model(kind, {"source_size": size, "target_size": size, "dim": 256}).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.copy_(torch.randn_like(weight) * 1.5 * weight.std().clamp(min=0.02))
    return model


def read(model: Any, sources: Sequence[Tensor]) -> Any:
    source = torch.nn.utils.rnn.pad_sequence(list(sources), batch_first=True)
    lengths = torch.tensor([len(one) for one in sources])
    with torch.inference_mode():
        return model.remember(source, torch.arange(source.shape[1]) < lengths[:, None])


def cpu_time(call: Callable[[], object], rounds: int = 5) -> float:
    """The least of some rounds, in milliseconds."""
    times = []
    for _ in range(rounds + 1):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1e3 * min(times[1:])


@torch.inference_mode()
def alone(model: Any, memory: Any, count: int, width: int) -> None:
    """The model's part of a search: its steps, and its state moved about."""
    state, tokens = model.start(memory), torch.ones(count, dtype=torch.long)
    for position in range(LENGTH + 1):
        _, state = model.step(state, tokens)
        if width > 1 or position == 0:
            rows = torch.arange(len(tokens))
            if position == 0:
                rows = rows.repeat_interleave(width)
            state, tokens = model.select(state, rows), torch.ones(len(rows), dtype=torch.long)


def searches_of(model: Any, rules: Constraints) -> dict[str, tuple[int, Search]]:
    """Each by name, with the rows that it needs for an input."""
    return {
        "greedy": (1, lambda memory, seeds: greedy_search(model, memory, len(seeds), rules)),
        "top_k 50": (
            1,
            lambda memory, seeds: sample(
                model, memory, seeds, SamplingOptions(top_k=50), constraints=rules
            ),
        ),
        "top_p 0.9": (
            1,
            lambda memory, seeds: sample(
                model, memory, seeds, SamplingOptions(top_p=0.9), constraints=rules
            ),
        ),
        "beam 5": (
            5,
            lambda memory, seeds: beam_search(model, memory, len(seeds), 5, constraints=rules),
        ),
    }


def costs(kind: str, size: int, batches: Sequence[int]) -> None:
    model, rules = made(kind, size), Constraints(max_length=LENGTH, min_length=LENGTH)
    for count in batches:
        memory = read(model, [torch.randint(4, size, (20,)) for _ in range(count)])
        for name, (width, search) in searches_of(model, rules).items():
            base = cpu_time(partial(alone, model, memory, count, width)) / (LENGTH + 1)
            whole = cpu_time(partial(search, memory, range(count))) / (LENGTH + 1)
            more = f"{100 * (whole / base - 1):.0f} %"
            print(f"{kind:14} {count * width:5} {name:10} {base:8.2f} {whole:8.2f} {more:>7}")


def differences(kind: str, size: int, inputs: int = 256) -> None:
    model = made(kind, size)
    sources = [torch.randint(4, size, (3 + n % 15,)) for n in range(inputs)]
    order = random.Random(0).sample(range(inputs), inputs)
    for name, (_, search) in searches_of(model, Constraints(max_length=LENGTH)).items():

        def run(some: list[int], search: Search = search) -> list[list[Any]]:
            return search(read(model, [sources[n] for n in some]), some)

        ways = [in_batches(run, list(range(inputs)), size) for size in (64, 7, 1)]
        ways.append(in_batches(run, order, 64))
        differ = sum(len({tuple(way[n]) for way in ways}) > 1 for n in range(inputs))
        print(f"{kind:14} {name:10} {inputs:8} {differ:7}")


def in_batches(
    search: Callable[[list[int]], list[list[Any]]], order: list[int], size: int
) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for at in range(0, len(order), size):
        some = order[at : at + size]
        found |= {n: one[0].ids for n, one in zip(some, search(some), strict=True)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["transformer", "rnnsearch"])
    parser.add_argument("--size", type=int, default=10_000, help="words in the vocabulary")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 64])
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'':14} {'rows':>5} {'':10} {'model':>8} {'search':>8} {'more':>7}")
    for kind in given.models:
        costs(kind, given.size, given.batches)
    print(f"\n{'':14} {'':10} {'outputs':>8} {'differ':>7}")
    for kind in given.models:
        differences(kind, given.size)


if __name__ == "__main__":
    main()
