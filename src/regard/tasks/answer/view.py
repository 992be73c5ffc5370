"""Attention maps and terminal text of answers."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from regard.data.corpus import Record
from regard.errors import InputError
from regard.tasks.answer.inputs import contains, token_span
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface, render_heatmap, render_legend

if TYPE_CHECKING:
    from regard.tasks.answer.task import AnswerTask

CONTEXT_LABEL = "(the context)"  # the key that sums the weights on the context and its end
CONTEXT_MARGIN = 6  # context tokens shown on each side of an answer


class QuestionAttention(NamedTuple):
    """`weights[j][t]`: the attention of token t of the context to token j of the question.

    If a model reads both as one row, the special tokens are rows too, and so is the context.
    """

    weights: list[list[float]]
    question: list[str]
    context: list[str]


def question_attention(task: "AnswerTask", record: Record) -> QuestionAttention | None:
    """Return the attention of the context around the best answer to the question.

    Of BiDAF it is the context-to-query attention, of a transformer the mean over the heads of the
    last layer. None if the model has no such attention.
    """
    [(_, question, context)] = task.tokenize([record])
    [prediction] = task.predict([record])
    best = prediction.candidates[0]
    span = token_span(context.offsets, best.start, best.end) or (0, 0)
    windows = list(task.windows(question, context))
    first, last = next((window for window in windows if contains(window, span)), windows[0])
    row, context_start = task.row(question, context, first, last)
    weights = task.observed_weights(task.layout.tensors([row], [context_start]))
    low, high = max(first, span[0] - CONTEXT_MARGIN), min(last, span[1] + 1 + CONTEXT_MARGIN)
    rows = slice(context_start + low - first, context_start + high - first)
    labels = [
        record["question"][start:end] for start, end in question.offsets[: task.max_tokens // 2]
    ]
    if "encoder.c2q" in weights:
        table = weights["encoder.c2q"][0, low - first : high - first]
    else:
        square = [w[0] for w in weights.values() if w.shape[-1] == w.shape[-2] == len(row)]
        if not square:
            return None
        mean_weights = square[-1].mean(0) if square[-1].ndim == 3 else square[-1]
        context_weights = mean_weights[rows, context_start:].sum(-1, keepdim=True)
        table = torch.cat([mean_weights[rows, :context_start], context_weights], -1)
        start, end = (task.layout.text.token(int(row[n])) for n in (0, context_start - 1))
        labels = [start, *labels, end, CONTEXT_LABEL]
    return QuestionAttention(
        table.mT.tolist(),
        labels,
        [record["text"][start:end] for start, end in context.offsets[low:high]],
    )


def required_attention(task: "AnswerTask", record: Record) -> QuestionAttention:
    """Return the attention to the question; raise an error if the model has none."""
    attention = question_attention(task, record)
    if attention is None:
        kind = type(task.model.encoder).__name__
        raise InputError(f"model {kind} has no attention to observe")
    return attention


def answer_map(task: "AnswerTask", record: Record) -> AttentionMap:
    """Return the attention of the context around the answer to the question."""
    [prediction] = task.predict([record])
    attention = required_attention(task, record)
    return AttentionMap(
        {"context near the answer to question": np.asarray(attention.weights, np.float32).T},
        attention.context,
        attention.question,
        title=f"{record['question']} {prediction.text}",
    )


def render_answer(task: "AnswerTask", record: Record, surface: Surface) -> str:
    """Return the answer in its context, and the attention of the words around it."""
    [prediction] = task.predict([record])
    attention = required_attention(task, record)
    heatmap = render_heatmap(attention.weights, attention.question, attention.context, surface)
    return f"{prediction.text}\n\n{heatmap}\n\nweight: {render_legend(surface)}"
