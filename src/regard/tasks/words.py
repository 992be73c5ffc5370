"""The likeliest next words: a best-first search over tokens, until a word ends.

    p(word | text) = sum over cuts of the word into tokens of
                     prod_i p(token_i | text, token_<i) * p(the next token begins another, or END)

What was typed of the word counts as part of it, and all is divided by p(what was typed): it may be
cut otherwise in the whole word than by itself. n: beginnings of words   v: vocabulary
"""

import heapq
import math
from collections import defaultdict
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.text.pieces import NO_CHARACTER, Pieces, Typed, first_word

MOST = 256  # beginnings of words that are read, at most
TOGETHER = 16  # of these at a time
LONGEST = 32  # tokens that a word goes on for after what was typed, at most
SLIGHT = 1e-4  # a way to cut what was typed that is so unlikely beside the others is not followed


class Beginning(NamedTuple):
    """Of a word. In order: first those that have yet to spell what was typed, then the likelier."""

    reached: bool
    cost: float  # -log p
    ids: tuple[int, ...]
    spelt: bytes


class Words:
    """What has been found, and what is still to be read.

    Stops when no beginning is likelier than the `count` best words: what is left out of a word's
    probability are cuts of it that are each less likely than the last word told.
    """

    def __init__(self, pieces: Pieces, end: int, typed: Typed, count: int, most: int, longest: int):
        self.pieces, self.typed, self.count = pieces, typed, count
        self.left, self.most, self.longest = most, most, longest
        self.found = defaultdict[str, float](float)
        self.fits = dict[bytes, tuple[Tensor, Tensor]]()
        self.mass = 0.0 if typed.tail else 1.0  # of what was typed
        self.open = [Beginning(not typed.tail, 0.0, (), b"")]
        spoken = [n for n, piece in enumerate(pieces.all) if piece and n != pieces.unknown]
        self.spoken = torch.tensor(spoken)
        self.inside = torch.tensor([n for n in spoken if not pieces.opens[n]], dtype=torch.long)
        opens = [n for n, one in enumerate(pieces.opens) if one]
        self.ends = torch.tensor([*opens, end])

    def search(self, model: Any, given: list[int], together: int) -> list[tuple[str, float]]:
        """Words with their probabilities, after these ids; `together` are read at a time."""
        state = model.begin(1)
        if len(given) > 1:
            _, state = model.read(state, torch.tensor([given[:-1]]))
        while some := self.best(together):
            log_probs = after_each(model, state, given[-1], some)
            for one, after in zip(some, log_probs, strict=True):
                self.grow(one, after)
        ranked = sorted(self.found.items(), key=lambda found: (-found[1], found[0]))
        return [(word, p / self.mass) for word, p in ranked[: self.count] if p > 0]

    def best(self, most: int) -> list[Beginning]:
        """The next ones to be read."""
        some, bar = list[Beginning](), self.bar()
        while self.open and self.left and len(some) < most:
            one = heapq.heappop(self.open)
            if math.exp(-one.cost) <= (bar if one.reached else SLIGHT * self.mass):
                continue
            some.append(one)
            self.left -= 1
        return some

    def bar(self) -> float:
        """How likely the last of the best words is."""
        best = heapq.nlargest(self.count, self.found.values())
        return best[-1] if len(best) == self.count else 0.0

    def grow(self, one: Beginning, log_probs: Float[Tensor, " v"]) -> None:
        """By each token that may come next."""
        log_probs = log_probs - one.cost
        rest = self.typed.tail[len(one.spelt) :]
        if rest:
            reaching, within = self.fitting(rest)
            self.mass += log_probs[reaching].exp().sum().item()
            allowed = torch.cat([reaching, within])
        else:
            word, _ = first_word(one.spelt[self.typed.skip :])
            allowed = self.inside if word else self.spoken
            self.tell(word, log_probs[self.ends].exp().sum().item())
        if len(one.ids) == self.longest:
            return
        # no more are ever read than `most`: no token that is less likely than so many others
        best = log_probs[allowed].topk(min(self.most, len(allowed)))
        bar = self.bar()
        for number, log_prob in zip(
            allowed[best.indices].tolist(), best.values.tolist(), strict=True
        ):
            if math.exp(log_prob) <= bar:
                break
            self.push((*one.ids, number), one.spelt + self.pieces.all[number], log_prob)

    def push(self, ids: tuple[int, ...], spelt: bytes, log_prob: float) -> None:
        reached = len(spelt) >= len(self.typed.tail)
        if reached:
            word, over = first_word(spelt[self.typed.skip :])
            if over:  # a token that holds the end of a word
                self.tell(word, math.exp(log_prob))
                return
        heapq.heappush(self.open, Beginning(reached, -log_prob, ids, spelt))

    def fitting(self, rest: bytes) -> tuple[Int[Tensor, " m"], Int[Tensor, " k"]]:
        """Tokens that reach the end of what was typed, and those that end within it."""
        if rest in self.fits:
            return self.fits[rest]
        pieces = [(n, self.pieces.all[n]) for n in self.spoken.tolist()]
        reaching = [n for n, piece in pieces if piece.startswith(rest)]
        within = [n for n, piece in pieces if rest.startswith(piece) and piece != rest]
        both = torch.tensor(reaching, dtype=torch.long), torch.tensor(within, dtype=torch.long)
        self.fits[rest] = both
        return both

    def tell(self, word: str, probability: float) -> None:
        if word and NO_CHARACTER not in word:
            self.found[word] += probability


def after_each(model: Any, state: Any, last: int, some: list[Beginning]) -> Float[Tensor, "n v"]:
    """Log-probabilities of what comes next; `state` is of one row, `last` is yet to be read.

    The shorter ones are filled up on the right, where no model looks.
    """
    width = max(len(one.ids) for one in some)
    ids = torch.tensor([[last, *one.ids] + [last] * (width - len(one.ids)) for one in some])
    rows = torch.zeros(len(some), dtype=torch.long)
    states, _ = model.read(model.select(state, rows), ids)
    ends = torch.tensor([len(one.ids) for one in some])
    return model.logits(states[torch.arange(len(some)), ends]).double().log_softmax(-1)
