"""Attention maps and terminal text of tagged sentences."""

from typing import TYPE_CHECKING

from regard.errors import InputError
from regard.tasks.map_tools import token_map
from regard.view.attention_map import AttentionMap
from regard.view.shaded_text import render_shaded_text
from regard.view.terminal import Surface, render_heatmap, render_legend

if TYPE_CHECKING:
    from regard.tasks.tag.task import TagTask


def tag_map(task: "TagTask", text: str) -> AttentionMap:
    """Return the attention among the words of a sentence, or of the pooling."""
    return token_map(task.attention_weights(text), text.split(), text)


def render_tags(task: "TagTask", text: str, surface: Surface) -> str:
    """Return the sentence with its spans, and the attention among its words or of the pooling."""
    if not task.has_attention():
        kind = type(task.model.encoder).__name__
        raise InputError(f"model {kind} has no attention to observe")
    [prediction] = task.predict([{"text": text}])
    words, recorded = text.split(), task.attention_weights(text)
    square = [w[0] for w in recorded.values() if w.shape[-1] == w.shape[-2] == len(words)]
    if square and words:
        table = square[-1].mean(0) if square[-1].ndim == 3 else square[-1]
        heatmap = render_heatmap(table.tolist(), words, words, surface)
        return f"{prediction.text}\n\n{heatmap}\n\nweight: {render_legend(surface)}"
    last_weights = list(recorded.values())[-1][0].mean(0)
    weights = last_weights.flatten()[: len(words)].tolist()
    max_weight = max(weights, default=0.0) or 1.0
    shaded = render_shaded_text(words, weights, surface, max_weight=max_weight)
    return f"{prediction.text}\n\n{shaded}"
