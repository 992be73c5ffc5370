"""Tables of a map: the steps of an output, and the agreement with gold links."""

from regard.errors import InputError
from regard.view.attention_map import AttentionMap
from regard.view.report import render_table
from regard.view.terminal import MAX_ROW_LABEL_CELLS, Surface, label

MAX_ALTERNATIVES = 4  # alternatives of a step that are shown


def render_step_table(map_: AttentionMap, surface: Surface) -> str:
    """Return a row for each step: the token, its alternatives, and the most attended key."""
    if not map_.annotations.choices or map_.layers[0].kind == "grid":
        raise InputError("--step-table is for runs that generate text; leave it out")
    mean_weights = map_.mean().layers[0].weights[0]
    is_language_model = map_.layers[0].kind == "self"  # a query predicts the next token
    tokens = [*map_.queries.tokens[1:], ""] if is_language_model else map_.queries.tokens
    rows = [["token", "p", "alternatives", "attends to"]]
    steps = zip(tokens, map_.annotations.choices, mean_weights, strict=True)
    for token, choices, weights in steps:
        probabilities = dict(choices)
        alternatives = [choice for choice in choices if choice.token != token][:MAX_ALTERNATIVES]
        best = int(weights.argmax())
        rows.append(
            [
                label(token, MAX_ROW_LABEL_CELLS, surface.ink),
                f"{probabilities[token]:.0%}" if token in probabilities else "-",
                "  ".join(
                    f"{label(choice.token, 12, surface.ink)} {choice.probability:.0%}"
                    for choice in alternatives
                ),
                f"{label(map_.keys.tokens[best], 16, surface.ink)} {weights[best]:.0%}",
            ]
        )
    return render_table(rows, left_aligned=(0, 2, 3))


def render_gold_table(map_: AttentionMap) -> str:
    """Return the agreement with gold links, of the mean of all heads and of each head."""
    [[mean_agreement]] = map_.mean().agreements()
    named_agreements = [("mean of all heads", mean_agreement)]
    for layer, heads in zip(map_.layers, map_.agreements(), strict=True):
        for number, agreement in enumerate(heads, 1):
            name = f"{layer.label}, head {number}" if len(heads) > 1 else layer.label
            named_agreements.append((name, agreement))
    if len(named_agreements) == 2:  # one head is its own mean
        named_agreements.pop()
    rows = [["", "AER", "found", "false", "missed"]]
    for name, agreement in named_agreements:
        correct = agreement.predicted_possible
        counts = (correct, agreement.predicted - correct, agreement.sure - agreement.predicted_sure)
        rows.append([name, f"{agreement.aer:.3f}", *map(str, counts)])
    return "gold links\n" + render_table(rows)
