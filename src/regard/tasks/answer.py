"""Answering a question by a stretch of a context; any encoder with a head on it.

    p(start), p(end) = softmax over [none; the parts of the context]
    loss = -log p(start) - log p(end);  none where the answer is not in the window
b: windows   p: 1 + parts of a context; the first place is for none   d: width
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.batching.example import Example
from regard.layers.encoder_states import SpanStates
from regard.layers.output_heads import ClassifierHead
from regard.layers.spans import best_spans
from regard.tasks.answer_inputs import Layout, TokenizedText, sliding_windows, token_span
from regard.tasks.headed import EncoderTask, EncoderWithHead
from regard.tasks.loss import Loss
from regard.tasks.translate import RECORDS_PER_CHUNK

MAX_CANDIDATES = 5  # answers that are told
CONTEXT_MARGIN = 6  # parts of the context, on each side of an answer, that are shown with it


class SpanLogits(NamedTuple):
    """How much speaks for each place as the first of an answer, and as its last; -inf: padding."""

    starts: Float[Tensor, "b p"]
    ends: Float[Tensor, "b p"]


class AnswerSpan(NamedTuple):
    """context[start:end], its probability, and the log of its odds against no answer."""

    text: str
    start: int
    end: int
    probability: float
    score: float


class AnswerPrediction(NamedTuple):
    """What is said (None: that there is no answer), the best stretches, and p(no answer)."""

    span: AnswerSpan | None
    candidates: list[AnswerSpan]
    no_answer_probability: float

    @property
    def text(self) -> str:
        return "" if self.span is None else self.span.text


class QuestionAttention(NamedTuple):
    """`weights[j][t]`: how much part t of the context looked at part j of the question."""

    weights: list[list[float]]
    question: list[str]
    context: list[str]


@dataclass(frozen=True)
class AnswerBatch:
    """As an encoder wants them, and where their answers are: 0 is none, else from 1."""

    indices: Int[Tensor, " b"]
    inputs: dict[str, Tensor]
    starts: Int[Tensor, " b"]
    ends: Int[Tensor, " b"]


class SpanReader(EncoderWithHead):
    """An encoder with a head for the first and one for the last part of an answer.

    No answer is the first position of a row (BERT's [CLS]); where the encoder has the context
    `apart`, it has one energy for all contexts (Levy et al. 2017, 3.2). `threshold` is the score
    below which a question is left without an answer.
    """

    threshold: Tensor

    def __init__(
        self,
        encoder: Any,
        *,
        separate_context: bool = False,
        hidden_dim: int | None = None,
        dropout: float = 0.0,
        frozen: bool = False,
    ):
        super().__init__(encoder, frozen=frozen)
        self.start, self.end = (
            ClassifierHead(encoder.width, 1, hidden_dim=hidden_dim, dropout=dropout)
            for _ in range(2)
        )
        self.none = nn.Parameter(torch.zeros(2)) if separate_context else None
        self.register_buffer("threshold", torch.zeros(()))

    def forward(self, inputs: Mapping[str, Tensor]) -> SpanLogits:
        encoder_inputs = {
            name: tensor for name, tensor in inputs.items() if name not in ("begins", "counts")
        }
        encoded = self.encoder.encode(**encoder_inputs)
        ends = encoded.ends if isinstance(encoded, SpanStates) else encoded.states
        sides = self.start(encoded.states)[..., 0], self.end(ends)[..., 0]
        if self.none is None:
            return SpanLogits(
                *(gather_context(side, inputs["begins"], inputs["counts"]) for side in sides)
            )
        energies = (side.masked_fill(~encoded.valid, -torch.inf) for side in sides)
        none_energies = self.none[:, None, None].expand(2, len(encoded.valid), 1)
        return SpanLogits(
            *(torch.cat(columns, 1) for columns in zip(none_energies, energies, strict=True))
        )


def gather_context(
    energy: Float[Tensor, "b t"], context_starts: Int[Tensor, " b"], counts: Int[Tensor, " b"]
) -> Float[Tensor, "b p"]:
    """That of the first position, and those of the context."""
    offset = torch.arange(max(1, int(counts.max())), device=energy.device)
    positions = (context_starts[:, None] + offset).clamp(max=energy.shape[1] - 1)
    context = energy.gather(1, positions).masked_fill(offset >= counts[:, None], -torch.inf)
    return torch.cat([energy[:, :1], context], 1)


class AnswerTask(EncoderTask):
    """A model, how it reads, how long an answer and a window may be, and whether there is one."""

    def __init__(
        self,
        model: SpanReader,
        layout: Layout,
        *,
        max_answer_tokens: int = 30,
        stride: int = 128,
        no_answer: bool = False,
    ):
        self.model, self.layout = model, layout
        self.max_answer_tokens, self.stride, self.no_answer = max_answer_tokens, stride, no_answer
        self.can_pack = layout.can_pack

    def tokenize(
        self, records: Iterable[Mapping[str, Any]]
    ) -> Iterator[tuple[Any, TokenizedText, TokenizedText]]:
        """Records with their question and their context in parts; each context is cut once."""
        stream = iter(records)
        while chunk := list(islice(stream, RECORDS_PER_CHUNK)):
            contexts = list(dict.fromkeys(record["text"] for record in chunk))
            tokenized_contexts = dict(zip(contexts, self.layout.tokenize(contexts), strict=True))
            questions = self.layout.tokenize([record["question"] for record in chunk])
            for record, question in zip(chunk, questions, strict=True):
                yield record, question, tokenized_contexts[record["text"]]

    def windows(
        self, question: TokenizedText, context: TokenizedText, max_tokens: int
    ) -> Iterator[tuple[int, int]]:
        """Of the context; a question has half of all positions, at most."""
        capacity = self.layout.context_capacity(
            min(len(question.tokens), max_tokens // 2), max_tokens
        )
        return sliding_windows(len(context.tokens), capacity, self.stride)

    def examples(
        self, records: Iterable[Mapping[str, Any]], max_tokens: int = 384
    ) -> Iterator[Example]:
        """Windows with the first answer of each question, as [begin, first, last]; 0: none.

        A question whose answer is in no window as a whole is left out.
        """
        for index, (record, question, context) in enumerate(self.tokenize(records)):
            answer_span = None
            if record["answers"]:
                answer = record["answers"][0]
                end = answer["start"] + len(answer["text"])
                answer_span = token_span(context.offsets, answer["start"], end)
            windows = list(self.windows(question, context, max_tokens))
            if record["answers"] and not any(
                answer_span and contains(window, answer_span) for window in windows
            ):
                continue
            for first, last in windows:
                row, context_start = self.row(question, context, first, last, max_tokens)
                target = [0, 0]
                if answer_span is not None and contains((first, last), answer_span):
                    target = [position - first + 1 for position in answer_span]
                yield Example(index, row, [context_start, *target])

    def row(
        self,
        question: TokenizedText,
        context: TokenizedText,
        first: int,
        last: int,
        max_tokens: int,
    ) -> tuple[list[Any], int]:
        question_tokens = question.tokens[: max_tokens // 2]
        return self.layout.row(
            question_tokens, context.tokens[first:last]
        ), self.layout.context_start(question_tokens)

    def collate(self, examples: Sequence[Example]) -> AnswerBatch:
        context_starts, starts, ends = zip(*(example.target for example in examples), strict=True)
        return AnswerBatch(
            torch.tensor([example.index for example in examples]),
            self.layout.tensors([example.source for example in examples], context_starts),
            torch.tensor(starts),
            torch.tensor(ends),
        )

    def loss(self, batch: AnswerBatch, smoothing: float = 0.0) -> Loss:
        logits = self.model(batch.inputs)
        start_loss = negative_log_prob(logits.starts, batch.starts, smoothing)
        return Loss(
            start_loss + negative_log_prob(logits.ends, batch.ends, smoothing), len(batch.indices)
        )

    @torch.no_grad()
    def predict(
        self,
        records: Sequence[Mapping[str, Any]],
        max_tokens: int = 384,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[AnswerPrediction]:
        """To each question; true answers in the records are not looked at."""
        self.model.eval()
        tokenized = list(self.tokenize(records))
        examples, window_origins = list[Example](), list[tuple[int, int]]()
        for index, (_, question, context) in enumerate(tokenized):
            for first, last in self.windows(question, context, max_tokens):
                row, context_start = self.row(question, context, first, last, max_tokens)
                examples.append(Example(len(examples), row, [context_start, 0, 0]))
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
        """The best of all windows. Probabilities are of all that may be said, in any window."""
        log_total = log_sum_exp([*totals, *([0.0] if self.no_answer else [])])
        ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:MAX_CANDIDATES]
        candidates = [
            trim_span(text, offsets[first][0], offsets[last][1], math.exp(score - log_total), score)
            for (first, last), score in ordered
        ]
        no_answer_probability = math.exp(-log_total) if self.no_answer else 0.0
        is_unanswered = not candidates or (
            self.no_answer and candidates[0].score < self.model.threshold.item()
        )
        return AnswerPrediction(
            None if is_unanswered else candidates[0], candidates, no_answer_probability
        )

    def question_attention(
        self, record: Mapping[str, Any], max_tokens: int = 384
    ) -> QuestionAttention | None:
        """What parts of the context at the best answer look at in the question; None: nothing.

        Of a transformer's attentions it is the last layer's, in the mean of its heads.
        """
        [(_, question, context)] = self.tokenize([record])
        [answer] = self.predict([record], max_tokens)
        best = answer.candidates[0]
        span = token_span(context.offsets, best.start, best.end) or (0, 0)
        windows = list(self.windows(question, context, max_tokens))
        first, last = next((window for window in windows if contains(window, span)), windows[0])
        row, context_start = self.row(question, context, first, last, max_tokens)
        weights = self.observed_weights(self.layout.tensors([row], [context_start]))
        low, high = max(first, span[0] - CONTEXT_MARGIN), min(last, span[1] + 1 + CONTEXT_MARGIN)
        question_offsets = question.offsets[: max_tokens // 2]
        if "encoder.c2q" in weights:
            table = weights["encoder.c2q"][0, low - first : high - first]
        else:
            square = [w[0] for w in weights.values() if w.shape[-1] == w.shape[-2] == len(row)]
            if not square:
                return None
            mean_weights = square[-1].mean(0) if square[-1].ndim == 3 else square[-1]
            table = mean_weights[
                context_start + low - first : context_start + high - first,
                1 : 1 + len(question_offsets),
            ]
        return QuestionAttention(
            table.mT.tolist(),
            [record["question"][start:end] for start, end in question_offsets],
            [record["text"][start:end] for start, end in context.offsets[low:high]],
        )


def negative_log_prob(energy: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """-log p of what is true, summed; a share `smoothing` of it goes to all places that are."""
    log_probs = energy.log_softmax(-1)
    target_loss = -log_probs.gather(1, target[:, None]).sum()
    if not smoothing:
        return target_loss
    valid = energy > -torch.inf
    uniform_loss = -(log_probs.masked_fill(~valid, 0.0).sum(1) / valid.sum(1)).sum()
    return (1 - smoothing) * target_loss + smoothing * uniform_loss


def contains(window: tuple[int, int], span: tuple[int, int]) -> bool:
    return window[0] <= span[0] and span[1] < window[1]


def log_sum_exp(scores: Sequence[float]) -> float:
    top = max(scores, default=-math.inf)
    return (
        top + math.log(sum(math.exp(score - top) for score in scores)) if top > -math.inf else top
    )


def trim_span(text: str, start: int, end: int, probability: float, score: float) -> AnswerSpan:
    """Without white space at its ends, which some tokens have."""
    answer = text[start:end]
    start += len(answer) - len(answer.lstrip())
    answer = answer.strip()
    return AnswerSpan(answer, start, start + len(answer), probability, score)
