"""The likeliest next words, by a best-first search over tokens until a word ends.

    p(word | text) = sum over cuts of the word into tokens of
                     prod_i p(token_i | text, token_<i) * p(the next token begins another, or END)

The typed part of a word counts as part of it, and all is divided by the probability of that part,
because a tokenizer may cut the full word differently. n: beginnings of words   v: vocabulary
"""

import heapq
import math
from collections import defaultdict
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.models.protocols import AnyLanguageModel
from regard.text.token_bytes import REPLACEMENT_CHARACTER, TokenBytes, TypedText, first_word

MAX_PREFIXES = 256  # beginnings of words that are read
PREFIXES_PER_BATCH = 16  # beginnings that are read at a time
MAX_WORD_TOKENS = 32  # tokens of a word after its typed part
# A cut of the typed part is dropped if it is less likely than this share of the cuts before it.
MIN_RELATIVE_PROBABILITY = 1e-4


class WordPrefix(NamedTuple):
    """The beginning of a word; sorted, those that lack a part of the typed text come first."""

    covers_typed: bool
    cost: float  # -log p
    ids: tuple[int, ...]
    spelling: bytes


class NextWordSearch:
    """Words with their probabilities so far, and a queue of beginnings that are to be read.

    The search stops when no beginning is likelier than the `count` best words. The probability of
    a word lacks only cuts of it that are each less likely than the last of these words.
    """

    def __init__(
        self,
        pieces: TokenBytes,
        end: int,
        typed: TypedText,
        count: int,
        max_prefixes: int,
        max_tokens: int,
    ):
        self.pieces, self.typed, self.count = pieces, typed, count
        self.reads_left, self.max_prefixes, self.max_tokens = max_prefixes, max_prefixes, max_tokens
        self.probabilities = defaultdict[str, float](float)
        self.matching_cache = dict[bytes, tuple[Tensor, Tensor]]()
        self.typed_mass = 0.0 if typed.tail else 1.0  # the probability of the typed part
        self.queue = [WordPrefix(not typed.tail, 0.0, (), b"")]
        text_ids = [n for n, piece in enumerate(pieces.pieces) if piece and n != pieces.unknown]
        self.text_ids = torch.tensor(text_ids)
        self.continuing_ids = torch.tensor(
            [n for n in text_ids if not pieces.begins_with_space[n]], dtype=torch.long
        )
        opening_ids = [n for n, opens_word in enumerate(pieces.begins_with_space) if opens_word]
        self.ending_ids = torch.tensor([*opening_ids, end])

    def search(
        self, model: AnyLanguageModel, prompt_ids: list[int], batch_size: int
    ) -> list[tuple[str, float]]:
        """Return words with their probabilities after these ids."""
        state = model.begin(1)
        if len(prompt_ids) > 1:
            device = next(model.parameters()).device
            _, state = model.read(state, torch.tensor([prompt_ids[:-1]], device=device))
        while prefixes := self.pop_best(batch_size):
            log_probs = next_log_probs(model, state, prompt_ids[-1], prefixes)
            for prefix, row_log_probs in zip(prefixes, log_probs, strict=True):
                self.extend(prefix, row_log_probs)
        ranked = sorted(self.probabilities.items(), key=lambda item: (-item[1], item[0]))
        return [(word, p / self.typed_mass) for word, p in ranked[: self.count] if p > 0]

    def pop_best(self, limit: int) -> list[WordPrefix]:
        """Return the beginnings to read next, at most `limit`."""
        prefixes, threshold = list[WordPrefix](), self.threshold()
        while self.queue and self.reads_left and len(prefixes) < limit:
            prefix = heapq.heappop(self.queue)
            if math.exp(-prefix.cost) <= (
                threshold if prefix.covers_typed else MIN_RELATIVE_PROBABILITY * self.typed_mass
            ):
                continue
            prefixes.append(prefix)
            self.reads_left -= 1
        return prefixes

    def threshold(self) -> float:
        """Return the probability of the last of the best words."""
        best = heapq.nlargest(self.count, self.probabilities.values())
        return best[-1] if len(best) == self.count else 0.0

    def extend(self, prefix: WordPrefix, log_probs: Float[Tensor, " v"]) -> None:
        """Extend a beginning by each token that may come next."""
        log_probs = log_probs - prefix.cost
        remaining = self.typed.tail[len(prefix.spelling) :]
        if remaining:
            reaching, within = self.matching_tokens(remaining)
            self.typed_mass += log_probs[reaching].exp().sum().item()
            allowed = torch.cat([reaching, within])
        else:
            word, _ = first_word(prefix.spelling[self.typed.skip :])
            allowed = self.continuing_ids if word else self.text_ids
            self.add_word(word, log_probs[self.ending_ids].exp().sum().item())
        if len(prefix.ids) == self.max_tokens:
            return
        # At most `max_prefixes` beginnings are read: less likely tokens than these are not needed.
        best = log_probs[allowed].topk(min(self.max_prefixes, len(allowed)))
        threshold = self.threshold()
        for token_id, log_prob in zip(
            allowed[best.indices].tolist(), best.values.tolist(), strict=True
        ):
            if math.exp(log_prob) <= threshold:
                break
            self.push(
                (*prefix.ids, token_id), prefix.spelling + self.pieces.pieces[token_id], log_prob
            )

    def push(self, ids: tuple[int, ...], spelling: bytes, log_prob: float) -> None:
        covers_typed = len(spelling) >= len(self.typed.tail)
        if covers_typed:
            word, is_finished = first_word(spelling[self.typed.skip :])
            if is_finished:  # the token holds the end of a word
                self.add_word(word, math.exp(log_prob))
                return
        heapq.heappush(self.queue, WordPrefix(covers_typed, -log_prob, ids, spelling))

    def matching_tokens(self, remaining: bytes) -> tuple[Int[Tensor, " m"], Int[Tensor, " k"]]:
        """Return tokens that reach the end of the typed part, and those that end within it."""
        if remaining in self.matching_cache:
            return self.matching_cache[remaining]
        pieces = [(n, self.pieces.pieces[n]) for n in self.text_ids.tolist()]
        reaching = [n for n, piece in pieces if piece.startswith(remaining)]
        within = [n for n, piece in pieces if remaining.startswith(piece) and piece != remaining]
        matches = torch.tensor(reaching, dtype=torch.long), torch.tensor(within, dtype=torch.long)
        self.matching_cache[remaining] = matches
        return matches

    def add_word(self, word: str, probability: float) -> None:
        if word and REPLACEMENT_CHARACTER not in word:
            self.probabilities[word] += probability


def next_log_probs(
    model: AnyLanguageModel, state: Any, last: int, prefixes: list[WordPrefix]
) -> Float[Tensor, "n v"]:
    """Return log-probabilities of the next token after each beginning.

    `state` has one row, and `last` is read after it. Shorter beginnings are padded on the right,
    which no model reads before the end of a beginning.
    """
    width = max(len(prefix.ids) for prefix in prefixes)
    device = next(model.parameters()).device
    ids = torch.tensor(
        [[last, *prefix.ids] + [last] * (width - len(prefix.ids)) for prefix in prefixes],
        device=device,
    )
    rows = torch.zeros(len(prefixes), dtype=torch.long, device=device)
    states, _ = model.read(model.select(state, rows), ids)
    last_states = torch.stack([states[n, len(prefix.ids)] for n, prefix in enumerate(prefixes)])
    return model.logits(last_states).cpu().double().log_softmax(-1)
