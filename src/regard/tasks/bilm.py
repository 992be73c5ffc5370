"""Pretraining by two language models at once, one from each end of a sentence: ELMo's.

    loss = mean over words of -log p(w_k | w_1 … w_{k-1}) and of -log p(w_k | w_{k+1} … w_N)
                                                                Peters et al. 2018 (1802.05365), 3.1
b: sentences   t: words and two marks   c: characters of a word
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from regard.batch.batches import in_order
from regard.batch.pair import Pair, padded
from regard.metric.language import perplexity
from regard.tasks.inputs import Spelled
from regard.tasks.loss import Loss, cross_entropy
from regard.tasks.translate import ROOM
from regard.text.marks import AnyTokeniser
from regard.text.sentences import sentences
from regard.text.special import END, START


@dataclass(frozen=True)
class Both:
    """Sentences between their two marks: letters to read, words to tell."""

    characters: Int[Tensor, "b t c"]
    valid: Bool[Tensor, "b t"]
    ids: Int[Tensor, "b t"]


class Told(NamedTuple):
    """-log p from either end, summed, and of how many words each."""

    ahead: Tensor
    back: Tensor
    words: int


class Bilm:
    """An ELMo and a vocabulary of words: what it reads are letters, what it tells are words."""

    fields = ("text",)
    places = 2  # of a sentence that are not words: its marks

    def __init__(self, model: nn.Module, text: AnyTokeniser):
        self.model: Any = model
        self.text, self.inputs = text, Spelled(text)

    def pairs(
        self,
        records: Iterable[Mapping[str, str]],
        longest: int,
        seed: int = 0,  # noqa: ARG002 - nothing is drawn
    ) -> Iterator[Pair]:
        """Documents, cut into sentences, and these into stretches of at most `longest` words."""
        for record in records:
            parts = sentences(record["text"])
            for part, ids in zip(parts, self.text.ids(parts), strict=True):
                words = self.text.words(part)
                for start in range(0, len(words), longest):
                    stretch = slice(start, start + longest)
                    yield Pair(0, words[stretch], ids[stretch])

    def collate(self, pairs: Sequence[Pair]) -> Both:
        read = self.inputs.tensors([pair.source for pair in pairs])
        ids, _ = padded([[START, *pair.target, END] for pair in pairs])
        return Both(read["characters"], read["valid"], ids)

    def loss(self, batch: Both) -> Loss:
        told = self.told(batch)
        return Loss(told.ahead + told.back, 2 * told.words)

    def told(self, batch: Both) -> Told:
        """Of every word but the first mark from the left, but the last from the right."""
        ahead, back = self.model.forced(batch.characters, batch.valid)
        output, there = self.model.output, batch.valid[:, 1:]
        first = cross_entropy(output, ahead, batch.ids[:, 1:], there)
        second = cross_entropy(output, back, batch.ids[:, :-1], there)
        return Told(first.total, second.total, first.tokens)

    @torch.no_grad()
    def measured(self, pairs: Sequence[Pair]) -> Told:
        self.model.eval()
        found = [self.told(batch) for batch in in_order(pairs, tokens=ROOM, collate=self.collate)]
        sides = zip(*((one.ahead.double(), one.back.double()) for one in found), strict=True)
        ahead, back = (torch.stack(side).sum() for side in sides)
        return Told(ahead, back, sum(one.words for one in found))

    def likelihood(self, pairs: Sequence[Pair]) -> Loss:
        told = self.measured(pairs)
        return Loss(told.ahead + told.back, 2 * told.words)

    def scores(self, pairs: Sequence[Pair]) -> dict[str, float | str]:
        """Perplexity of a word, the mark at the end included; of each direction, and of both."""
        ahead, back, words = self.measured(pairs)
        return {
            "perplexity": perplexity((ahead + back).item(), 2 * words),
            "forward": perplexity(ahead.item(), words),
            "backward": perplexity(back.item(), words),
            "words": words,
        }

    def reply(self, text: str, place: str) -> tuple[str, dict[str, Any]]:
        """How surprising the text is: the perplexity of its words."""
        pairs = list(self.pairs([{"text": text}], longest=max(1, len(text))))
        if not pairs:
            raise ValueError(f"{place}: there is no word in it")
        found = self.scores(pairs)
        return f"{found['perplexity']:.2f}", {"text": text, **found}
