"""Attention maps and terminal text of text classification."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from regard.data.corpus import Record
from regard.errors import InputError
from regard.tasks.base import Readout
from regard.tasks.encoder_inputs import BertInputs, CharacterInputs, SentenceInputs
from regard.tasks.map_tools import token_map
from regard.view.attention_map import AttentionMap
from regard.view.shaded_text import render_shaded_text
from regard.view.structure import scale_top
from regard.view.terminal import Surface, render_legend

if TYPE_CHECKING:
    from regard.tasks.classify.task import ClassifyTask


def classification_map(task: "ClassifyTask", record: Record) -> AttentionMap:
    """Return the attention among tokens or of the pooling; a document has a row per sentence."""
    [prediction] = task.predict([record])
    title = f"{prediction.label}: {input_text(record)}"
    if isinstance(task.inputs, SentenceInputs):
        return document_map(task, record, title)
    [row] = task.inputs.rows([record], task.max_tokens)
    return token_map(task.attention_weights(record), task.inputs.tokens(row), title)


def document_map(task: "ClassifyTask", record: Record, title: str) -> AttentionMap:
    """Return the weights of words in their sentences, and times the weight of the sentence."""
    sentences = task.weighted_sentences(record)
    tokens = [token for sentence in sentences for token in sentence.tokens]
    word_weights = np.zeros((len(sentences), len(tokens)), np.float32)
    start = 0
    for row, sentence in enumerate(sentences):
        word_weights[row, start : start + len(sentence.tokens)] = sentence.weights
        start += len(sentence.tokens)
    sentence_weights = np.array([[sentence.weight] for sentence in sentences], np.float32)
    return AttentionMap(
        {"words": word_weights, "words times sentence": word_weights * sentence_weights},
        [f"sentence {number}: {s.weight:.0%}" for number, s in enumerate(sentences, 1)],
        tokens,
        kind="pool",
        title=title,
    )


def input_text(record: Record) -> str:
    """Return the line of input that is parsed to this record."""
    return "\t".join(record[name] for name in ("text", "pair") if name in record)


def render_classification(task: "ClassifyTask", record: Record, surface: Surface) -> str:
    """Return the class, and the text with shaded words and the weights of its sentences.

    The shade of a word is its weight times the square root of the weight of its sentence. So words
    in sentences of little weight stay visible (Yang et al. 2016, section 3.5).
    """
    [prediction] = task.predict([record])
    sentences = task.weighted_sentences(record)
    strengths = [[math.sqrt(s.weight) * weight for weight in s.weights] for s in sentences]
    even_strength = max(
        (1 / len(sentences)) ** 0.5 / max(1, len(sentence.tokens)) for sentence in sentences
    )
    max_strength = scale_top(max(max(row, default=0.0) for row in strengths), even_strength)
    lines = [
        render_shaded_text(
            sentence.tokens,
            row,
            surface,
            max_weight=max_strength,
            total_weight=sentence.weight if len(sentences) > 1 else None,
        )
        for sentence, row in zip(sentences, strengths, strict=True)
    ]
    probability = prediction.probabilities[prediction.label]
    text, legend = "\n".join(lines), render_legend(surface, round(max_strength, 3))
    return f"{prediction.label} ({probability:.1%})\n\n{text}\n\nweight: {legend}"


def classification_readout(task: "ClassifyTask", record: Record) -> Readout:
    """Return the predicted class and its log-probability for any row of ids."""
    if isinstance(task.inputs, CharacterInputs | SentenceInputs):
        encoder = type(task.model.encoder).__name__
        raise InputError(f"--faithfulness is for models that read one row of ids, not {encoder}")
    [row] = task.inputs.rows([record], task.max_tokens)

    def log_probs(ids: Sequence[int]) -> Tensor:
        inputs = task.to_device(task.inputs.tensors([list(ids)]))
        return task.model(inputs)[0].log_softmax(-1)

    with torch.no_grad():
        label = int(log_probs(row).argmax())
    first = 1 if isinstance(task.inputs, BertInputs) else 0  # skips START
    return Readout(
        list(row),
        task.inputs.tokens(row),
        range(first, len(row) - 1),
        task.labels.names[label],
        lambda ids: log_probs(ids)[label],
        task.attention_names(),
        lambda ids: int(log_probs(ids).argmax()),
    )
