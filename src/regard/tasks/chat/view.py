"""Attention maps and terminal text of conversations."""

from typing import TYPE_CHECKING

from regard.attention.observe import named_attentions
from regard.data.corpus import Record
from regard.tasks.chat.turns import belief_turns
from regard.tasks.language_view import language_map
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface, render_heatmap, render_legend

if TYPE_CHECKING:
    from regard.tasks.chat.task import ChatTask


def chat_map(task: "ChatTask", record: Record, target: str | None = None) -> AttentionMap:
    """Return the attention of each token of a conversation to the tokens before it."""
    turns, title = task.history(record["turns"]), "\t".join(record["turns"])
    if target is None:
        return language_map(task, task.prompt_ids(turns, 0)[:-1], title)
    turns = task.with_reply(turns, target)
    [reply_ids] = task.text.encode_ids([turns[-1].text])
    return language_map(task, task.prompt_ids(turns, 0)[:-1], f"{title}\t{target}", len(reply_ids))


def reply_map(task: "ChatTask", record: Record) -> AttentionMap:
    """Return the attention of each token of a conversation, and of the model's reply."""
    turns = task.history(record["turns"])
    if task.database:
        [belief] = task.find_beliefs([turns])
        turns = [*turns, *belief_turns(belief, task.database)]
    [reply] = task.generate_turns(
        [turns], task.decoding, task.reranker, prefixes=[task.prefix(record)]
    )
    ids = [*task.prompt_ids(turns, len(reply.ids)), *reply.ids]
    return language_map(task, ids, "\t".join([*record["turns"], reply.text]), len(reply.ids))


def render_chat(
    task: "ChatTask", record: Record, surface: Surface, target: str | None = None
) -> str:
    """Return the reply and a heat map: rows are its tokens, columns all tokens before them."""
    named_attentions(task.model)  # raises an error if there are none
    history = task.history(record["turns"])
    if target is None:
        [reply] = task.generate_replies([history], prefixes=[task.prefix(record)])
        text, turns = reply.text, task.append_reply(history, reply)
    else:
        text, turns = target, task.with_reply(history, target)
    # The model reads the END before the reply when it predicts the first token.
    start = len(task.prompt_ids(turns[:-1], 0)) - 1
    tokens, weights = task.ids_attention(task.prompt_ids(turns, 0)[:-1])
    heatmap = render_heatmap(
        weights[start:].tolist(), [*tokens[start + 1 :], "</s>"], tokens, surface
    )
    return f"{text}\n\n{heatmap}\n\nweight: {render_legend(surface)}"
