"""Attention maps and terminal text of tagged sentences."""

from collections import Counter
from typing import TYPE_CHECKING

from regard.errors import InputError
from regard.tasks.map_tools import token_map, word_indices
from regard.view.attention_map import AttentionMap
from regard.view.shaded_text import render_shaded_text
from regard.view.structure import scale_top
from regard.view.terminal import Surface, render_heatmap, render_legend

if TYPE_CHECKING:
    from regard.tasks.tag.task import TagTask


def tag_map(task: "TagTask", text: str) -> AttentionMap:
    """Return the attention among the positions that the model reads, or of the pooling.

    A position is a word, a piece of a word, or a special token.
    """
    if not task.has_attention():
        kind = type(task.model.encoder).__name__
        raise InputError(f"model {kind} has no attention to observe")
    words = [word.text for word in task.splitter.split(text)]
    row = task.word_inputs.row(words, task.max_tokens)
    positions = task.word_inputs.word_indices(row)
    piece_counts = Counter(positions)
    labels = [
        token if word is None or piece_counts[word] > 1 else words[word]
        for token, word in zip(task.word_inputs.tokens(row), positions, strict=True)
    ]
    return token_map(task.attention_weights(text), labels, text, word_ids=word_indices(positions))


def render_tags(task: "TagTask", text: str, surface: Surface) -> str:
    """Return the sentence with its spans, and the last attention, averaged over its heads."""
    attention = tag_map(task, text)
    [prediction] = task.predict([{"text": text}])
    layer, tokens = attention.layers[-1], attention.keys.tokens
    table = layer.weights.mean(0)
    if layer.kind == "self":
        heatmap = render_heatmap(table.tolist(), tokens, tokens, surface)
        return f"{prediction.text}\n\n{heatmap}\n\nweight: {render_legend(surface)}"
    weights = table.mean(0).tolist()
    max_weight = scale_top(max(weights), 1 / len(weights))
    shaded = render_shaded_text(tokens, weights, surface, max_weight=max_weight)
    legend = render_legend(surface, round(max_weight, 3))
    return f"{prediction.text}\n\n{shaded}\n\nweight: {legend}"
