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

from regard.batching.batches import iterate_by_length
from regard.batching.example import Example, padded
from regard.metrics.language import perplexity
from regard.tasks.loss import Loss, cross_entropy
from regard.tasks.mask import (
    MASKING_RATE,
    mask_tokens,
    maskable_positions,
    sentence_pairs,
    text_token_ids,
)
from regard.tasks.translate import TOKENS_PER_BATCH
from regard.text.sentences import split_sentences
from regard.text.special_ids import AnyTokenizer, special_ids

MASK_TOKEN = "[MASK]"  # noqa: S105 - in a text, where a word is to be predicted
MASKING_SEED = 0  # of what is hidden in dev: the same each time


@dataclass(frozen=True)
class PretrainBatch:
    """Pairs of stretches of text, as START a END b END."""

    ids: Int[Tensor, "b t"]
    valid: Bool[Tensor, "b t"]
    segments: Int[Tensor, "b t"]
    next_sentence_labels: Int[Tensor, " b"]  # 0: it does, 1: it does not, as in BERT


class PretrainLoss(NamedTuple):
    """Sums over hidden words and over pairs: losses, how many are right, how many there are."""

    words_loss: Tensor
    correct_words: int
    words: int
    pairs_loss: Tensor
    correct_pairs: int
    pairs: int


class PretrainTask:
    """A BERT with its heads, and a vocabulary."""

    fields = ("text",)
    special_token_count = 3  # of a pair that are not text: START, and END twice

    def __init__(
        self,
        model: nn.Module,
        text: AnyTokenizer,
        *,
        rate: float = MASKING_RATE,
        whole_words: bool = False,
        next_sentence: bool = True,
    ):
        self.model: Any = model
        self.text, self.rate, self.next_sentence = text, rate, next_sentence
        self.special_ids = special_ids(text)
        self.text_ids = text_token_ids(text.size, self.special_ids.specials)
        self.word_starts = word_start_mask(text) if whole_words else None

    def examples(
        self, records: Iterable[Mapping[str, str]], max_tokens: int, seed: int = MASKING_SEED
    ) -> Iterator[Example]:
        """Documents, cut into sentences, as pairs of stretches of at most `longest` tokens."""
        documents = [self.text.encode_ids(split_sentences(record["text"])) for record in records]
        generator = Generator().manual_seed(seed)
        for index, sentence_pair in enumerate(sentence_pairs(documents, max_tokens, generator)):
            start, end = self.special_ids.start, self.special_ids.end
            ids = [start, *sentence_pair.first, end, *sentence_pair.second, end]
            yield Example(index, ids, [0 if sentence_pair.is_next else 1])

    def collate(self, examples: Sequence[Example]) -> PretrainBatch:
        ids, valid = padded([example.source for example in examples])
        ends = (ids == self.special_ids.end).int()
        segments = ((ends.cumsum(1) - ends) * valid).clamp(max=1)
        return PretrainBatch(
            ids, valid, segments.long(), torch.tensor([p.target[0] for p in examples])
        )

    def loss(self, batch: PretrainBatch) -> Loss:
        """The sum of the two means, counted for each pair; words are hidden by torch's draws."""
        losses = self.batch_losses(batch, torch.default_generator)
        mean = losses.words_loss / max(losses.words, 1)
        if self.next_sentence:
            mean = mean + losses.pairs_loss / losses.pairs
        return Loss(mean * losses.pairs, losses.pairs)

    def batch_losses(self, batch: PretrainBatch, generator: Generator) -> PretrainLoss:
        maskable = maskable_positions(
            batch.ids, batch.valid, (self.special_ids.start, self.special_ids.end)
        )
        word_starts = None if self.word_starts is None else self.word_starts[batch.ids]
        masked_tokens = mask_tokens(
            batch.ids,
            maskable,
            mask_id=self.special_ids.mask,
            text_ids=self.text_ids,
            generator=generator,
            rate=self.rate,
            word_starts=word_starts,
        )
        encoded = self.model.encode(masked_tokens.ids, batch.valid, batch.segments)
        word_states, targets = (
            self.model.masked_word_states(encoded.states[masked_tokens.target_mask]),
            batch.ids[masked_tokens.target_mask],
        )
        valid = torch.ones_like(targets, dtype=torch.bool)
        word_loss = cross_entropy(self.model.output, word_states[None], targets[None], valid[None])
        correct_words = 0
        if not self.model.training:
            correct_words = int((self.model.logits(word_states).argmax(-1) == targets).sum())
        pairs_loss, correct_pairs = word_loss.total.new_zeros(()), 0
        if self.next_sentence:
            logits = self.model.following(encoded.pooled)
            pairs_loss = F.cross_entropy(logits, batch.next_sentence_labels, reduction="sum")
            correct_pairs = int((logits.argmax(-1) == batch.next_sentence_labels).sum())
        return PretrainLoss(
            word_loss.total,
            correct_words,
            word_loss.count,
            pairs_loss,
            correct_pairs,
            len(batch.ids),
        )

    @torch.no_grad()
    def total_losses(self, examples: Sequence[Example]) -> PretrainLoss:
        """On these pairs, with words hidden by a seed of our own: the same words each time."""
        self.model.eval()
        generator = Generator().manual_seed(MASKING_SEED)
        batches = iterate_by_length(
            examples, tokens_per_batch=TOKENS_PER_BATCH, collate=self.collate
        )
        columns = zip(*(self.batch_losses(batch, generator) for batch in batches), strict=True)
        return PretrainLoss._make(sum(column) for column in columns)

    def negative_log_likelihood(self, examples: Sequence[Example]) -> Loss:
        """-log p of the hidden words."""
        losses = self.total_losses(examples)
        return Loss(losses.words_loss, losses.words)

    def metrics(self, examples: Sequence[Example]) -> dict[str, float | str]:
        """How many of the hidden words, and of the pairs, are told right, in percent."""
        losses = self.total_losses(examples)
        metrics: dict[str, float | str] = {
            "accuracy": 100 * losses.correct_words / losses.words,
            "perplexity": perplexity(losses.words_loss.item(), losses.words),
            "words": losses.words,
        }
        if self.next_sentence:
            metrics["next_sentence"] = 100 * losses.correct_pairs / losses.pairs
        return {**metrics, "pairs": losses.pairs}

    def predict_line(self, text: str, location: str) -> tuple[str, dict[str, Any]]:
        """The text with each [MASK] filled in."""
        if MASK_TOKEN not in text:
            raise ValueError(f"{location}: there is no {MASK_TOKEN} in it to fill in")
        filled, candidates = text, self.mask_candidates(text)
        for best in candidates:
            filled = filled.replace(MASK_TOKEN, best[0][0], 1)
        masks = [[{"word": w, "probability": p} for w, p in best] for best in candidates]
        return filled, {"text": text, "filled": filled, "masks": masks}

    def masked_ids(self, text: str) -> list[int]:
        """START text END, with the mask in the place of each mark."""
        first, *parts = self.text.encode_ids(text.split(MASK_TOKEN))
        ids = [self.special_ids.start, *first]
        for part in parts:
            ids += [self.special_ids.mask, *part]
        return [*ids, self.special_ids.end]

    def token_name(self, token_id: int) -> str:
        """A token; the mask, which the vocabulary need not have, by its mark."""
        return MASK_TOKEN if token_id == self.special_ids.mask else self.text.token(token_id)

    @torch.no_grad()
    def mask_candidates(self, text: str, count: int = 5) -> list[list[tuple[str, float]]]:
        """The likeliest words in the place of each mark, with their probabilities."""
        row = torch.tensor([self.masked_ids(text)])
        encoded = self.model.eval().encode(row, torch.ones_like(row, dtype=torch.bool))
        positions = (row[0] == self.special_ids.mask).nonzero()[:, 0]
        probabilities = self.model.logits(
            self.model.masked_word_states(encoded.states[0, positions])
        ).softmax(-1)
        best = probabilities[:, : self.text.size].topk(min(count, self.text.size))
        return [
            [(self.text.token(n), p) for n, p in zip(ids, values, strict=True)]
            for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]


def word_start_mask(text: AnyTokenizer) -> Bool[Tensor, " v1"]:
    """Which pieces of a WordPiece vocabulary begin a word; the mask, where it is one more, does."""
    tokens = [text.token(token_id) for token_id in range(text.size)]
    if not any(token.startswith("##") for token in tokens):
        raise ValueError("whole_words needs pieces that know their words: text.kind = 'wordpiece'")
    return torch.tensor([not token.startswith("##") for token in tokens] + [True])
