"""Attention maps and terminal text of summaries."""

import textwrap
from typing import TYPE_CHECKING

from regard.data.corpus import Record
from regard.errors import InputError
from regard.view.annotations import MapAnnotations
from regard.view.attention_map import AttentionMap
from regard.view.terminal import (
    MAX_ROW_LABEL_CELLS,
    Surface,
    label,
    render_heatmap,
    render_legend,
)

if TYPE_CHECKING:
    from regard.tasks.summarize.task import SummarizeTask

MIN_VISIBLE_WEIGHT = 0.05  # document words whose weights are all smaller are not shown
P_GEN_CELLS = 5  # width of p_gen in a row label: a space and four characters


def summary_map(task: "SummarizeTask", record: Record, target: str | None) -> AttentionMap:
    """Return the attention of each summary word, averaged over layers and heads."""
    text, summary, ids = summary_and_ids(task, record, target)
    alignment = task.alignment(text, ids)
    return AttentionMap(
        {"attention": alignment.weights},
        alignment.target,
        alignment.source,
        title=summary,
        annotations=MapAnnotations(choices=task.word_choices(text, ids)),
    )


def render_summary(
    task: "SummarizeTask", record: Record, surface: Surface, target: str | None = None
) -> str:
    """Return the summary and a heat map of the document words that it attends to.

    If the model copies, p_gen follows each word: the probability that it was generated.
    """
    if not task.model.cross_attentions:
        raise InputError(f"model {type(task.model).__name__} has no attention to the document")
    text, summary, ids = summary_and_ids(task, record, target)
    alignment, copy_traces = task.alignment(text, ids), task.copy_traces(text, ids)
    table = alignment.weights.tolist()
    attended = [
        index
        for index, column in enumerate(zip(*table, strict=True))
        if max(column) >= MIN_VISIBLE_WEIGHT
    ]
    rows = [
        f"{label(trace.word, MAX_ROW_LABEL_CELLS - P_GEN_CELLS, surface.ink)} {trace.p_gen:.2f}"
        for trace in copy_traces
    ] or alignment.target
    heatmap = render_heatmap(
        [[row[index] for index in attended] for row in table],
        rows,
        [alignment.source[index] for index in attended],
        surface,
    )
    words = f"{len(attended)} of {len(alignment.source)} words"
    note = f"{words} (weight at least {MIN_VISIBLE_WEIGHT:.0%})"
    if copy_traces:
        note += "; p_gen follows each summary word"
    note = "\n".join(textwrap.wrap(note, surface.width))
    return f"{summary}\n\n{heatmap}\n\nweight: {render_legend(surface)}\n{note}"


def summary_and_ids(
    task: "SummarizeTask", record: Record, target: str | None
) -> tuple[str, str, list[int]]:
    """Return the document, the model's best summary or the given one, and its ids."""
    text = task.document_text(record)
    if target is None:
        best = task.decode([text], prefixes=[task.prefix(record)])[0].best
        return text, best.text, best.ids
    [document] = task.encode_documents([text])
    [ids] = task.encode_summaries([target], [document.words])
    return text, target, ids
