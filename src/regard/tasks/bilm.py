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

from regard.batching.batches import iterate_by_length
from regard.batching.example import Example, padded
from regard.metrics.language import perplexity
from regard.tasks.inputs import CharacterInputs
from regard.tasks.loss import Loss, cross_entropy
from regard.tasks.translate import TOKENS_PER_BATCH
from regard.text.sentences import split_sentences
from regard.text.special import END, START
from regard.text.special_ids import AnyTokenizer


@dataclass(frozen=True)
class BiLmBatch:
    """Sentences between their two marks: letters to read, words to tell."""

    characters: Int[Tensor, "b t c"]
    valid: Bool[Tensor, "b t"]
    ids: Int[Tensor, "b t"]


class BiLmLoss(NamedTuple):
    """-log p from either end, summed, and of how many words each."""

    forward: Tensor
    backward: Tensor
    words: int


class BiLmTask:
    """An ELMo and a vocabulary of words: what it reads are letters, what it tells are words."""

    fields = ("text",)
    special_token_count = 2  # of a sentence that are not words: its marks

    def __init__(self, model: nn.Module, text: AnyTokenizer):
        self.model: Any = model
        self.text, self.inputs = text, CharacterInputs(text)

    def examples(
        self,
        records: Iterable[Mapping[str, str]],
        max_tokens: int,
        seed: int = 0,  # noqa: ARG002 - nothing is drawn
    ) -> Iterator[Example]:
        """Documents, cut into sentences, and these into stretches of at most `longest` words."""
        for record in records:
            sentence_texts = split_sentences(record["text"])
            for sentence, ids in zip(
                sentence_texts, self.text.encode_ids(sentence_texts), strict=True
            ):
                words = self.text.words(sentence)
                for start in range(0, len(words), max_tokens):
                    span = slice(start, start + max_tokens)
                    yield Example(0, words[span], ids[span])

    def collate(self, examples: Sequence[Example]) -> BiLmBatch:
        inputs = self.inputs.tensors([example.source for example in examples])
        ids, _ = padded([[START, *example.target, END] for example in examples])
        return BiLmBatch(inputs["characters"], inputs["valid"], ids)

    def loss(self, batch: BiLmBatch) -> Loss:
        losses = self.batch_losses(batch)
        return Loss(losses.forward + losses.backward, 2 * losses.words)

    def batch_losses(self, batch: BiLmBatch) -> BiLmLoss:
        """Of every word but the first mark from the left, but the last from the right."""
        forward_states, backward_states = self.model.teacher_forced(batch.characters, batch.valid)
        output, valid = self.model.output, batch.valid[:, 1:]
        forward_loss = cross_entropy(output, forward_states, batch.ids[:, 1:], valid)
        backward_loss = cross_entropy(output, backward_states, batch.ids[:, :-1], valid)
        return BiLmLoss(forward_loss.total, backward_loss.total, forward_loss.count)

    @torch.no_grad()
    def total_losses(self, examples: Sequence[Example]) -> BiLmLoss:
        self.model.eval()
        all_losses = [
            self.batch_losses(batch)
            for batch in iterate_by_length(
                examples, tokens_per_batch=TOKENS_PER_BATCH, collate=self.collate
            )
        ]
        sides = zip(
            *((losses.forward.double(), losses.backward.double()) for losses in all_losses),
            strict=True,
        )
        forward, backward = (torch.stack(side).sum() for side in sides)
        return BiLmLoss(forward, backward, sum(losses.words for losses in all_losses))

    def negative_log_likelihood(self, examples: Sequence[Example]) -> Loss:
        losses = self.total_losses(examples)
        return Loss(losses.forward + losses.backward, 2 * losses.words)

    def metrics(self, examples: Sequence[Example]) -> dict[str, float | str]:
        """Perplexity of a word, the mark at the end included; of each direction, and of both."""
        forward, backward, words = self.total_losses(examples)
        return {
            "perplexity": perplexity((forward + backward).item(), 2 * words),
            "forward": perplexity(forward.item(), words),
            "backward": perplexity(backward.item(), words),
            "words": words,
        }

    def predict_line(self, text: str, location: str) -> tuple[str, dict[str, Any]]:
        """How surprising the text is: the perplexity of its words."""
        examples = list(self.examples([{"text": text}], max_tokens=max(1, len(text))))
        if not examples:
            raise ValueError(f"{location}: there is no word in it")
        metrics = self.metrics(examples)
        return f"{metrics['perplexity']:.2f}", {"text": text, **metrics}
