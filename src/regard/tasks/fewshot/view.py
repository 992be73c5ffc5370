"""Attention maps and terminal text of episodes: labeled examples and the query."""

from typing import TYPE_CHECKING

from regard.attention.observe import named_attentions
from regard.data.corpus import Record
from regard.view.attention_map import AttentionMap
from regard.view.layer_names import layer_label
from regard.view.terminal import Surface, render_heatmap, render_legend

if TYPE_CHECKING:
    from regard.tasks.fewshot.task import FewshotTask

QUERY = "(the query)"  # name of its step


def episode_map(task: "FewshotTask", record: Record) -> AttentionMap:
    """Return every attention among the examples and the query."""
    named_attentions(task.model.learner)  # raises an error if there is no attention
    [prediction] = task.predict([record])
    episode = task.episode(record)
    title = f"{prediction.text}: {record['input']}" if "input" in record else prediction.text
    return AttentionMap(task.attention_weights(episode), [*episode.names, QUERY], title=title)


def render_episode(task: "FewshotTask", record: Record, surface: Surface) -> str:
    """Return the classes and the attention of the query: rows are examples, columns attentions."""
    named_attentions(task.model.learner)  # raises an error if there is no attention
    [prediction] = task.predict([record])
    episode = task.episode(record)
    attention = task.attention_weights(episode)
    columns = [weights[-1].tolist() for weights in attention.values()]
    rows = [list(row) for row in zip(*columns, strict=True)]
    names = [layer_label(name.removeprefix("learner.")) for name in attention]
    heatmap = render_heatmap(rows, [*episode.names, QUERY], names, surface)
    ordered = sorted(prediction.probabilities.items(), key=lambda pair: -pair[1])
    class_list = ", ".join(f"{name} {probability:.1%}" for name, probability in ordered)
    return f"{class_list}\n\nAttention of {QUERY}:\n{heatmap}\n\nweight: {render_legend(surface)}"
