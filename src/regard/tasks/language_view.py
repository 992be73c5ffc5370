"""Attention maps and terminal text of language models."""

from collections.abc import Sequence

import torch
from torch.nn.functional import pad

from regard.attention.observe import observe
from regard.tasks.base import ExampleT
from regard.tasks.language_model import LanguageModelTask
from regard.tasks.map_tools import token_choices, token_map
from regard.view.annotations import MapAnnotations
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface, render_heatmap, render_legend

NEXT_TOKENS_SHOWN = 5


def language_map(
    task: LanguageModelTask[ExampleT], ids: Sequence[int], title: str, output_tokens: int = 0
) -> AttentionMap:
    """Return the attention of each token to those before it, and the likeliest next tokens.

    The last `output_tokens` ids are an output of the model.
    """
    ids = ids[task.prompt_slice(0)]
    output_start = max(0, len(ids) - output_tokens - 1)  # the query that writes the first of them
    with torch.no_grad(), observe(task.model.eval()) as recorded:
        states = task.model.teacher_forced(None, torch.tensor([ids], device=task.device))
        choices = token_choices(task.model.logits(states)[0], task.text.token)
    # A model that attends to earlier tokens, and not to the same, has one slot less.
    weights = {
        name: pad(table, (0, len(ids) - table.shape[-1]))
        for name, table in recorded.joined().items()
    }
    tokens = [task.text.token(n) for n in ids]
    return token_map(
        weights, tokens, title, MapAnnotations(choices=choices, output_start=output_start)
    )


def render_language(task: LanguageModelTask[ExampleT], ids: Sequence[int], surface: Surface) -> str:
    """Return a heat map and the next tokens: rows are tokens, columns those they attend to."""
    tokens, weights = task.ids_attention(ids)
    following = ", ".join(
        f"{token!r} {p:.1%}" for token, p in task.next_tokens_of_ids(ids, NEXT_TOKENS_SHOWN)
    )
    return (
        f"{render_heatmap(weights.tolist(), tokens, tokens, surface)}\n\n"
        f"weight: {render_legend(surface)}\nnext: {following}"
    )
