"""Pictures by class: an encoder of pictures with a head on it, and what its class token looked at.

b: pictures   c: classes   h: heads
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.batch.pair import Pair
from regard.batch.pictures import Pictures
from regard.corpora.pictures import Picture
from regard.tasks.classify import Judge, Verdict
from regard.tasks.headed import Headed
from regard.tasks.loss import Loss
from regard.text.labels import Labels

TOGETHER = 256  # pictures that are looked at together, when none is learnt from


@dataclass(frozen=True)
class Seen:
    """Pictures as their encoder wants them, and the class of each."""

    numbers: Int[Tensor, " b"]  # which pictures these are
    inputs: dict[str, Tensor]
    labels: Int[Tensor, " b"]


class Image(Headed):
    """A model with a head, how it reads pictures, and the names of its classes."""

    fields = ("picture", "label")

    def __init__(self, model: Judge, pictures: Pictures, labels: Labels):
        self.model, self.pictures, self.labels = model, pictures, labels

    def pairs(self, records: Iterable[Mapping[str, Any]], *, read: bool = True) -> Iterator[Pair]:
        """One by one; what is not `read` now is read when its batch is made, each time."""
        for number, record in enumerate(records):
            label = self.labels.number(record["label"], f"record {number + 1}")
            picture = self.pictures.read(record["picture"]) if read else record["picture"]
            yield Pair(number, [picture], [label])

    def collate(self, pairs: Sequence[Pair]) -> Seen:
        return self.batch(pairs, self.pictures.tensor(self.pixels(pairs)))

    def varied(self, pairs: Sequence[Pair], *, crop: int = 0, flip: bool = False) -> Seen:
        """A batch to learn from: its pictures are moved and mirrored by chance."""
        return self.batch(pairs, self.pictures.varied(self.pixels(pairs), crop=crop, flip=flip))

    def pixels(self, pairs: Sequence[Pair]) -> list[Any]:
        return [self.pictures.read(pair.source[0]) for pair in pairs]

    def batch(self, pairs: Sequence[Pair], pictures: Float[Tensor, "b k h w"]) -> Seen:
        return Seen(
            torch.tensor([pair.number for pair in pairs]),
            {"pictures": pictures},
            torch.tensor([pair.target[0] for pair in pairs]),
        )

    def loss(self, batch: Seen, smoothing: float = 0.0) -> Loss:
        logits = self.model(batch.inputs)
        total = F.cross_entropy(logits, batch.labels, reduction="sum", label_smoothing=smoothing)
        return Loss(total, len(batch.labels))

    @torch.no_grad()
    def verdicts(
        self,
        pictures: Sequence[Picture],
        places: Sequence[str] | None = None,
        told: Callable[[int], None] | None = None,
    ) -> list[Verdict]:
        """What the model takes each picture for; `places` are what messages call them."""
        self.model.eval()
        found: list[Verdict] = []
        for start in range(0, len(pictures), TOGETHER):
            some = range(start, min(start + TOGETHER, len(pictures)))
            pixels = [self.pictures.read(pictures[n], places[n] if places else None) for n in some]
            for row in self.model({"pictures": self.pictures.tensor(pixels)}):
                shares = dict(zip(self.labels.names, row.softmax(-1).tolist(), strict=True))
                found.append(Verdict(max(shares, key=shares.__getitem__), shares))
            if told is not None:
                told(len(pixels))
        return found

    def in_order(self, pairs: Sequence[Pair]) -> Iterator[Seen]:
        """All have one length, so that it is their number that counts."""
        for start in range(0, len(pairs), TOGETHER):
            yield self.collate(pairs[start : start + TOGETHER])

    def looked(self, picture: Picture) -> dict[str, Tensor]:
        """Every weight that was paid, by the name of the attention; class token, then patches."""
        return self.seen({"pictures": self.pictures.tensor([self.pictures.read(picture)])})

    def by_patch(self, picture: Picture) -> dict[str, Float[Tensor, "h rows columns"]]:
        """What the class token looked at, by layer and head, laid over the picture.

        What it gave to itself is missing from the sum.
        """
        encoder = self.model.encoder
        height, width = self.pictures.read(picture).shape[:2]
        grid = encoder.grid(height, width)
        return {
            name: weights[0, :, 0, 1:].unflatten(-1, grid)
            for name, weights in self.looked(picture).items()
            if weights.ndim == 4
        }
