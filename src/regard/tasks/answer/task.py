"""Question answering: the answer is a span of the context of a question, or none.

    p(start), p(end) = softmax over [no answer; the tokens of the context]
    loss = -log p(start) - log p(end); no answer where the answer is not in the window

The model reads a long context in windows, and the prediction is the best answer of all windows.
b: windows
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.batching.source import BatchSource
from regard.data.corpus import Corpus, Record, location
from regard.errors import InputError
from regard.layers.encoder_states import EncoderStates, SpanStates
from regard.layers.spans import best_spans
from regard.metrics.answers import ANSWER_SIGNATURE, answer_scores, best_threshold
from regard.models.protocols import Encoder
from regard.tasks.answer import view
from regard.tasks.answer.inputs import (
    AnyLayout,
    AnyTokenizedText,
    JoinedLayout,
    contains,
    sliding_windows,
    token_span,
)
from regard.tasks.answer.model import SpanReader, negative_log_prob
from regard.tasks.answer.prediction import (
    MAX_CANDIDATES,
    AnswerPrediction,
    log_sum_exp,
    to_prediction,
    trim_span,
)
from regard.tasks.base import (
    BatchOptions,
    FieldValue,
    InputField,
    Metrics,
    Prediction,
    ProgressCallback,
)
from regard.tasks.encoder_inputs import InputRow
from regard.tasks.encoding import EncoderTask
from regard.tasks.exportable import ExportableHead, check_without_lora, output_layer
from regard.tasks.generation import RECORDS_PER_CHUNK
from regard.tasks.loss import Loss
from regard.tasks.text_vectors import TextVectorOptions, embed_rows
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface


@dataclass(frozen=True)
class AnswerBatch:
    """Inputs of an encoder, and the first and last tokens of answers, from 1; 0 is no answer."""

    indices: Int[Tensor, " b"]
    inputs: dict[str, Tensor]
    starts: Int[Tensor, " b"]
    ends: Int[Tensor, " b"]


@dataclass(frozen=True, slots=True)
class AnswerExample:
    """A question with a window of its context, and the first and last tokens of the answer.

    `context_start` is the position of the context in the row. Tokens of the context count from 1;
    0 is no answer.
    """

    index: int
    row: InputRow
    context_start: int
    start: int
    end: int

    @property
    def lengths(self) -> tuple[int, int]:
        return len(self.row), 1


class AnswerTask(EncoderTask[AnswerExample, AnswerBatch, SpanReader]):
    """A model, how it reads questions and contexts, and which answers are allowed."""

    name: ClassVar = "answer"
    input_fields = (
        InputField("question", "Question"),
        InputField("context", "Text that holds the answer", "lines"),
    )
    unit: ClassVar = "questions"
    example_unit: ClassVar = "questions"

    def __init__(
        self,
        model: SpanReader,
        layout: AnyLayout,
        *,
        max_answer_tokens: int = 30,
        stride: int = 128,
        allow_no_answer: bool = False,
        max_tokens: int = 384,
        label_smoothing: float = 0.0,
        layer_decay: float = 1.0,
        vector_options: TextVectorOptions | None = None,
    ):
        super().__init__(
            model,
            max_tokens=max_tokens,
            label_smoothing=label_smoothing,
            layer_decay=layer_decay,
            vector_options=vector_options,
        )
        if max_tokens < 2:
            raise InputError(
                f"train.max_tokens: {max_tokens} tokens are too few for a question and a context; "
                "set it to 2 or more"
            )
        self.layout, self.packed = layout, layout.can_pack
        self.max_answer_tokens, self.stride = max_answer_tokens, stride
        self.allow_no_answer = allow_no_answer
        self.tuned_threshold: float | None = None  # the best threshold on the validation data

    # --- training

    def tokenize(
        self, records: Iterable[Record]
    ) -> Iterator[tuple[Record, AnyTokenizedText, AnyTokenizedText]]:
        """Yield records with the tokens of question and context; tokenize each context once."""
        stream = iter(records)
        while chunk := list(islice(stream, RECORDS_PER_CHUNK)):
            contexts = list(dict.fromkeys(record["text"] for record in chunk))
            tokenized_contexts = dict(zip(contexts, self.layout.tokenize(contexts), strict=True))
            questions = self.layout.tokenize([record["question"] for record in chunk])
            for record, question in zip(chunk, questions, strict=True):
                yield record, question, tokenized_contexts[record["text"]]

    def windows(
        self, question: AnyTokenizedText, context: AnyTokenizedText
    ) -> Iterator[tuple[int, int]]:
        """Yield (first, last + 1) of the windows; a question takes at most half the positions."""
        question_tokens = min(len(question.tokens), self.max_tokens // 2)
        capacity = self.layout.context_capacity(question_tokens, self.max_tokens)
        return sliding_windows(len(context.tokens), capacity, self.stride)

    def row(
        self, question: AnyTokenizedText, context: AnyTokenizedText, first: int, last: int
    ) -> tuple[list[int] | list[str], int]:
        """Return the row of a question and a window, and the start of the context in it."""
        question_tokens = question.tokens[: self.max_tokens // 2]
        row = self.layout.row(question_tokens, context.tokens[first:last])
        return row, self.layout.context_start(question_tokens)

    def examples(self, records: Iterable[Record]) -> Iterator[AnswerExample]:
        """Yield each window with the first answer of its question.

        A question is left out if no window holds its complete answer.
        """
        for index, (record, question, context) in enumerate(self.tokenize(records)):
            answer_span = None
            if record["answers"]:
                answer = record["answers"][0]
                end = answer["start"] + len(answer["text"])
                answer_span = token_span(context.offsets, answer["start"], end)
            windows = list(self.windows(question, context))
            if record["answers"] and not any(
                answer_span and contains(window, answer_span) for window in windows
            ):
                continue
            for first, last in windows:
                row, context_start = self.row(question, context, first, last)
                start, end = 0, 0
                if answer_span is not None and contains((first, last), answer_span):
                    start, end = (position - first + 1 for position in answer_span)
                yield AnswerExample(index, row, context_start, start, end)

    def collate(self, examples: Sequence[AnswerExample]) -> AnswerBatch:
        return AnswerBatch(
            torch.tensor([example.index for example in examples]),
            self.layout.tensors(
                [example.row for example in examples],
                [example.context_start for example in examples],
            ),
            torch.tensor([example.start for example in examples]),
            torch.tensor([example.end for example in examples]),
        )

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[AnswerBatch]:
        """Return batches of windows; raise an error for a question that must have an answer."""
        if not self.allow_no_answer:
            for index, record in enumerate(corpus.read("train")):
                if not record["answers"]:
                    raise InputError(
                        f"{location(corpus, 'train', index)}: has no answer; "
                        "set head.allow_no_answer = true"
                    )
        return super().batches(corpus, options)

    def cross_entropy(self, batch: AnswerBatch, smoothing: float = 0.0) -> Loss:
        logits = self.model(batch.inputs)
        start_loss = negative_log_prob(logits.starts, batch.starts, smoothing)
        end_loss = negative_log_prob(logits.ends, batch.ends, smoothing)
        return Loss(start_loss + end_loss, len(batch.indices))

    # --- inference

    def parse(self, line: str, location: str) -> Record:
        """Convert "question TAB context"; the question must fit into half of a window."""
        record = parse_record(line, location)
        [question] = self.layout.tokenize([record["question"]])
        count, limit = len(question.tokens), self.max_tokens // 2
        if count > limit:
            raise InputError(
                f"{location}: the question has {count} tokens, more than {limit}; shorten it"
            )
        return record

    def form_values(self, record: Record) -> dict[str, FieldValue]:
        return {"question": record["question"], "context": record["text"]}

    @torch.no_grad()
    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[AnswerPrediction]:
        self.model.eval()
        tokenized = list(self.tokenize(records))
        examples, window_origins = list[AnswerExample](), list[tuple[int, int]]()
        for index, (_, question, context) in enumerate(tokenized):
            for first, last in self.windows(question, context):
                row, context_start = self.row(question, context, first, last)
                examples.append(AnswerExample(len(examples), row, context_start, 0, 0))
                window_origins.append((index, first))
        span_scores: list[dict[tuple[int, int], float]] = [{} for _ in tokenized]
        totals: list[list[float]] = [[] for _ in tokenized]
        for batch in self.iterate_by_length(examples):
            logits = self.model(batch.inputs)
            spans = best_spans(logits.starts, logits.ends, self.max_answer_tokens)
            for batch_row, window in enumerate(batch.indices.tolist()):
                index, first = window_origins[window]
                totals[index].append(spans.total[batch_row].item())
                rows = (tensor[batch_row].tolist() for tensor in spans[:3])
                for score, start, end in zip(*rows, strict=True):
                    span = first + start, first + end
                    if score > span_scores[index].get(span, -math.inf):  # the better of two windows
                        span_scores[index][span] = score
            if on_progress is not None:  # a question counts with its first window
                on_progress(sum(window_origins[n][1] == 0 for n in batch.indices.tolist()))
        return [
            self.to_prediction(record["text"], context.offsets, scores, total)
            for (record, _, context), scores, total in zip(
                tokenized, span_scores, totals, strict=True
            )
        ]

    def to_prediction(
        self,
        text: str,
        offsets: Sequence[tuple[int, int]],
        scores: Mapping[tuple[int, int], float],
        totals: Sequence[float],
    ) -> AnswerPrediction:
        """Return the best answer of all windows.

        A probability is a share of the odds of all answers in all windows and of no answer.
        """
        log_total = log_sum_exp([*totals, *([0.0] if self.allow_no_answer else [])])
        ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:MAX_CANDIDATES]
        candidates = [
            trim_span(text, offsets[first][0], offsets[last][1], math.exp(score - log_total), score)
            for (first, last), score in ordered
        ]
        if not self.allow_no_answer:
            return to_prediction(text, candidates)
        return to_prediction(text, candidates, math.exp(-log_total), self.model.threshold.item())

    def embed(self, texts: Sequence[str]) -> Float[np.ndarray, "n d"]:
        """Return one vector for each text, of its states in the encoder."""
        limit = self.vector_options.max_tokens
        tokenized = self.layout.tokenize(texts) if texts else []
        rows = [self.layout.text_row(text.tokens[:limit]) for text in tokenized]
        return embed_rows(self.model.encoder, rows, self.layout.text_tensors, self.vector_options)

    def metrics(self, records: Sequence[Record], predictions: Sequence[Prediction]) -> Metrics:
        """Return exact match and F1 in percent, and by whether a question has an answer."""
        answers = [item.answer for item in cast("Sequence[AnswerPrediction]", predictions)]
        scores = answer_scores(answers, reference_answers(records))
        metrics: Metrics = {"exact": 100 * scores.exact, "f1": 100 * scores.f1}
        if scores.with_answer is not None and scores.without_answer is not None:
            metrics["exact_with_answer"] = 100 * scores.with_answer.exact
            metrics["f1_with_answer"] = 100 * scores.with_answer.f1
        if scores.without_answer is not None:
            metrics["exact_without"] = 100 * scores.without_answer.exact
        return {**metrics, "exact_signature": ANSWER_SIGNATURE}

    def validation_metric(self, name: str, records: Sequence[Record]) -> float:
        """Return the metric, with the best threshold for it if questions may have no answer."""
        predictions = self.predict(records)
        if self.allow_no_answer:
            answers = [p.candidates[0].text if p.candidates else "" for p in predictions]
            scores = [p.candidates[0].score if p.candidates else 0.0 for p in predictions]
            threshold = best_threshold(scores, answers, reference_answers(records), name)
            self.tuned_threshold = threshold
            self.model.threshold.fill_(threshold)
            predictions = [prediction.with_threshold(threshold) for prediction in predictions]
        return float(self.metrics(records, predictions)[name])

    def tuned_weights(self) -> dict[str, Tensor]:
        if self.tuned_threshold is None:
            return {}
        return {"threshold": torch.tensor(self.tuned_threshold)}

    # --- inspection

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:  # noqa: ARG002
        return view.answer_map(self, record)

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,  # noqa: ARG002
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        return view.render_answer(self, record, surface)

    def exportable_model(self) -> Encoder[EncoderStates | SpanStates]:
        check_without_lora(self.model.encoder)
        return self.model.encoder

    def exportable_head(self) -> ExportableHead:
        """Return the energies of starts and of ends as one layer of two rows."""
        if not isinstance(self.layout, JoinedLayout) or self.layout.is_word_level:
            raise InputError(
                "text.kind = words cannot be exported: the words of a context are split outside "
                "the tokenizer; train with text.kind=wordpiece"
            )
        if self.allow_no_answer:
            raise InputError(
                "head.allow_no_answer cannot be exported: transformers has no place for its "
                "threshold; train without it"
            )
        layers = output_layer(self.model.start), output_layer(self.model.end)
        weight, bias = (torch.cat([getattr(x, n) for x in layers]) for n in ("weight", "bias"))
        return ExportableHead("spans", weight, bias, (), self.max_tokens + 3)


def parse_record(line: str, location: str) -> Record:
    """Convert "question TAB context" to a record."""
    question, separator, context = line.partition("\t")
    if not separator:
        raise InputError(f"{location}: has no tab; a line is a question, a tab and its context")
    for name, value in (("question", question), ("context", context)):
        if not value.strip():
            raise InputError(
                f"{location}: the {name} is empty; a line is a question, a tab and its context"
            )
    return {"question": question, "text": context}


def reference_answers(records: Sequence[Record]) -> list[list[str]]:
    """Return the accepted answers of each question; an empty list for no answer."""
    return [[answer["text"] for answer in record["answers"]] for record in records]
