"""Tables of a map: the steps of an output, and the agreement with gold links."""

from regard.view.attention_map import AttentionMap
from regard.view.report import render_table
from regard.view.terminal import MAX_ROW_LABEL_CELLS, Surface, label

SHOWN = 4  # other tokens of a step


def render_step_table(seen: AttentionMap, surface: Surface) -> str:
    """A line for each step: what was said, what else might have been, what was looked at most."""
    if not seen.annotations.choices:
        raise ValueError("--step-table is for texts that a run writes token by token")
    whole = seen.mean().layers[0].weights[0]
    ahead = seen.layers[0].kind == "self"  # each token is followed by the one that is said
    said = [*seen.queries.tokens[1:], ""] if ahead else seen.queries.tokens
    rows = [["said", "p", "else", "looked at"]]
    for token, choices, weights in zip(said, seen.annotations.choices, whole, strict=True):
        shares = dict(choices)
        other = [one for one in choices if one.token != token][:SHOWN]
        best = int(weights.argmax())
        rows.append(
            [
                label(token, MAX_ROW_LABEL_CELLS, surface.ink),
                f"{shares[token]:.0%}" if token in shares else "-",
                "  ".join(
                    f"{label(one.token, 12, surface.ink)} {one.probability:.0%}" for one in other
                ),
                f"{label(seen.keys.tokens[best], 16, surface.ink)} {weights[best]:.0%}",
            ]
        )
    return render_table(rows, left_aligned=(0, 2, 3))


def render_gold_table(seen: AttentionMap) -> str:
    """How the links of each head compare with those of people, and those of all in the mean."""
    layers, [[whole]] = seen.agreements(), seen.mean().agreements()
    rows = [["", "AER", "found", "false", "missed"]]
    every = [("all, in the mean", whole)]
    for layer, heads in zip(seen.layers, layers, strict=True):
        for number, one in enumerate(heads, 1):
            every.append((f"{layer.name}, head {number}" if len(heads) > 1 else layer.name, one))
    for name, one in every if len(every) > 2 else every[:1]:
        counts = (one.predicted_possible, one.predicted - one.predicted_possible)
        missed = one.sure - one.predicted_sure
        rows.append([name, f"{one.aer:.3f}", *map(str, counts), str(missed)])
    return "links of people\n" + render_table(rows)
