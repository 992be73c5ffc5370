"""Attention maps and terminal text of pretraining."""

from typing import TYPE_CHECKING

import torch

from regard.attention.observe import observe
from regard.tasks.map_tools import token_map
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface, render_heatmap, render_legend

if TYPE_CHECKING:
    from regard.tasks.pretrain.task import PretrainTask


def pretraining_map(task: "PretrainTask", text: str) -> AttentionMap:
    """Return the attention among the tokens of a text, in which words may be masked."""
    ids = task.masked_ids(text)
    row = torch.tensor([ids], device=task.device)
    with torch.no_grad(), observe(task.model.eval()) as recorded:
        task.model.encode(row, torch.ones_like(row, dtype=torch.bool))
    return token_map(recorded.joined(), [task.token_name(token_id) for token_id in ids], text)


def render_last_layer(attention: AttentionMap, surface: Surface) -> str:
    """Return a heat map of the last layer: the mean of its heads."""
    weights = attention.layers[-1].weights.mean(0).tolist()
    heatmap = render_heatmap(weights, attention.queries.tokens, attention.keys.tokens, surface)
    return f"{attention.title}\n\n{heatmap}\n\nweight: {render_legend(surface)}"
