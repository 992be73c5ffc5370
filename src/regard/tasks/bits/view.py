"""Attention maps and terminal text of memory: rows are steps, columns are slots."""

from typing import TYPE_CHECKING

from regard.view.attention_map import AttentionMap
from regard.view.layer_names import layer_label
from regard.view.terminal import Surface, render_heatmap, render_legend

if TYPE_CHECKING:
    from regard.tasks.bits.task import BitsTask

MIN_VISIBLE_WEIGHT = 0.05  # slots in which no weight is as high are left out


def memory_map(task: "BitsTask", text: str) -> AttentionMap:
    """Return steps by memory slots, for each head that reads or writes."""
    attention = task.step_attention(text)
    slots = range(next(iter(attention.weights.values())).shape[-1])
    return AttentionMap(
        attention.weights, attention.steps, [*map(str, slots)], kind="memory", title=text
    )


def render_memory(task: "BitsTask", text: str, surface: Surface) -> str:
    """Return the prediction and a heat map for each head, with the slots that it used."""
    attention = task.step_attention(text)
    [prediction] = task.predict([{"source": text}])
    unit = "bit" if prediction.wrong == 1 else "bits"
    sections = [f"{prediction.text} ({prediction.wrong} {unit} wrong)"]
    for name, heads in attention.weights.items():
        for number, table in enumerate(heads.tolist(), 1):
            used_slots = [
                slot
                for slot, column in enumerate(zip(*table, strict=True))
                if max(column) >= MIN_VISIBLE_WEIGHT
            ]
            rows = [[row[slot] for slot in used_slots] for row in table]
            title = (
                f"{layer_label(name)}, head {number}, slots with at least {MIN_VISIBLE_WEIGHT:.0%}:"
            )
            heatmap = render_heatmap(rows, attention.steps, [*map(str, used_slots)], surface)
            sections.append(f"{title}\n{heatmap}")
    return "\n\n".join([*sections, f"weight: {render_legend(surface)}"])
