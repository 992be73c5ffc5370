"""Attention maps and terminal text of conversations."""

from typing import TYPE_CHECKING

from regard.attention.observe import named_attentions
from regard.data.corpus import Record
from regard.tasks.language_view import language_map
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface, render_heatmap, render_legend

if TYPE_CHECKING:
    from regard.tasks.chat.task import ChatTask


def chat_map(task: "ChatTask", record: Record) -> AttentionMap:
    """Return the attention of each token of a conversation to the tokens before it."""
    ids = task.prompt_ids(task.history(record["turns"]), 0)[:-1]
    return language_map(task, ids, "\t".join(record["turns"]))


def render_chat(task: "ChatTask", record: Record, surface: Surface) -> str:
    """Return the reply and a heat map: rows are its tokens, columns all tokens before them."""
    named_attentions(task.model)  # raises an error if there are none
    history = task.history(record["turns"])
    [reply] = task.generate_replies([history])
    turns = task.append_reply(history, reply)
    # The model reads the END before the reply when it predicts the first token.
    start = len(task.prompt_ids(turns[:-1], 0)) - 1
    tokens, weights = task.ids_attention(task.prompt_ids(turns, 0)[:-1])
    heatmap = render_heatmap(
        weights[start:].tolist(), [*tokens[start + 1 :], "</s>"], tokens, surface
    )
    return f"{reply.text}\n\n{heatmap}\n\nweight: {render_legend(surface)}"
