"""What recurrent models remember: small tasks whose best answer is known.

    python benchmarks/recurrent_tasks.py [--tasks xor adding reber recall] [--seed 1]

- xor      a stream a, b, a xor b, ... of coins (Elman 1990): best (2/3) ln 2 = 0.4621 nats a bit,
           without a memory ln 2 = 0.6931.
- adding   60 numbers, two are marked, say their sum (Hochreiter & Schmidhuber 1997): squared
           error, 1/6 without looking.
- reber    words of the embedded Reber grammar: share of words in which the letter before the last
           is known to be the second one's again; 0.5 without a memory.
- recall   k tagged values in a row, then tags alone: say the value of each (1 of 8). LSTM and LSTMN
           with 16 units; for the LSTMN also how often its greatest weight is on the right place.

Prints one row for each: the figure, what it is at best and without a memory, CPU seconds on one
thread.
"""

import argparse
import math
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.layers.cells import GRU, LSTM, Elman
from regard.layers.recurrent import Recurrent
from regard.layers.tape_lstm import TapeLSTM
from regard.models.rnnlm import Rnnlm

VALUES, UNITS = 8, 16  # of recall
# Reber 1967: from each state, letter -> next state; 6 is the end
REBER = [
    {"T": 1, "P": 2},
    {"S": 1, "X": 3},
    {"T": 2, "V": 4},
    {"X": 2, "S": 5},
    {"P": 3, "V": 5},
    {"E": 6},
]
LETTERS = "BTPSXVE"


class Row(NamedTuple):
    task: str
    model: str
    figure: float
    best: float
    blind: float  # what who remembers nothing gets
    beside: str = ""


def train(
    parameters: list[Tensor], loss: Callable[[], Tensor], steps: int, rate: float, clip: float = 1.0
) -> None:
    optimiser = torch.optim.Adam(parameters, lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps + 1)
    for _ in range(steps):
        optimiser.zero_grad()
        loss().backward()
        nn.utils.clip_grad_norm_(parameters, clip)
        optimiser.step()
        schedule.step()


def xor(cell: str) -> Row:
    """State carried from window to window, as in a stream: the phase is known from the past."""
    model, rows = Rnnlm(2, cell=cell, dim=16, hidden_dim=32), 64

    def bits(triples: int) -> Tensor:
        coins = torch.randint(2, (rows, triples, 2))
        return torch.cat([coins, coins.sum(-1, keepdim=True) % 2], -1).flatten(1)

    state, last = model.begin(rows), torch.zeros(rows, 1, dtype=torch.long)

    def nats(triples: int) -> Tensor:
        nonlocal state, last
        target = bits(triples)
        states, after = model.read(model.detach(state), torch.cat([last, target[:, :-1]], 1))
        state, last = after, target[:, -1:]
        return F.cross_entropy(model.logits(states).flatten(0, 1), target.flatten())

    train(list(model.parameters()), lambda: nats(8), 600, 1e-2)
    with torch.no_grad():
        found = nats(400).item()
    return Row("xor", cell, found, 2 / 3 * math.log(2), math.log(2))


def adding(cell: str, length: int = 60) -> Row:
    made = {"lstm": LSTM, "gru": GRU, "elman": Elman}[cell]
    layer, out = Recurrent(made, 2, 32), nn.Linear(32, 1)

    def error(rows: int) -> Tensor:
        numbers = torch.rand(rows, length)
        half = length // 2
        places = torch.stack([torch.randint(half, (rows,)), torch.randint(half, length, (rows,))])
        marks = torch.zeros(rows, length).scatter(1, places.t(), 1.0)
        states, _ = layer(torch.stack([numbers, marks], -1))
        return F.mse_loss(out(states[:, -1])[:, 0], (numbers * marks).sum(1))

    train([*layer.parameters(), *out.parameters()], lambda: error(64), 1500, 1e-2)
    with torch.no_grad():
        return Row("adding", cell, error(5000).item(), 0.0, 1 / 6)


def reber_word() -> list[int]:
    """B, T or P, a word of the grammar between its own B and E, the same T or P again, E."""
    outer, state, word = "TP"[int(torch.randint(2, ()))], 0, ["B"]
    while state != 6:
        letters = list(REBER[state])
        letter = letters[int(torch.randint(len(letters), ()))]
        word.append(letter)
        state = REBER[state][letter]
    return [LETTERS.index(letter) for letter in ["B", outer, *word, outer, "E"]]


def reber(cell: str) -> Row:
    model = Rnnlm(len(LETTERS) + 1, cell=cell, dim=8, hidden_dim=16)

    def batch(rows: int) -> tuple[Tensor, Tensor]:
        words = [reber_word() for _ in range(rows)]
        longest = max(len(word) for word in words)
        padded = [word + [len(LETTERS)] * (longest - len(word)) for word in words]
        return torch.tensor(padded), torch.tensor([len(word) for word in words])

    def loss() -> Tensor:
        ids, lengths = batch(32)
        given, target = ids[:, :-1], ids[:, 1:]
        valid = torch.arange(target.shape[1]) < lengths[:, None] - 1
        return F.cross_entropy(
            model.logits(model.teacher_forced(None, given)[valid]), target[valid]
        )

    train(list(model.parameters()), loss, 1500, 1e-2)
    ids, lengths = batch(1000)
    with torch.no_grad():
        told = model.logits(model.teacher_forced(None, ids))
    rows, T, P = torch.arange(len(ids)), LETTERS.index("T"), LETTERS.index("P")
    said = told[rows, lengths - 3][:, [T, P]].argmax(-1)
    right = torch.tensor([T, P])[said] == ids[:, 1]
    return Row("reber", cell, right.float().mean().item(), 1.0, 0.5)


def tagged(rows: int, items: int, tags: int) -> tuple[Tensor, Tensor, Tensor]:
    """Vectors to read, the values asked for, and the places where they stand.

    First the items, each a tag of its own and a value; then half of those tags alone.
    """
    tag = torch.rand(rows, tags).argsort(1)[:, :items]
    values = torch.randint(VALUES, (rows, items))
    place = torch.rand(rows, items).argsort(1)[:, : items // 2]
    shown = torch.cat([F.one_hot(tag, tags), F.one_hot(values, VALUES)], -1)
    asked = F.pad(F.one_hot(tag.gather(1, place), tags), (0, VALUES))
    return torch.cat([shown, asked], 1).float(), values.gather(1, place), place


def recall(kind: str, count: int) -> Row:
    """Trained on 2 to `count` items at a time, tried on `count`; both about as long in CPU time."""
    steps = 800 if kind == "lstmn" else 8000
    layer = (
        TapeLSTM(count + VALUES, UNITS, 2 * UNITS)
        if kind == "lstmn"
        else Recurrent(LSTM, count + VALUES, UNITS)
    )
    out = nn.Linear(UNITS, VALUES)

    def told(inputs: Tensor, asked: int) -> Tensor:
        begin = layer.initial_tape(len(inputs)) if isinstance(layer, TapeLSTM) else None
        return out(layer(inputs, begin)[0][:, -asked:])

    def loss() -> Tensor:
        inputs, values, _ = tagged(32, int(torch.randint(2, count + 1, ())), count)
        return F.cross_entropy(told(inputs, values.shape[1]).flatten(0, 1), values.flatten())

    train([*layer.parameters(), *out.parameters()], loss, steps, 2e-2)
    inputs, values, place = tagged(500, count, count)
    asked, beside = values.shape[1], ""
    with torch.no_grad():
        right = (told(inputs, asked).argmax(-1) == values).float().mean().item()
        if kind == "lstmn":
            with observe(layer) as seen:
                told(inputs, asked)
            weights = seen.joined()["attention"][:, -asked:]
            peak = (weights.argmax(-1) == place).float().mean().item()
            mean = weights.gather(2, place[..., None]).mean().item()
            beside = f"greatest weight there {peak:.3f}, mean weight there {mean:.3f}"
    return Row(f"recall {count}", kind, right, 1.0, 1 / VALUES, beside)


TASKS: dict[str, list[Callable[[], Row]]] = {
    "xor": [lambda c=cell: xor(c) for cell in ("elman", "gru", "lstm")],
    "adding": [lambda c=cell: adding(c) for cell in ("elman", "gru", "lstm")],
    "reber": [lambda c=cell: reber(c) for cell in ("elman", "gru", "lstm")],
    "recall": [lambda k=k, c=c: recall(k, c) for c in (8, 24) for k in ("lstm", "lstmn")],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'task':10} {'model':6} {'figure':>8} {'best':>7} {'blind':>7} {'CPU s':>6}")
    for task in given.tasks:
        for run in TASKS[task]:
            torch.manual_seed(given.seed)
            start = time.process_time()
            row = run()
            seconds = time.process_time() - start
            print(
                f"{row.task:10} {row.model:6} {row.figure:8.4f} {row.best:7.4f} {row.blind:7.4f} "
                f"{seconds:6.0f}  {row.beside}".rstrip(),
                flush=True,
            )


if __name__ == "__main__":
    main()
