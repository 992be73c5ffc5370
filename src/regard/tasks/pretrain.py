"""Pretraining an encoder on plain text: hidden words have to be told, and what follows what.

    loss = mean over hidden words of -log p(word) + mean over pairs of -log p(follows)
                                                                Devlin et al. 2019 (1810.04805), 3.1
b: pairs   t: positions   m: hidden words
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Generator, Tensor, nn

from regard.batch.batches import in_order
from regard.batch.pair import Pair, padded
from regard.metric.language import perplexity
from regard.tasks.loss import Loss, cross_entropy
from regard.tasks.mask import RATE, free_of, masked, ordinary_of, sentence_pairs
from regard.tasks.translate import ROOM
from regard.text.marks import AnyTokeniser, marks_of
from regard.text.sentences import sentences

MARK = "[MASK]"  # in a text, where a word is to be told
SEED = 0  # of what is hidden in dev: the same each time


@dataclass(frozen=True)
class Joined:
    """Pairs of stretches of text, as START a END b END."""

    ids: Int[Tensor, "b t"]
    valid: Bool[Tensor, "b t"]
    segments: Int[Tensor, "b t"]
    follows: Int[Tensor, " b"]  # 0: it does, 1: it does not, as in BERT


class Told(NamedTuple):
    """Sums over hidden words and over pairs: losses, how many are right, how many there are."""

    words_loss: Tensor
    words_right: int
    words: int
    pairs_loss: Tensor
    pairs_right: int
    pairs: int


class Pretrain:
    """A BERT with its heads, and a vocabulary."""

    fields = ("text",)
    places = 3  # of a pair that are not text: START, and END twice

    def __init__(
        self,
        model: nn.Module,
        text: AnyTokeniser,
        *,
        rate: float = RATE,
        whole_words: bool = False,
        next_sentence: bool = True,
    ):
        self.model: Any = model
        self.text, self.rate, self.next_sentence = text, rate, next_sentence
        self.marks = marks_of(text)
        self.ordinary = ordinary_of(text.size, self.marks.specials)
        self.begins = begins_of(text) if whole_words else None

    def pairs(
        self, records: Iterable[Mapping[str, str]], longest: int, seed: int = SEED
    ) -> Iterator[Pair]:
        """Documents, cut into sentences, as pairs of stretches of at most `longest` tokens."""
        documents = [self.text.ids(sentences(record["text"])) for record in records]
        draw = Generator().manual_seed(seed)
        for number, pair in enumerate(sentence_pairs(documents, longest, draw)):
            start, end = self.marks.start, self.marks.end
            ids = [start, *pair.first, end, *pair.second, end]
            yield Pair(number, ids, [0 if pair.follows else 1])

    def collate(self, pairs: Sequence[Pair]) -> Joined:
        ids, valid = padded([pair.source for pair in pairs])
        ends = (ids == self.marks.end).int()
        segments = ((ends.cumsum(1) - ends) * valid).clamp(max=1)
        return Joined(ids, valid, segments.long(), torch.tensor([p.target[0] for p in pairs]))

    def loss(self, batch: Joined) -> Loss:
        """The sum of the two means, counted for each pair; words are hidden by torch's draws."""
        told = self.told(batch, torch.default_generator)
        mean = told.words_loss / max(told.words, 1)
        if self.next_sentence:
            mean = mean + told.pairs_loss / told.pairs
        return Loss(mean * told.pairs, told.pairs)

    def told(self, batch: Joined, draw: Generator) -> Told:
        free = free_of(batch.ids, batch.valid, (self.marks.start, self.marks.end))
        begins = None if self.begins is None else self.begins[batch.ids]
        hidden = masked(
            batch.ids,
            free,
            mask=self.marks.mask,
            ordinary=self.ordinary,
            generator=draw,
            rate=self.rate,
            begins=begins,
        )
        found = self.model.encode(hidden.ids, batch.valid, batch.segments)
        guesses, wanted = self.model.guesses(found.states[hidden.chosen]), batch.ids[hidden.chosen]
        there = torch.ones_like(wanted, dtype=torch.bool)
        words = cross_entropy(self.model.output, guesses[None], wanted[None], there[None])
        right = 0
        if not self.model.training:
            right = int((self.model.logits(guesses).argmax(-1) == wanted).sum())
        pairs, same = words.total.new_zeros(()), 0
        if self.next_sentence:
            logits = self.model.following(found.pooled)
            pairs = F.cross_entropy(logits, batch.follows, reduction="sum")
            same = int((logits.argmax(-1) == batch.follows).sum())
        return Told(words.total, right, words.tokens, pairs, same, len(batch.ids))

    @torch.no_grad()
    def measured(self, pairs: Sequence[Pair]) -> Told:
        """On these pairs, with words hidden by a seed of our own: the same words each time."""
        self.model.eval()
        draw = Generator().manual_seed(SEED)
        batches = in_order(pairs, tokens=ROOM, collate=self.collate)
        columns = zip(*(self.told(batch, draw) for batch in batches), strict=True)
        return Told._make(sum(column) for column in columns)

    def likelihood(self, pairs: Sequence[Pair]) -> Loss:
        """-log p of the hidden words."""
        told = self.measured(pairs)
        return Loss(told.words_loss, told.words)

    def scores(self, pairs: Sequence[Pair]) -> dict[str, float | str]:
        """How many of the hidden words, and of the pairs, are told right, in percent."""
        found = self.measured(pairs)
        scores: dict[str, float | str] = {
            "accuracy": 100 * found.words_right / found.words,
            "perplexity": perplexity(found.words_loss.item(), found.words),
            "words": found.words,
        }
        if self.next_sentence:
            scores["next_sentence"] = 100 * found.pairs_right / found.pairs
        return {**scores, "pairs": found.pairs}

    def reply(self, text: str, place: str) -> tuple[str, dict[str, Any]]:
        """The text with each [MASK] filled in."""
        if MARK not in text:
            raise ValueError(f"{place}: there is no {MARK} in it to fill in")
        filled, guesses = text, self.filled(text)
        for best in guesses:
            filled = filled.replace(MARK, best[0][0], 1)
        told = [[{"word": w, "probability": p} for w, p in best] for best in guesses]
        return filled, {"text": text, "filled": filled, "masks": told}

    def masked(self, text: str) -> list[int]:
        """START text END, with the mask in the place of each mark."""
        first, *parts = self.text.ids(text.split(MARK))
        ids = [self.marks.start, *first]
        for part in parts:
            ids += [self.marks.mask, *part]
        return [*ids, self.marks.end]

    def named(self, number: int) -> str:
        """A token; the mask, which the vocabulary need not have, by its mark."""
        return MARK if number == self.marks.mask else self.text.token(number)

    @torch.no_grad()
    def filled(self, text: str, count: int = 5) -> list[list[tuple[str, float]]]:
        """The likeliest words in the place of each mark, with their probabilities."""
        row = torch.tensor([self.masked(text)])
        found = self.model.eval().encode(row, torch.ones_like(row, dtype=torch.bool))
        places = (row[0] == self.marks.mask).nonzero()[:, 0]
        shares = self.model.logits(self.model.guesses(found.states[0, places])).softmax(-1)
        best = shares[:, : self.text.size].topk(min(count, self.text.size))
        return [
            [(self.text.token(n), p) for n, p in zip(ids, values, strict=True)]
            for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]


def begins_of(text: AnyTokeniser) -> Bool[Tensor, " v1"]:
    """Which pieces of a WordPiece vocabulary begin a word; the mask, where it is one more, does."""
    tokens = [text.token(number) for number in range(text.size)]
    if not any(token.startswith("##") for token in tokens):
        raise ValueError("whole_words needs pieces that know their words: text.kind = 'wordpiece'")
    return torch.tensor([not token.startswith("##") for token in tokens] + [True])
