"""Summarization of a document, from which words may be copied.

t: target positions   s: source positions
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import ClassVar, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor

from regard.batching.batches import Batches, StreamedExamples
from regard.batching.example import Batch, Example, collate
from regard.batching.source import BatchSource
from regard.batching.store import store_examples
from regard.data.corpus import Corpus, Record
from regard.decoding.stepper import Hypothesis
from regard.errors import InputError
from regard.files import JsonObject
from regard.metrics.language import perplexity
from regard.metrics.summary import copy_rate, repetition_rate, rouge
from regard.metrics.translation import exact_match
from regard.models.pointer import Pointer, coverage_loss
from regard.models.protocols import AnySeq2SeqModel
from regard.tasks.base import (
    BatchOptions,
    FieldValue,
    InputField,
    Metrics,
    Prediction,
    ProgressCallback,
)
from regard.tasks.generation import RECORDS_PER_CHUNK, Decoding, TextOutput, TextPrediction
from regard.tasks.loss import Loss, cross_entropy
from regard.tasks.map_tools import step_log_probs, token_choices
from regard.tasks.prefix import NO_PREFIX, PREFIX_FIELD, OutputPrefix, find_prefix
from regard.tasks.seq2seq import Alignment, Seq2SeqTask
from regard.tasks.summarize import view
from regard.text.copy_vocabulary import (
    CopyEncoding,
    decode_with_copies,
    encode_copy_sources,
    encode_copy_targets,
    tokens_with_copies,
)
from regard.text.special import END
from regard.text.tokenizer import Tokenizer
from regard.view.annotations import TokenChoice
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface


@dataclass(frozen=True, slots=True)
class DocumentExample(Example):
    """A document, with the words that its ids beyond the vocabulary stand for, in order."""

    words: Sequence[str]


class CopyTrace(NamedTuple):
    """Origin of a word of a summary: generated or copied."""

    word: str
    p_gen: float
    copied: float  # share of the probability of the word that copying contributes


@dataclass
class TruncationCounts:
    """Numbers of pairs, of documents that are too long, and of summaries that are too long."""

    pairs: int = 0
    documents: int = 0
    summaries: int = 0


class SummarizeTask(Seq2SeqTask):
    """Summarization of documents.

    The model reads the first `max_tokens` tokens of a document and learns the first
    `max_summary_tokens` of a summary. If it copies, and tokens are words, each unknown
    word of a document has its own id. Coverage acts after `coverage_after` steps.
    """

    name: ClassVar = "summarize"
    input_fields = (InputField("document", "Document", "lines"),)
    example_unit: ClassVar = "documents"

    def __init__(
        self,
        model: AnySeq2SeqModel,
        source: Tokenizer,
        target: Tokenizer,
        *,
        decoding: Decoding,
        max_tokens: int = 400,
        max_summary_tokens: int = 100,
        label_smoothing: float = 0.0,
        coverage_weight: float = 1.0,
        coverage_after: int = 0,
    ):
        super().__init__(
            model,
            source,
            target,
            decoding=decoding,
            max_tokens=max_tokens,
            label_smoothing=label_smoothing,
        )
        self.max_summary_tokens = max_summary_tokens
        self.coverage_weight, self.coverage_after = coverage_weight, coverage_after
        self.best_resets_after = coverage_after if getattr(model, "coverage", False) else 0

    @property
    def can_copy(self) -> bool:
        return getattr(self.model, "copying", False)

    # --- training

    def examples(self, records: Iterable[Record]) -> Iterator[Example]:
        return self.counted_examples(TruncationCounts(), records)

    def counted_examples(
        self, counts: TruncationCounts, records: Iterable[Record]
    ) -> Iterator[Example]:
        """Yield examples; count and truncate documents and summaries that are too long."""
        stream = enumerate(records)
        while chunk := list(islice(stream, RECORDS_PER_CHUNK)):
            sources = self.encode_documents([record["source"] for _, record in chunk])
            summaries = [record["target"] for _, record in chunk]
            targets = self.encode_summaries(summaries, [document.words for document in sources])
            for (index, _), source, target in zip(chunk, sources, targets, strict=True):
                counts.pairs += 1
                counts.documents += source.full_length > len(source.ids)
                counts.summaries += len(target) > self.max_summary_tokens
                truncated = target[: self.max_summary_tokens]
                yield Example(index, source.ids, truncated)

    def evaluation_examples(self, records: Iterable[Record]) -> Iterator[Example]:
        return self.examples(records)

    def encode_documents(self, texts: Sequence[str]) -> list[CopyEncoding]:
        """Return the part of each document that the model reads."""
        if self.can_copy and self.source.is_word_level:
            return encode_copy_sources(self.source, texts, self.max_tokens)
        return [
            CopyEncoding(ids[: self.max_tokens], [], len(ids))
            for ids in self.source.encode_ids(list(texts))
        ]

    def encode_summaries(
        self, texts: Sequence[str], unknown_words: Sequence[Sequence[str]]
    ) -> list[list[int]]:
        """Return the ids of summaries of documents that have these unknown words."""
        if any(unknown_words):
            return encode_copy_targets(self.target, texts, unknown_words)
        return self.target.encode_ids(list(texts))

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[Batch]:
        """Return batches of pairs of about equal length; print how many were truncated."""
        counts = TruncationCounts()
        examples = store_examples(
            lambda: corpus.read("train"),
            partial(self.counted_examples, counts),
            self.fields,
            seed=options.seed,
            shuffle_buffer=options.shuffle_buffer,
        )
        for unit, count, limit in (
            ("documents", counts.documents, f"train.max_tokens = {self.max_tokens}"),
            (
                "summaries",
                counts.summaries,
                f"train.max_summary_tokens = {self.max_summary_tokens}",
            ),
        ):
            if isinstance(examples, StreamedExamples):  # not counted in advance
                warn_truncation(f"some {unit} perhaps", limit)
            elif count:
                warn_truncation(f"{count:,} of {counts.pairs:,} {unit}", limit)
        return Batches(
            examples,
            tokens_per_batch=options.tokens_per_batch,
            examples_per_batch=options.examples_per_batch,
            seed=options.seed,
            collate=self.collate,
        )

    def loss(self, batch: Batch, step: int) -> Loss:
        coverage = self.coverage_weight if step >= self.coverage_after else None
        return self.cross_entropy(batch, self.label_smoothing, coverage=coverage)

    def cross_entropy(
        self, batch: Batch, smoothing: float = 0.0, *, coverage: float | None = 0.0
    ) -> Loss:
        """Return -log p of the summaries plus `coverage` times the coverage loss, if any.

        With `coverage` None, the attention does not read coverage either.
        """
        model = self.model
        if not isinstance(model, Pointer):
            return super().cross_entropy(batch, smoothing)
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

    # --- inference

    def parse(self, line: str, location: str) -> Record:
        if not line.strip():
            raise InputError(f"{location}: the document is empty")
        return {"document": line}

    def form_values(self, record: Record) -> dict[str, FieldValue]:
        return {"document": self.document_text(record)}

    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[TextPrediction]:
        """Return the n best summaries of each document; print how many were truncated."""
        texts = [self.document_text(record) for record in records]
        self.warn_truncated_documents(texts)
        prefixes = [self.prefix(record) for record in records]
        return self.decode(texts, prefixes=prefixes, on_progress=on_progress)

    def document_text(self, record: Record) -> str:
        """Return the document of a record: "document" on the command line, "source" in data."""
        return record["document"] if "document" in record else record["source"]

    def prefix(self, record: Record) -> OutputPrefix:
        """Return the beginning of the summary that a record prescribes; it may copy words."""
        if not record.get(PREFIX_FIELD):
            return NO_PREFIX
        [document] = self.encode_documents([self.document_text(record)])
        copy_ids = {word: self.target.size + n for n, word in enumerate(document.words)}
        return find_prefix(
            record,
            lambda text: self.encode_summaries([text], [document.words])[0],
            lambda token: copy_ids.get(token, self.target.token_id(token)),
            END,
        )

    def warn_truncated_documents(self, texts: Sequence[str]) -> None:
        """Print a notice if documents are truncated."""
        count = sum(len(ids) > self.max_tokens for ids in self.source.encode_ids(list(texts)))
        if count:
            warn_truncation(
                f"{count:,} of {len(texts):,} documents", f"train.max_tokens = {self.max_tokens}"
            )

    def source_examples(self, texts: Sequence[str]) -> Sequence[DocumentExample]:
        documents = self.encode_documents(texts)
        return [
            DocumentExample(n, document.ids, [], document.words)
            for n, document in enumerate(documents)
        ]

    def max_output_length(self, source_length: int, max_length: int) -> int:  # noqa: ARG002
        """Return the maximum length of a summary, which does not depend on its document."""
        return max_length

    def partial_text(self, record: Record, ids: Sequence[int]) -> str | None:
        [example] = self.source_examples([self.document_text(record)])
        output_ids = [token_id for token_id in ids if token_id != END]
        return self.to_output(Hypothesis(output_ids, 0.0, 0.0), example).text

    def to_output(self, hypothesis: Hypothesis, example: Example) -> TextOutput:
        words = example.words if isinstance(example, DocumentExample) else ()
        text = decode_with_copies(self.target, hypothesis.ids, words)
        return TextOutput(text, hypothesis.score, hypothesis.log_prob, hypothesis.ids)

    def details(self, record: Record) -> JsonObject:
        """Return the origin of each word of the best summary, if the model copies."""
        if not self.can_copy:
            return {}
        text = self.document_text(record)
        best = self.decode([text], prefixes=[self.prefix(record)])[0].best
        traces = self.copy_traces(text, best.ids)
        return {"words": [trace._asdict() for trace in traces]}

    def metrics(self, records: Sequence[Record], predictions: Sequence[Prediction]) -> Metrics:
        """Return ROUGE, exact match, the shares of repeated and copied words, and the length."""
        outputs = [prediction.text for prediction in predictions]
        references = [record.get("references", [record["target"]]) for record in records]
        values, signature = rouge(outputs, references)
        metrics: Metrics = {}
        for name, value in values.items():
            metrics[name], metrics[f"{name}_signature"] = value, signature
        metrics["exact"] = exact_match(outputs, references)
        metrics["repeated"] = repetition_rate(outputs)
        texts = [self.document_text(record) for record in records]
        metrics["copied"] = self.copied_percentage(
            texts, cast("Sequence[TextPrediction]", predictions)
        )
        metrics["words"] = sum(len(text.split()) for text in outputs) / len(outputs)
        return metrics

    def copied_percentage(
        self, texts: Sequence[str], predictions: Sequence[TextPrediction]
    ) -> float:
        """Return the percentage of output tokens that occur in what the model read."""
        documents = self.encode_documents(texts)
        output_tokens = [
            tokens_with_copies(self.target, prediction.best.ids, document.words)
            for prediction, document in zip(predictions, documents, strict=True)
        ]
        return copy_rate(
            output_tokens,
            [
                tokens_with_copies(self.source, document.ids, document.words)
                for document in documents
            ],
        )

    def likelihood_metrics(self, records: Sequence[Record]) -> Metrics:
        loss = self.negative_log_likelihood(records)
        return {"perplexity": perplexity(loss.total.item(), loss.count)}

    # --- inspection

    def alignment(self, source: str, target: Sequence[int]) -> Alignment:
        [example] = self.source_examples([source])
        [weights] = self.mean_attention_weights([replace(example, target=target)])
        return Alignment(
            tokens_with_copies(self.source, [*example.source, END], example.words),
            tokens_with_copies(self.target, [*target, END], example.words),
            weights,
        )

    @torch.no_grad()
    def word_choices(
        self, source: str, target: Sequence[int]
    ) -> tuple[tuple[TokenChoice, ...], ...]:
        """Return the likeliest words at each step of a summary and at its end."""
        [example] = self.source_examples([source])
        batch = self.to_device(collate([example]))
        memory = self.model.eval().remember(batch.source, batch.source_valid)

        def token(token_id: int) -> str:
            return tokens_with_copies(self.target, [token_id], example.words)[0]

        return token_choices(step_log_probs(self.model, memory, target), token)

    @torch.no_grad()
    def copy_traces(self, source: str, target: Sequence[int]) -> list[CopyTrace]:
        """Return the origin of each word of a summary and of its end; none without copying."""
        model = self.model.eval()
        if not isinstance(model, Pointer):
            return []
        [example] = self.source_examples([source])
        batch = self.to_device(collate([replace(example, target=target)]))
        memory = model.remember(batch.source, batch.source_valid)
        decoder_output = model.decode_with_attention(memory, batch.target_in)
        if decoder_output.gates is None:  # the model cannot copy
            return []
        p_gen = decoder_output.gates[0].sigmoid()
        log_likelihoods = model.log_likelihood(
            decoder_output, batch.source, batch.target_out, batch.target_valid
        )
        copied = (1 - p_gen) * copy_weights(
            decoder_output.weights[0], batch.source[0], batch.target_out[0]
        )
        copied_share = (copied / log_likelihoods.exp()).clamp(max=1)
        words = tokens_with_copies(self.target, [*target, END], example.words)
        return [
            CopyTrace(*values)
            for values in zip(words, p_gen.tolist(), copied_share.tolist(), strict=True)
        ]

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:
        text = self.document_text(record)
        self.warn_truncated_documents([text])
        return view.summary_map(self, record, target)

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        text = self.document_text(record)
        self.warn_truncated_documents([text])
        return view.render_summary(self, record, surface, target)


def copy_weights(
    weights: Float[Tensor, "t s"], source: Tensor, target: Tensor
) -> Float[Tensor, " t"]:
    """Return the attention of each target token to its own occurrences in the source."""
    return (weights * (source == target[:, None])).sum(-1)


def warn_truncation(subject: str, limit: str) -> None:
    """Print a notice to standard error."""
    print(f"notice: {subject} are longer than {limit} tokens: the end is not read", file=sys.stderr)
