"""Attention maps and terminal text of proteins."""

from typing import TYPE_CHECKING

from regard.data.corpus import Record
from regard.data.synthetic.points import parse_distances
from regard.errors import InputError
from regard.view.attention_map import AttentionMap
from regard.view.grid import render_grids
from regard.view.sequence import render_annotated_sequence
from regard.view.structure import scale_top
from regard.view.terminal import Surface, render_heatmap, render_legend

if TYPE_CHECKING:
    from regard.tasks.fold.distances import DistancePrediction, DistanceTask
    from regard.tasks.fold.states import ResidueStateTask

MAX_NAMED_RESIDUES = 40  # longer proteins have no map with names on its axes
MAX_TITLE_CHARACTERS = 60


def state_map(task: "ResidueStateTask", text: str) -> AttentionMap:
    """Return the attention among residues, of every layer and head."""
    attention = task.attention_weights(text)
    if not attention:
        kind = type(task.model.encoder).__name__
        raise InputError(f"model {kind} has no attention to observe")
    sequence = text.split()[0]
    residues = [f"{letter}{n}" for n, letter in enumerate(sequence[: task.max_tokens], 1)]
    return AttentionMap(attention, residues, title=sequence)


def render_states(task: "ResidueStateTask", record: Record, surface: Surface) -> str:
    """Return the states, a small map of each layer, and the last layer if it is short."""
    attention = state_map(task, record["text"])
    [prediction] = task.predict([record])
    layer_means = {
        f"layer {n}": layer.weights.mean(0) for n, layer in enumerate(attention.layers, 1)
    }
    even_weight = 1 / len(attention.keys.tokens)
    max_weight = scale_top(max(float(rows.max()) for rows in layer_means.values()), even_weight)
    grids = {name: rows.tolist() for name, rows in layer_means.items()}
    sections = [
        render_annotated_sequence(prediction.sequence, prediction.states, surface),
        render_grids(grids, surface, max_weight),
    ]
    tokens = attention.queries.tokens
    if len(tokens) <= MAX_NAMED_RESIDUES:
        last_table = [*grids.values()][-1]
        sections.append(render_heatmap(last_table, tokens, tokens, surface, max_weight))
    if len(prediction.sequence) > len(tokens):
        sections.append(f"the first {len(tokens)} residues, one window (train.max_tokens)")
    return "\n\n".join([*sections, f"weight: {render_legend(surface, round(max_weight, 3))}"])


def distance_map(task: "DistanceTask", record: Record) -> AttentionMap:
    """Return the attention of edges (i, j) to edges (i, k), averaged over i."""
    letters, table = parse_distances(record["text"], "record")
    names = [f"{letter}{n}" for n, letter in enumerate(letters or [""] * len(table), 1)]
    title = record["text"][:MAX_TITLE_CHARACTERS]
    return AttentionMap(task.attention_weights(record), names, title=title)


def render_distances(task: "DistanceTask", record: Record, surface: Surface) -> str:
    """Return given and predicted distances, and the attention among edges if there is any."""
    [prediction] = task.predict([record])
    sections = render_prediction(prediction, surface)
    if task.has_attention():
        attention = distance_map(task, record)
        means = {
            f"{n // 2 + 1}: {'ends' if n % 2 else 'starts'}": layer.weights.mean(0).tolist()
            for n, layer in enumerate(attention.layers)
        }
        even_weight = 1 / len(attention.keys.tokens)
        max_weight = scale_top(max(max(map(max, rows)) for rows in means.values()), even_weight)
        sections += [
            "Attention among edges with one start (or end), by their other end (or start):",
            render_grids(means, surface, max_weight),
            f"weight: {render_legend(surface, round(max_weight, 3))}",
        ]
    return "\n\n".join(sections)


def render_prediction(prediction: "DistancePrediction", surface: Surface) -> list[str]:
    """Return a line of counts, and maps in which the nearest pairs are darkest."""
    max_distance = max(max(row) for row in prediction.distances) or 1.0
    proximity = [[1 - d / max_distance for d in row] for row in prediction.distances]
    given_proximity = [
        [value if is_visible else 0.0 for value, is_visible in zip(row, visible, strict=True)]
        for row, visible in zip(proximity, prediction.visible, strict=True)
    ]
    hidden_count = sum(not is_visible for row in prediction.visible for is_visible in row) // 2
    tables = {
        "given": given_proximity,
        "predicted": proximity,
        "contacts": prediction.contact_probabilities,
    }
    counts = f"{len(proximity)} points, {hidden_count} distances predicted"
    scale = f"full is 0, empty is {max_distance:.1f} or not given"
    return [f"{counts}; {scale}", render_grids(tables, surface, 1.0)]
