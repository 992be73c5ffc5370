"""Cross-entropy over the tokens that are real, with smoothed labels; never all logits at once.

    loss = -sum_v q_v log p_v          p = softmax(W x + b)
    q    = 1 - e at the label, and e spread evenly over the vocabulary but for the padding
                                                                    (Szegedy et al. 2016, sec. 7)
    d loss / d logits = p - q

The gradient is known as soon as the loss is. So each slice of logits is made, used for both and
forgotten while the cache still holds it: half the time, and memory for one slice.
"""

from collections.abc import Iterator
from itertools import repeat
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regard.encode.embed import Embedding

AT_ONCE = 128 * 10_000  # logits that exist at a time: 5 MB, which a cache holds


class Loss(NamedTuple):
    """Summed over the tokens that were predicted, and how many those were."""

    total: Tensor
    tokens: int


def cross_entropy(
    output: nn.Linear | Embedding,
    states: Float[Tensor, "b t d"],
    target: Int[Tensor, "b t"],
    valid: Bool[Tensor, "b t"],
    *,
    smoothing: float = 0.0,
    pad: int = 0,
) -> Loss:
    """-sum log p(target) with `output` as the layer before the softmax, at real positions only.

    With `smoothing`, no mass goes to `pad`, which is never said.
    """
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing must be in [0, 1), not {smoothing}")
    rows, labels = states[valid], target[valid]
    weight = output.table() if isinstance(output, Embedding) else output.weight
    total = _Summed.apply(rows, weight, output.bias, labels, smoothing, pad)
    return Loss(total, len(labels))


class _Summed(torch.autograd.Function):
    """The summed loss; its gradients are made on the way forward, if anybody will ask for them."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        labels: Tensor,
        smoothing: float,
        pad: int,
    ) -> Tensor:
        wanted = ctx.needs_input_grad[:3]
        exact = torch.float64 if rows.dtype == torch.float64 else torch.float32
        rows, weight = rows.to(exact), weight.to(exact)
        bias = None if bias is None else bias.to(exact)
        grads = [
            torch.zeros_like(x) if x is not None and want else None
            for x, want in zip((rows, weight, bias), wanted, strict=True)
        ]
        total = rows.new_zeros(())
        for some, label, to_rows in slices(rows, labels, grads[0], len(weight)):
            logits = nn.functional.linear(some, weight, bias)
            at_label, highest = logits.gather(-1, label[:, None])[:, 0], logits.amax(-1)
            p = torch.softmax(logits, -1, out=logits)
            log_sum = highest - p.amax(-1).log()  # the likeliest has exp(highest - log_sum)
            total += (log_sum - (1 - smoothing) * at_label).sum()
            if not any(wanted):
                continue
            p[torch.arange(len(label), device=label.device), label] -= 1 - smoothing
            if to_rows is not None:
                torch.mm(p, weight, out=to_rows)
            if grads[1] is not None:
                grads[1].addmm_(p.T, some)
            if grads[2] is not None:
                grads[2] += p.sum(0)
        if smoothing:
            total -= smoothed(rows, weight, bias, grads, smoothing, pad)
        ctx.grads = grads
        return total

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator's names
        ctx: Any, *above: Tensor
    ) -> tuple[Tensor | None, ...]:
        (factor,) = above
        return (*(None if g is None else g * factor for g in ctx.grads), None, None, None)


def slices(
    rows: Tensor, labels: Tensor, grads: Tensor | None, words: int
) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
    """Some rows at a time, with their labels and the place for their gradient."""
    count = max(1, AT_ONCE // words)
    parts = repeat(None) if grads is None else grads.split(count)
    return zip(rows.split(count), labels.split(count), parts, strict=False)


def smoothed(
    rows: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    grads: list[Tensor | None],
    smoothing: float,
    pad: int,
) -> Tensor:
    """e / (v - 1) times the sum of all logits but the padding's. It needs no logits: it is linear.

    Its gradients are taken from `grads`.
    """
    each = smoothing / (len(weight) - 1)
    of_rows, of_words = rows.sum(0), weight.sum(0) - weight[pad]
    to_rows, to_weight, to_bias = grads
    if to_rows is not None:
        to_rows -= each * of_words
    if to_weight is not None:
        to_weight -= each * of_rows
        to_weight[pad] += each * of_rows
    if to_bias is not None:
        to_bias -= each * len(rows)
        to_bias[pad] += each * len(rows)
    of_bias = 0 if bias is None else bias.sum() - bias[pad]
    return each * (of_rows @ of_words + len(rows) * of_bias)
