"""`regard demo`: a self-attention layer learns to reverse words, and shows where it looked."""

from collections.abc import Iterator
from string import ascii_lowercase
from typing import Annotated, NamedTuple

import torch
import torch.nn.functional as F
import typer
from jaxtyping import Bool, Float, Int
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn

from regard.attend.attention import Attention
from regard.attend.heads import MultiHead
from regard.attend.score import ScaledDot
from regard.attend.tap import observe
from regard.view.terminal import Surface, heat, scale

WORD = "attention"  # its letters repeat, so that only their places tell where to look
SHORTEST, LONGEST, BATCH, UNSEEN = 3, 20, 64, 1000


class Words(NamedTuple):
    """Words as ids, filled up to the longest, and which letters are real."""

    ids: Int[Tensor, "b t"]
    valid: Bool[Tensor, "b t"]

    @classmethod
    def random(cls, count: int, draw: torch.Generator) -> "Words":
        lengths = torch.randint(SHORTEST, LONGEST + 1, (count, 1), generator=draw)
        ids = torch.randint(len(ascii_lowercase), (count, LONGEST), generator=draw)
        return cls(ids, torch.arange(LONGEST) < lengths)

    def from_end(self) -> Int[Tensor, "b t"]:
        """For each letter its place from the end, which is where its mirror image starts from."""
        return (self.valid.sum(-1, keepdim=True) - 1 - torch.arange(self.ids.shape[-1])).clamp(0)

    def backwards(self) -> Int[Tensor, "b t"]:
        return self.ids.gather(-1, self.from_end())


class Reverser(nn.Module):
    """One self-attention layer over letters and their places; it must write the word backwards."""

    def __init__(self, dim: int = 64):
        super().__init__()
        self.letter = nn.Embedding(len(ascii_lowercase), dim)
        self.from_start = nn.Embedding(LONGEST, dim)
        self.from_end = nn.Embedding(LONGEST, dim)
        self.look = MultiHead(Attention(ScaledDot()), dim=dim, heads=1)
        self.write = nn.Linear(dim, len(ascii_lowercase))

    def forward(self, words: Words) -> Float[Tensor, "b t letters"]:
        places = self.from_start.weight[: words.ids.shape[-1]] + self.from_end(words.from_end())
        states = self.letter(words.ids) + places
        return self.write(self.look(states, self.look.remember(states, words.valid)))


def demo(
    steps: Annotated[int, typer.Option(min=1, help="Optimiser steps.")] = 800,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same run.")] = 1,
) -> None:
    """Train a self-attention layer to write words backwards, then show where it looked.

    Takes about ten seconds. Ctrl-C ends the training and shows what was learnt so far.
    """
    torch.set_num_threads(1)  # a layer this small gains nothing from more, and may lose tenfold
    torch.manual_seed(seed)
    draw = torch.Generator().manual_seed(seed)
    model = Reverser()
    done = _follow(training(model, steps, draw), steps)
    if done < steps:
        print(f"Stopped after {done} of {steps} steps. This is what was learnt so far:")
    letters, words = accuracy(model, draw)
    print(f"On {UNSEEN} new words: {letters:.1%} of letters right, {words:.1%} of whole words.\n")
    print(picture(model, WORD, Surface.of(Console())))
    print(
        "\nTry next:\n"
        "  regard list      what attention is made of\n"
        "  regard probe     how far gradients reach back in recurrent networks\n"
        "  regard --help    all commands"
    )


def training(model: Reverser, steps: int, draw: torch.Generator) -> Iterator[float]:
    """Train on random words; yields the loss of every step."""
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-4)
    for _ in range(steps):
        words = Words.random(BATCH, draw)
        loss = F.cross_entropy(model(words)[words.valid], words.backwards()[words.valid])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        yield loss.item()


@torch.no_grad()
def accuracy(model: Reverser, draw: torch.Generator) -> tuple[float, float]:
    """The share of letters and of whole words that are right, on words not trained on."""
    words = Words.random(UNSEEN, draw)
    right = model(words).argmax(-1) == words.backwards()
    whole = (right | ~words.valid).all(-1)
    return right[words.valid].double().mean().item(), whole.double().mean().item()


@torch.no_grad()
def picture(model: Reverser, word: str, surface: Surface) -> str:
    """What the model wrote for this word, and the weights with which it looked at each letter."""
    ids = torch.tensor([[ascii_lowercase.index(letter) for letter in word]])
    with observe(model) as seen:
        best = model(Words(ids, torch.ones_like(ids, dtype=torch.bool)))[0].argmax(-1)
    written = [ascii_lowercase[i] for i in best.tolist()]
    weights: list[list[float]] = seen["look"][0][0, 0].tolist()  # first call, batch, head
    return (
        f"{word} -> {''.join(written)}\n"
        "Rows are the letters it wrote, columns those it read; the cell is the weight.\n\n"
        f"{heat(weights, written, list(word), surface)}\n\n"
        f"weight: {scale(surface)}"
    )


def _follow(losses: Iterator[float], steps: int) -> int:
    """Show how a training goes; returns the steps made until its end or Ctrl-C."""
    done = 0
    columns = [
        TextColumn("training"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}  loss {task.fields[loss]:.4f}"),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=steps, loss=float("nan"))
        try:
            for done, loss in enumerate(losses, 1):
                bar.update(task, completed=done, loss=loss)
        except KeyboardInterrupt:
            pass
    return done
