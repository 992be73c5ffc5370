"""Attention maps and terminal text of histories: rows are steps, columns are steps before them."""

from typing import TYPE_CHECKING

from regard.attention.observe import named_attentions
from regard.data.corpus import Record
from regard.view.attention_map import AttentionMap
from regard.view.layer_names import layer_label
from regard.view.terminal import Surface, render_heatmap, render_legend

if TYPE_CHECKING:
    from regard.tasks.bandit.task import BanditTask

BEGIN = "(begin)"  # the step before the first action


def history_of(task: "BanditTask", record: Record) -> str:
    """Return the history of a record; in an environment, an episode without its last action."""
    if "history" in record:
        return record["history"]
    [episode] = task.predict_episodes([record])
    return episode.text.rpartition(" ")[0]


def history_map(task: "BanditTask", history: str) -> AttentionMap:
    """Return every attention of each step to itself and the steps before."""
    weights = task.attention_weights(history)
    return AttentionMap(weights, step_names(task, history), title=history or BEGIN)


def render_history(task: "BanditTask", history: str, surface: Surface) -> str:
    """Return the next action, and a heat map for each attention."""
    named_attentions(task.model)  # raises an error if there is no attention
    names = step_names(task, history)
    sections = [f"next: {task.predict_action(history).text}"]
    for name, table in task.attention_weights(history).items():
        sections.append(
            f"{layer_label(name)}:\n{render_heatmap(table.tolist(), names, names, surface)}"
        )
    return "\n\n".join([*sections, f"weight: {render_legend(surface)}"])


def step_names(task: "BanditTask", history: str) -> list[str]:
    """Return a name for each step: the action before it with its reward, and an MDP's state."""
    actions, rewards, states = task.spec.parse_history(history, "history")
    moves = [f"{action + 1}:{reward:g}" for action, reward in zip(actions, rewards, strict=True)]
    names = [BEGIN, *moves]
    if task.spec.states == 1:
        return names
    return [f"{name} {state + 1}" for name, state in zip(names, states, strict=True)]
