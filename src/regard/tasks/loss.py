"""Cross-entropy over the tokens that are real, with smoothed labels; never all logits at once.

    loss = -sum_v q_v log p_v          p = softmax(W x + b)
    q    = 1 - e at the label, and e spread evenly over the vocabulary but for the padding
                                                                    (Szegedy et al. 2016, sec. 7)
    d loss / d logits = p - q

The gradient is known as soon as the loss is. So each slice of logits is made, used for both and
forgotten while the cache still holds it: half the time, and memory for one slice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regard.errors import InputError
from regard.kernels.linear import linear
from regard.layers.embedding import Embedding

LOGITS_PER_SLICE = 512 * 10_000  # logits that exist at a time: 20 MB, which a cache holds


@dataclass(frozen=True)
class Loss:
    """Summed over the tokens that were predicted, and how many those were."""

    total: Tensor
    count: int


def sum_losses(losses: Sequence[Loss]) -> Loss:
    """Return the sum of the losses of batches, in double precision and on the CPU."""
    totals = torch.stack([loss.total for loss in losses]).cpu().double()
    return Loss(totals.sum(), sum(loss.count for loss in losses))


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
        raise InputError(f"smoothing must be in [0, 1), not {smoothing}")
    rows, labels = states[valid], target[valid]
    weight = output.output_weight() if isinstance(output, Embedding) else output.weight
    with torch.autocast(rows.device.type, enabled=False):  # sums and gradients are in float32
        total = _SummedCrossEntropy.apply(rows, weight, output.bias, labels, smoothing, pad)
    return Loss(total, len(labels))


class _SummedCrossEntropy(torch.autograd.Function):
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
        needs_grad = ctx.needs_input_grad[:3]
        dtype = torch.float64 if rows.dtype == torch.float64 else torch.float32
        rows, weight = rows.to(dtype), weight.to(dtype)
        bias = None if bias is None else bias.to(dtype)
        # transposed in memory, so that each slice adds x' p, the faster product
        weight_grad = weight.new_zeros(weight.shape[::-1]).t() if needs_grad[1] else None
        row_grads, bias_grad = (
            torch.zeros_like(x) if x is not None and needed else None
            for x, needed in zip((rows, bias), needs_grad[::2], strict=True)
        )
        total = rows.new_zeros(())
        for row_slice, label, row_grad in slices(rows, labels, row_grads, len(weight)):
            logits = linear(row_slice, weight, bias)
            label_logits, highest = logits.gather(-1, label[:, None])[:, 0], logits.amax(-1)
            p = torch.softmax(logits, -1, out=logits)
            log_sum = highest - p.amax(-1).log()  # the likeliest has exp(highest - log_sum)
            total += (log_sum - (1 - smoothing) * label_logits).sum()
            if not any(needs_grad):
                continue
            p[torch.arange(len(label), device=label.device), label] -= 1 - smoothing
            if row_grad is not None:
                row_grad.copy_(linear(p, weight.t()))
            if weight_grad is not None:
                weight_grad.t().add_(linear(row_slice.t(), p.t()))
            if bias_grad is not None:
                bias_grad += p.sum(0)
        grads = [row_grads, weight_grad, bias_grad]
        if smoothing:
            total -= smoothing_term(rows, weight, bias, grads, smoothing, pad)
        ctx.grads = grads
        return total

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator's names
        ctx: Any, *upstream: Tensor
    ) -> tuple[Tensor | None, ...]:
        (factor,) = upstream
        return (*(None if grad is None else grad * factor for grad in ctx.grads), None, None, None)


def slices(
    rows: Tensor, labels: Tensor, grads: Tensor | None, vocabulary_size: int
) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
    """Some rows at a time, with their labels and the place for their gradient."""
    count = max(1, LOGITS_PER_SLICE // vocabulary_size)
    grad_slices = repeat(None) if grads is None else grads.split(count)
    return zip(rows.split(count), labels.split(count), grad_slices, strict=False)


def smoothing_term(
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
    row_sum, weight_sum = rows.sum(0), weight.sum(0) - weight[pad]
    row_grad, weight_grad, bias_grad = grads
    if row_grad is not None:
        row_grad -= each * weight_sum
    if weight_grad is not None:
        weight_grad -= each * row_sum
        weight_grad[pad] += each * row_sum
    if bias_grad is not None:
        bias_grad -= each * len(rows)
        bias_grad[pad] += each * len(rows)
    bias_sum = 0 if bias is None else bias.sum() - bias[pad]
    return each * (row_sum @ weight_sum + len(rows) * bias_sum)
