"""Captions: a picture into a sentence on it, and where each word of it looked.

b: captions of a batch   t: words   k: places of a picture
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attend.reinforce import sampling
from regard.attend.tap import observe
from regard.batch.pair import Pair, padded
from regard.batch.pictures import Pictures
from regard.corpora.captions import captions_of
from regard.corpora.pictures import Picture, Pixels, digest_of
from regard.decode.rules import FREE, Rules
from regard.decode.stepper import Hypothesis
from regard.models.caption import doubly_stochastic
from regard.tasks.loss import Loss, cross_entropy
from regard.tasks.translate import Search, Translation
from regard.text.special import END, START
from regard.text.tokeniser import Tokeniser

TOGETHER = 64  # pictures that are looked at together, when none is learnt from


@dataclass(frozen=True)
class Captioned:
    """Pictures and right-padded captions: `target_out` is to be said, one step ahead."""

    numbers: Int[Tensor, " b"]  # which pairs these are
    pictures: Float[Tensor, "b c h w"]
    target_in: Int[Tensor, "b t"]  # START …
    target_out: Int[Tensor, "b t"]  # … END
    target_valid: Bool[Tensor, "b t"]


class Look(NamedTuple):
    """Where each word of a caption looked, its end included."""

    words: list[str]
    weights: Float[Tensor, "t rows columns"]


class Captioner:
    """A model, how it reads pictures, and the words that it knows."""

    def __init__(self, model: nn.Module, pictures: Pictures, text: Tokeniser):
        # any model with remember, forced, logits, output and the steps of a search
        self.model: Any = model
        self.pictures, self.text = pictures, text

    def pairs(
        self, records: Iterable[Mapping[str, Any]], longest: int, *, read: bool = True
    ) -> Iterator[Pair]:
        """One for each caption; what is not `read` now is read when its batch is made."""
        for number, record in enumerate(records):
            picture = self.pictures.read(record["picture"]) if read else record["picture"]
            for ids in self.text.ids(list(captions_of(record))):
                if len(ids) <= longest:
                    yield Pair(number, [picture], ids)

    def collate(self, pairs: Sequence[Pair], crop: int = 0) -> Captioned:
        pixels = [self.pictures.read(pair.source[0]) for pair in pairs]
        target_in, valid = padded([[START, *pair.target] for pair in pairs])
        return Captioned(
            torch.tensor([pair.number for pair in pairs]),
            self.pictures.varied(pixels, crop=crop),
            target_in,
            padded([[*pair.target, END] for pair in pairs])[0],
            valid,
        )

    def loss(
        self,
        batch: Captioned,
        smoothing: float = 0.0,
        doubly: float = 0.0,
        *,
        soft: bool = False,
    ) -> Loss:
        """-log p of the captions. In training, hard attention adds its REINFORCE (or is `soft`
        yet), and soft attention `doubly` times what is missing from one look at each place."""
        model, valid = self.model, batch.target_valid
        if model.training and getattr(model, "reinforce", None) is not None:
            return self.reinforced(batch, 1.0 if soft else model.expected)
        memory = model.remember(batch.pictures)
        if not (model.training and doubly):
            states = model.forced(memory, batch.target_in)
            return cross_entropy(model.output, states, batch.target_out, valid, smoothing=smoothing)
        told = model.told(memory, batch.target_in)
        loss = cross_entropy(
            model.output, told.states, batch.target_out, valid, smoothing=smoothing
        )
        again = doubly * doubly_stochastic(told.weights, valid).sum()
        return loss._replace(total=loss.total + again)

    def reinforced(self, batch: Captioned, expected: float) -> Loss:
        """Xu et al. 2015, sec. 4.1: the reward of a whole caption is its log-likelihood."""
        model, valid = self.model, batch.target_valid
        with sampling(model, expected) as episode:
            states = model.forced(model.remember(batch.pictures), batch.target_in)
        told = model.logits(states).log_softmax(-1).gather(-1, batch.target_out[..., None])
        likely = (told[..., 0] * valid).sum(-1)
        total = (model.reinforce(likely, episode, valid) - likely).sum()
        return Loss(total, int(valid.sum()))

    @torch.no_grad()
    def likelihood(self, pairs: Sequence[Pair]) -> Loss:
        """-log p of all captions, the ends included, and the number of tokens."""
        if not pairs:
            raise ValueError("captions are missing: all are longer than train.longest")
        self.model.eval()
        losses = [self.loss(batch) for batch in self.in_order(pairs)]
        total = torch.stack([loss.total.double() for loss in losses]).sum()
        return Loss(total, sum(loss.tokens for loss in losses))

    def in_order(self, pairs: Sequence[Pair]) -> Iterator[Captioned]:
        for start in range(0, len(pairs), TOGETHER):
            yield self.collate(pairs[start : start + TOGETHER])

    @torch.no_grad()
    def describe(
        self,
        pictures: Sequence[Picture],
        search: Search,
        rules: Rules = FREE,
        *,
        places: Sequence[str] | None = None,
        told: Callable[[int], None] | None = None,
    ) -> list[list[Translation]]:
        """The n best captions of each picture; `places` are what messages call them."""
        self.model.eval()
        longest = rules.max_length if isinstance(rules.max_length, int) else max(rules.max_length)
        found: list[list[Translation]] = []
        for start in range(0, len(pictures), TOGETHER):
            some = range(start, min(start + TOGETHER, len(pictures)))
            pixels = [self.pictures.read(pictures[n], places[n] if places else None) for n in some]
            memory = self.model.remember(self.pictures.tensor(pixels))
            limits = replace(rules, max_length=[longest] * len(pixels))
            outputs = search(self.model, memory, [seed_of(one) for one in pixels], limits)
            found += [[self.told_as(one) for one in best] for best in outputs]
            if told is not None:
                told(len(pixels))
        return found

    def told_as(self, found: Hypothesis) -> Translation:
        return Translation(self.text.decode(found.ids), found.score, found.log_prob, found.ids)

    def look(self, picture: Picture, ids: Sequence[int]) -> Look:
        """A finished caption, read once more word by word with somebody looking."""
        [weights] = self.attended([Pair(0, [picture], ids)])
        return Look([self.text.token(n) for n in [*ids, END]], weights)

    @torch.no_grad()
    def attended(self, pairs: Sequence[Pair]) -> list[Float[Tensor, "t rows columns"]]:
        """Where each word of each caption looked, the end included, over the picture."""
        if not self.model.cross:
            kind = type(self.model).__name__
            raise ValueError(f"model {kind} has no attention to the picture: there is none to see")
        model, [name] = self.model.eval(), self.model.cross
        found: list[Tensor] = []
        for batch in self.in_order(pairs):
            with observe(model, [name]) as seen:
                model.forced(model.remember(batch.pictures), batch.target_in)
            grid = model.grid(*batch.pictures.shape[2:])
            for row, valid in zip(seen.whole()[name], batch.target_valid, strict=True):
                found.append(row[: int(valid.sum())].float().unflatten(-1, grid))
        return found

    def looked_at(self, weights: Float[Tensor, "rows columns"]) -> tuple[float, float]:
        """The middle of the place with the greatest weight, in pixels from the top and left."""
        row, column = divmod(int(weights.argmax()), weights.shape[1])
        each = 2**self.model.picture.pools
        return (row + 0.5) * each, (column + 0.5) * each


def seed_of(pixels: Pixels) -> int:
    """By what a picture shows, and not by where it stands."""
    return int(digest_of(pixels)[:14], 16)
