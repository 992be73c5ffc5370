"""A class from a few examples: they are shown with their labels, and then one without.

    x_t = [embed(picture_t); label_t]       t < T; the last label is zeros
    loss = - log p(class of the last | x_1..T)              at the last step only

Mishra et al. 2018, sec. 4.1: pictures are embedded by the small network of Vinyals et al. 2016, and
learnt together with it. Points of a generator are shown as they are.

# differs: several pictures can be asked for after the same examples, each in a sequence of its own
# with the examples in another order: those are then embedded once for all of them. A batch norm
# brings what is embedded to mean 0 and deviation 1: else all pictures look alike at first.
e: episodes   s: examples with a label   q: those asked for   n: both   w: ways (classes)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.attend.tap import observe
from regard.corpora.corpus import Record
from regard.corpora.episodes import Dealt
from regard.encode.picture import Picture
from regard.tasks.loss import Loss

TOGETHER = 64  # episodes that are looked at together, when none is learnt from


@dataclass(frozen=True)
class Asked:
    """Examples, their labels, what is asked for, and the order of the examples before each."""

    shown: Float[Tensor, "e n *of"]
    labels: Int[Tensor, "e s"]
    wanted: Int[Tensor, "e q"]
    order: Int[Tensor, "e q s"]


class Guess(NamedTuple):
    """The number of a class, and how likely each is."""

    label: int
    probabilities: list[float]


class Recogniser(nn.Module):
    """`embed` makes a vector of each example (None: it is one), `learner` an answer of them all."""

    def __init__(self, embed: Picture | None, learner: nn.Module, ways: int):
        super().__init__()
        self.embed, self.ways = embed, ways
        self.learner: Any = learner  # any with `episode`
        self.norm = None if embed is None else nn.BatchNorm1d(embed.out.out_features, affine=False)

    def forward(self, asked: Asked) -> Float[Tensor, "e q w"]:
        """Logits of the last step of each sequence."""
        episodes, examples = asked.labels.shape
        queries = asked.order.shape[1]
        states = self.embedded(asked.shown)
        ahead = asked.order.flatten(1)[..., None].expand(-1, -1, states.shape[-1])
        before = states[:, :examples].gather(1, ahead).unflatten(1, (queries, examples))
        inputs = torch.cat([before, states[:, examples:, None]], 2)
        told = asked.labels.gather(1, asked.order.flatten(1)).unflatten(1, (queries, examples))
        labels = F.one_hot(told, self.ways).to(inputs)
        labels = F.pad(labels, (0, 0, 0, 1))  # the last one is not told
        said = self.learner.episode(inputs.flatten(0, 1), labels.flatten(0, 1))
        return said[:, -1].unflatten(0, (episodes, queries))

    def embedded(self, shown: Float[Tensor, "e n *of"]) -> Float[Tensor, "e n d"]:
        """A larger picture has several places: their mean."""
        if self.embed is None or self.norm is None:
            return shown
        # channels last: on a CPU convolutions of 32 filters take half the time then
        pictures = shown.flatten(0, 1).contiguous(memory_format=torch.channels_last)
        return self.norm(self.embed(pictures).mean(1)).unflatten(0, shown.shape[:2])


class Fewshot:
    """A model that is told classes by examples, and how pictures become numbers."""

    def __init__(self, model: Recogniser):
        self.model = model

    def collate(self, dealt: Dealt) -> Asked:
        shown = torch.from_numpy(np.ascontiguousarray(dealt.shown))
        numbers = (dealt.labels, dealt.wanted, dealt.order)
        return Asked(numbers_of(shown), *(torch.from_numpy(one.copy()) for one in numbers))

    def gathered(self, records: Sequence[Record]) -> Asked:
        """Episodes of one query, in the order that they have."""
        labels = np.stack([record["labels"] for record in records])
        wanted = np.array([[record["wanted"]] for record in records])
        order = np.broadcast_to(np.arange(labels.shape[1]), (len(records), 1, labels.shape[1]))
        shown = np.stack([record["shown"] for record in records])
        return self.collate(Dealt(shown, labels, wanted, order))

    def loss(self, batch: Asked, smoothing: float = 0.0) -> Loss:
        """Counted are pictures that are asked for."""
        logits, wanted = self.model(batch).flatten(0, 1), batch.wanted.flatten()
        total = F.cross_entropy(logits, wanted, reduction="sum", label_smoothing=smoothing)
        return Loss(total, len(wanted))

    @torch.no_grad()
    def likelihood(self, records: Sequence[Record]) -> Loss:
        self.model.eval()
        losses = [self.loss(self.gathered(some)) for some in pieces(records)]
        total = torch.stack([loss.total.double() for loss in losses]).sum()
        return Loss(total, sum(loss.tokens for loss in losses))

    @torch.no_grad()
    def guesses(
        self, records: Sequence[Record], told: Callable[[int], None] | None = None
    ) -> list[Guess]:
        """What each is taken for, in their order."""
        self.model.eval()
        found = list[Guess]()
        for some in pieces(records):
            for row in self.model(self.gathered(some))[:, 0].softmax(-1).tolist():
                found.append(Guess(int(np.argmax(row)), row))
            if told is not None:
                told(len(some))
        return found

    @torch.no_grad()
    def looked(self, record: Record) -> dict[str, Tensor]:
        """What each step looked at, by the attention's name: [s+1 s+1]; the last is the query."""
        with observe(self.model.eval()) as seen:
            self.model(self.gathered([record]))
        return {name: one[0] for name, one in seen.whole().items()}


def pieces(records: Sequence[Record]) -> list[Sequence[Record]]:
    """All of one have as many examples."""
    if not records:
        raise ValueError("records are missing: there is nothing to score")
    return [records[start : start + TOGETHER] for start in range(0, len(records), TOGETHER)]


def numbers_of(shown: Tensor) -> Float[Tensor, "e n *of"]:
    """Pixels [… h w c] as [… c h w], white being 0 and black 1; points as they are."""
    if shown.dtype != torch.uint8:
        return shown
    return shown.movedim(-1, 2).float().div_(-255).add_(1)


def nearest(record: Record) -> int:
    """What a ruler would say: the class whose examples' mean is nearest, number by number."""
    shown: NDArray[Any] = record["shown"].astype(np.float64).reshape(len(record["shown"]), -1)
    labels = record["labels"]
    means = np.stack([shown[:-1][labels == way].mean(0) for way in range(labels.max() + 1)])
    return int(((means - shown[-1]) ** 2).sum(-1).argmin())
