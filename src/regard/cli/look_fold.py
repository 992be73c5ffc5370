"""What residues and pairs looked at: for `regard look`, in the terminal and as a record."""

from regard.data.synthetic.points import parse_distances
from regard.train.distance import DistanceRun
from regard.train.fold import FoldRun, parse_sequence_lines
from regard.view.attention_map import AttentionMap
from regard.view.grid import render_grids
from regard.view.sequence import render_annotated_sequence
from regard.view.terminal import Surface, render_heatmap, render_legend

MAX_NAMED_RESIDUES = (
    40  # residues whose names are written beside a map; of more, small maps by layer
)


def render_fold(run: FoldRun, text: str, surface: Surface) -> str:
    """The states, and what each residue looked at: a small map of each layer, then the last."""
    map_ = fold_map(run, text)
    [prediction] = run.predict(parse_sequence_lines([text], "TEXT"))
    layer_means = {f"layer {n}": layer.weights.mean(0) for n, layer in enumerate(map_.layers, 1)}
    max_weight = max(float(rows.max()) for rows in layer_means.values()) or 1.0
    sections = [render_annotated_sequence(prediction.sequence, prediction.states, surface)]
    sections.append(
        render_grids(
            {name: rows.tolist() for name, rows in layer_means.items()}, surface, max_weight
        )
    )
    tokens = map_.queries.tokens
    if len(tokens) <= MAX_NAMED_RESIDUES:
        sections.append(
            render_heatmap([*layer_means.values()][-1].tolist(), tokens, tokens, surface)
        )
    if len(prediction.sequence) > len(tokens):
        sections.append(
            f"the first {len(tokens)} residues, which are read at once (train.max_tokens)"
        )
    return "\n\n".join([*sections, f"weight: {render_legend(surface, round(max_weight, 3))}"])


def fold_map(run: FoldRun, text: str) -> AttentionMap:
    """Every layer and head: what each residue looked at."""
    [text] = parse_sequence_lines([text], "TEXT")
    attention = run.task.attention_weights(text, run.max_tokens)
    if not attention:
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    residues = [f"{letter}{n}" for n, letter in enumerate(text.split()[0][: run.max_tokens], 1)]
    return AttentionMap(attention, residues, title=text.split()[0])


def render_distances(run: DistanceRun, text: str, surface: Surface) -> str:
    """What was shown and what is told, nearest darkest; and what edges looked at."""
    [prediction] = run.predict([text], "TEXT")
    max_distance = max(max(row) for row in prediction.distances) or 1.0
    given_proximity = [
        [1 - d / max_distance if is_given else 0.0 for d, is_given in zip(row, given, strict=True)]
        for row, given in zip(prediction.distances, prediction.shown, strict=True)
    ]
    predicted_proximity = [[1 - d / max_distance for d in row] for row in prediction.distances]
    hidden_count = sum(not is_shown for row in prediction.shown for is_shown in row) // 2
    sections = [
        (
            f"{len(predicted_proximity)} points, {hidden_count} distances told; full is 0, "
            f"empty is {max_distance:.1f} or not shown"
        ),
        render_grids(
            {
                "shown": given_proximity,
                "told": predicted_proximity,
                "contacts": prediction.contacts,
            },
            surface,
            1.0,
        ),
    ]
    if run.task.edge_attentions():
        map_ = distance_map(run, text)
        means = {
            f"{n // 2 + 1}: {'ends' if n % 2 else 'starts'}": layer.weights.mean(0).tolist()
            for n, layer in enumerate(map_.layers)
        }
        sections.append("What edges of one start (or end) looked at, by their other one:")
        max_weight = max(max(map(max, rows)) for rows in means.values()) or 1.0
        sections.append(render_grids(means, surface, max_weight))
        sections.append(f"weight: {render_legend(surface, round(max_weight, 3))}")
    return "\n\n".join(sections)


def distance_map(run: DistanceRun, text: str) -> AttentionMap:
    """What edges i, j looked at, as edges i, k, in the mean over i; by layer and head."""
    letters, table = parse_distances(text, "TEXT")
    names = [f"{letter}{n}" for n, letter in enumerate(letters or "." * len(table), 1)]
    return AttentionMap(run.task.attention_weights(text, "TEXT"), names, title=text[:60])
