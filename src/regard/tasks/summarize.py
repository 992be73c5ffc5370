"""Summaries: a document into few words, of which some may be copied, known or not."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.batching.example import Batch, Example, collate
from regard.decoding.stepper import Hypothesis
from regard.models.pointer import coverage_loss
from regard.tasks.loss import Loss, cross_entropy
from regard.tasks.translate import RECORDS_PER_CHUNK, Alignment, TextPrediction, TranslateTask
from regard.text.copy_vocabulary import (
    CopyEncoding,
    decode_with_copies,
    encode_copy_sources,
    encode_copy_targets,
    tokens_with_copies,
)
from regard.text.special import END
from regard.text.tokenizer import Tokenizer


class CopyTrace(NamedTuple):
    """How a word of a summary came about."""

    word: str
    p_gen: float
    copied: float  # share of its probability that is of copying


class SummarizeTask(TranslateTask):
    """A translator that reads the beginning of a document, and may say words that it only saw.

    Of a document `longest` tokens are read, of a summary `longest_summary` are learnt; `cut` counts
    the documents and the summaries that were longer. Where the model copies, and tokens are words,
    unknown words of a document have ids of their own.
    """

    def __init__(
        self,
        model: nn.Module,
        source: Tokenizer,
        target: Tokenizer,
        max_tokens: int = 400,
        max_summary_tokens: int = 100,
    ):
        super().__init__(model, source, target)
        self.max_tokens, self.max_summary_tokens = max_tokens, max_summary_tokens
        self.truncated_counts = {"documents": 0, "summaries": 0}

    @property
    def can_copy(self) -> bool:
        return getattr(self.model, "copying", False)

    def examples(
        self, records: Iterable[Mapping[str, str]], max_tokens: int | None = None
    ) -> Iterator[Example]:
        """Records as ids, one by one; what is too long is cut, and counted."""
        stream = enumerate(records)
        while chunk := list(islice(stream, RECORDS_PER_CHUNK)):
            sources = self.encode_documents([record["source"] for _, record in chunk], max_tokens)
            summaries = [record["target"] for _, record in chunk]
            targets = self.encode_summaries(summaries, [document.words for document in sources])
            for (index, _), source, target in zip(chunk, sources, targets, strict=True):
                self.truncated_counts["documents"] += source.full_length > len(source.ids)
                self.truncated_counts["summaries"] += len(target) > self.max_summary_tokens
                truncated = target[: self.max_summary_tokens]
                yield Example(index, source.ids, truncated, words=source.words)

    def encode_documents(
        self, texts: Sequence[str], max_tokens: int | None = None
    ) -> list[CopyEncoding]:
        """Documents as they are read."""
        max_tokens = self.max_tokens if max_tokens is None else max_tokens
        if self.can_copy and self.source.is_word_level:
            return encode_copy_sources(self.source, texts, max_tokens)
        return [
            CopyEncoding(ids[:max_tokens], [], len(ids))
            for ids in self.source.encode_ids(list(texts))
        ]

    def encode_summaries(
        self, texts: Sequence[str], unknown_words: Sequence[Sequence[str]]
    ) -> list[list[int]]:
        """Summaries of documents that have these unknown words."""
        if any(unknown_words):
            return encode_copy_targets(self.target, texts, unknown_words)
        return self.target.encode_ids(list(texts))

    def loss(
        self,
        batch: Batch,
        smoothing: float = 0.0,
        teacher_forcing_rate: float = 1.0,
        coverage: float | None = 0.0,
    ) -> Loss:
        """-log p of the summaries and, if the model has it, `coverage` times the coverage loss.

        With None there is no coverage yet: neither its loss, nor what it tells the attention.
        """
        model = self.model
        if not hasattr(model, "decode_with_attention"):
            return super().loss(batch, smoothing, teacher_forcing_rate)
        memory = model.remember(batch.source, batch.source_valid)
        decoder_output = model.decode_with_attention(memory, batch.target_in, coverage is not None)
        target, valid = batch.target_out, batch.target_valid
        if model.copying:
            log_likelihoods = model.log_likelihood(decoder_output, batch.source, target, valid)
            loss = Loss(-log_likelihoods.sum(), len(log_likelihoods))
        else:
            loss = cross_entropy(
                model.output, decoder_output.states, target, valid, smoothing=smoothing
            )
        if not (model.coverage and coverage):
            return loss
        penalty = coverage * coverage_loss(decoder_output.weights, valid)
        return Loss(loss.total + penalty, loss.count)

    def source_examples(self, texts: Sequence[str]) -> list[Example]:
        documents = self.encode_documents(texts)
        return [
            Example(n, document.ids, [], words=document.words)
            for n, document in enumerate(documents)
        ]

    def max_lengths(self, batch: Batch, max_length: int) -> list[int]:
        return [max_length] * len(batch.indices)

    def to_prediction(self, hypothesis: Hypothesis, example: Example) -> TextPrediction:
        text = decode_with_copies(self.target, hypothesis.ids, example.words)
        return TextPrediction(text, hypothesis.score, hypothesis.log_prob, hypothesis.ids)

    def alignment(self, source: str, target: Sequence[int]) -> Alignment:
        """A finished summary, read once more word by word with somebody looking."""
        [example] = self.source_examples([source])
        [weights] = self.mean_attention_weights([example._replace(target=target)])
        return Alignment(
            tokens_with_copies(self.source, [*example.source, END], example.words),
            tokens_with_copies(self.target, [*target, END], example.words),
            weights,
        )

    @torch.no_grad()
    def copy_traces(self, source: str, target: Sequence[int]) -> list[CopyTrace]:
        """How each word of a finished summary, and its end, came about; nothing, if not copied."""
        if not self.can_copy:
            return []
        [example] = self.source_examples([source])
        batch, model = collate([example._replace(target=target)]), self.model.eval()
        memory = model.remember(batch.source, batch.source_valid)
        decoder_output = model.decode_with_attention(memory, batch.target_in)
        p_gen = decoder_output.gates[0].sigmoid()
        log_likelihoods = model.log_likelihood(
            decoder_output, batch.source, batch.target_out, batch.target_valid
        )
        copied = (1 - p_gen) * copy_weights(
            decoder_output.weights[0], batch.source[0], batch.target_out[0]
        )
        words = tokens_with_copies(self.target, [*target, END], example.words)
        return [
            CopyTrace(word, *values)
            for word, *values in zip(
                words,
                p_gen.tolist(),
                (copied / log_likelihoods.exp()).clamp(max=1).tolist(),
                strict=True,
            )
        ]


def copy_weights(
    weights: Float[Tensor, "t s"], source: Tensor, target: Tensor
) -> Float[Tensor, " t"]:
    """How much each target word looked at itself in the source."""
    return (weights * (source == target[:, None])).sum(-1)
