"""Gradient times attention, as an attention map."""

from regard.explain.faithfulness import gradient_attention
from regard.run import Run
from regard.view.attention_map import AttentionMap

MIN_ROW_SUM = 1e-12


def gradient_attention_map(run: Run, text: str) -> AttentionMap:
    """Return gradient times attention for a text; in each layer the greatest row sum is 1."""
    record = run.records([text], "TEXT")[0]
    plain, gradients = run.task.attention_map(record), gradient_attention(run, record)
    layers = {}
    for layer in plain.layers:
        weights = gradients[layer.name][0].numpy()
        weights = weights if weights.ndim == 3 else weights[None]
        weights = weights[..., : layer.weights.shape[-1]]
        layers[layer.name] = weights / max(float(weights.sum(-1).max()), MIN_ROW_SUM)
    return AttentionMap(
        layers,
        plain.queries.tokens,
        plain.keys.tokens,
        kind=plain.layers[0].kind,
        word_ids=(plain.queries.word_ids, plain.keys.word_ids),
        title=plain.title,
    )
