"""What residues and pairs looked at: for `regard look`, in the terminal and as a record."""

from regard.corpora.points import distances_of
from regard.train.distance import DistanceRun
from regard.train.fold import FoldRun, sequenced
from regard.view.grid import grids
from regard.view.map import AttentionMap
from regard.view.terminal import Surface, heat, scale
from regard.view.under import under

WIDEST = 40  # residues whose names are written beside a map; of more, small maps by layer


def looked_at_residues(run: FoldRun, text: str, surface: Surface) -> str:
    """The states, and what each residue looked at: a small map of each layer, then the last."""
    seen = map_of_fold(run, text)
    [folded] = run.predict(sequenced([text], "TEXT"))
    means = {f"layer {n}": one.weights.mean(0) for n, one in enumerate(seen.layers, 1)}
    top = max(float(rows.max()) for rows in means.values()) or 1.0
    parts = [under(folded.sequence, folded.states, surface)]
    parts.append(grids({name: rows.tolist() for name, rows in means.items()}, surface, top))
    tokens = seen.queries.tokens
    if len(tokens) <= WIDEST:
        parts.append(heat([*means.values()][-1].tolist(), tokens, tokens, surface))
    if len(folded.sequence) > len(tokens):
        parts.append(f"the first {len(tokens)} residues, which are read at once (train.longest)")
    return "\n\n".join([*parts, f"weight: {scale(surface, round(top, 3))}"])


def map_of_fold(run: FoldRun, text: str) -> AttentionMap:
    """Every layer and head: what each residue looked at."""
    [text] = sequenced([text], "TEXT")
    seen = run.task.looked(text, run.longest)
    if not seen:
        raise ValueError(f"model {run.settings.model.kind} has no attention to look at")
    residues = [f"{letter}{n}" for n, letter in enumerate(text.split()[0][: run.longest], 1)]
    return AttentionMap(seen, residues, title=text.split()[0])


def looked_at_pairs(run: DistanceRun, text: str, surface: Surface) -> str:
    """What was shown and what is told, nearest darkest; and what edges looked at."""
    [told] = run.predict([text], "TEXT")
    far = max(max(row) for row in told.distances) or 1.0
    shown = [
        [1 - d / far if known else 0.0 for d, known in zip(row, given, strict=True)]
        for row, given in zip(told.distances, told.shown, strict=True)
    ]
    near = [[1 - d / far for d in row] for row in told.distances]
    hidden = sum(not one for row in told.shown for one in row) // 2
    parts = [
        f"{len(near)} points, {hidden} distances told; full is 0, empty is {far:.1f} or not shown",
        grids({"shown": shown, "told": near, "contacts": told.contacts}, surface, 1.0),
    ]
    if run.task.edge_attentions():
        seen = map_of_distances(run, text)
        means = {
            f"{n // 2 + 1}: {'ends' if n % 2 else 'starts'}": layer.weights.mean(0).tolist()
            for n, layer in enumerate(seen.layers)
        }
        parts.append("What edges of one start (or end) looked at, by their other one:")
        top = max(max(map(max, rows)) for rows in means.values()) or 1.0
        parts.append(grids(means, surface, top))
        parts.append(f"weight: {scale(surface, round(top, 3))}")
    return "\n\n".join(parts)


def map_of_distances(run: DistanceRun, text: str) -> AttentionMap:
    """What edges i, j looked at, as edges i, k, in the mean over i; by layer and head."""
    letters, table = distances_of(text, "TEXT")
    names = [f"{letter}{n}" for n, letter in enumerate(letters or "." * len(table), 1)]
    return AttentionMap(run.task.looked(text, "TEXT"), names, title=text[:60])
