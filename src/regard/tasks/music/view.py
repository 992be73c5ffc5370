"""Attention maps and terminal text of piano rolls."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.data.formats.piano_rolls import RollStep
from regard.view.attention_map import AttentionMap
from regard.view.piano_roll import pitch_name
from regard.view.terminal import Surface, render_heatmap, render_legend

if TYPE_CHECKING:
    from regard.tasks.music.rolls import PianoRollTask

MAX_NEXT_KEYS = 5


def roll_map(task: "PianoRollTask", steps: Sequence[RollStep]) -> AttentionMap:
    """Return the attention of each step to those before it."""
    title = json.dumps(steps) if steps else ""
    weights = {"attention": task.attention_weights(steps)}
    return AttentionMap(weights, step_names(steps), title=title)


def render_roll(task: "PianoRollTask", steps: Sequence[RollStep], surface: Surface) -> str:
    """Return a heat map and the next keys: rows are steps, columns those they attend to."""
    weights, names = task.attention_weights(steps), step_names(steps)
    following = ", ".join(
        f"{pitch_name(pitch)} {p:.1%}" for pitch, p in task.next_keys(steps, MAX_NEXT_KEYS)
    )
    return (
        f"{render_heatmap(weights.tolist(), names, names, surface)}\n\n"
        f"weight: {render_legend(surface)}\nnext: {following}"
    )


def step_names(steps: Sequence[RollStep]) -> list[str]:
    """Return the pitches of each step as text, after the silence at the beginning."""
    return ["(begin)", *(" ".join(map(pitch_name, step)) or "(rest)" for step in steps)]
