"""One step of the heads of a Neural Turing Machine: addressing, reading and writing.

    w^c(i) = softmax_i(b cos(k, M(i)))                   by content              eq. 5-6
    w^g    = g w^c + (1 - g) w_{t-1}                     or by the last weights  eq. 7
    w~(i)  = sum_j w^g(j) s(i - j)                       circular convolution    eq. 8
    w_t(i) = w~(i)^c / sum_j w~(j)^c = softmax(c log w~)  sharpening             eq. 9
    r_t    = sum_i w_t(i) M(i)                           read heads              eq. 2
    M(i)  <- M(i) prod (1 - w_t(i) e) + sum w_t(i) a     write heads             eq. 3-4

Graves, Wayne, Danihelka 2014 (1410.5401). b = softplus, g and e = sigmoid, s = softmax and c = 1 +
softplus of the controller's outputs. `access_memory` computes these lines. It takes about forty
small operations, and autograd needs more time to record one than to run it. `access_memory_fast`
computes the same with a hand-written gradient, if nothing else needs the autograd graph.

# differs: a is a tanh; the paper sets no bound. The bound keeps memory and gradients small: without
# it, runs that had learned to copy forgot it again.
b: rows   h: heads   r: read heads   w: write heads   n: slots   m: slot_dim   s: shifts
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.core import Attention
from regard.attention.memory import Memory
from regard.attention.scores import Cosine

LOG_OFFSET = 1e-30  # added to w~, which is 0 at slots that a head never visited


class HeadControls(NamedTuple):
    """Raw outputs of the controller for all heads; `erase` and `add` for write heads only."""

    query: Float[Tensor, "b h 1 m1"]  # k, and b before its softplus
    gate: Float[Tensor, "b h 1 1"]
    sharpening: Float[Tensor, "b h 1 1"]
    shifts: Float[Tensor, "b h 1 s"]  # from -s to s: the last leads to higher slots
    erase: Float[Tensor, "b w m"]
    add: Float[Tensor, "b w m"]


class AccessResult(NamedTuple):
    read: Float[Tensor, "b r m"]
    weights: Float[Tensor, "b h 1 n"]
    matrix: Float[Tensor, "b n m"]


def access_memory(
    reader: Attention,
    writer: Attention,
    controls: HeadControls,
    previous_weights: Float[Tensor, "b h 1 n"],
    matrix: Float[Tensor, "b n m"],
) -> AccessResult:
    """Run one step; all heads address the memory before it is written. The last heads write."""
    slots = matrix[:, None]  # shared by all heads
    memory = Memory(reader.score.prepare(slots), slots)
    content_weights = reader.weigh(controls.query, memory)
    gated = torch.lerp(previous_weights, content_weights, controls.gate.sigmoid())
    shifted = controls.shifts.softmax(-1).flip(-1) @ circular_windows(
        gated, controls.shifts.shape[-1]
    )
    weights = ((F.softplus(controls.sharpening) + 1) * (shifted + LOG_OFFSET).log()).softmax(-1)
    n_write_heads = controls.add.shape[1]
    read = reader.read(weights[:, :-n_write_heads], memory)[:, :, 0]
    write_weights = writer.intercept(weights[:, -n_write_heads:])[:, :, 0]
    return AccessResult(
        read,
        weights,
        updated_matrix(matrix, write_weights, controls.erase.sigmoid(), controls.add.tanh()),
    )


def circular_windows(rows: Float[Tensor, "b h 1 n"], n_shifts: int) -> Float[Tensor, "b h s n"]:
    """Return rows shifted by each distance: row j, slot i holds slot i + j - n_shifts // 2."""
    radius = n_shifts // 2
    wrapped = torch.cat([rows[..., -radius:], rows, rows[..., :radius]], -1)
    return wrapped.unfold(-1, rows.shape[-1], 1).squeeze(2)


def updated_matrix(
    matrix: Float[Tensor, "b n m"],
    weights: Float[Tensor, "b w n"],
    erase: Float[Tensor, "b w m"],
    add: Float[Tensor, "b w m"],
) -> Float[Tensor, "b n m"]:
    """Return the memory after all heads have erased, and then added."""
    if weights.shape[1] == 1:
        erased = torch.addcmul(matrix, matrix, weights.mT * erase, value=-1)
    else:
        erased = matrix * (1 - weights[..., None] * erase[:, :, None]).prod(1)
    return torch.baddbmm(erased, weights.mT, add)


def can_access_fast(reader: Attention, writer: Attention, controls: HeadControls) -> bool:
    """Return whether no hook edits weights or needs their gradient, and a single head writes."""
    is_unobserved = all(
        (hook := attention.hook) is None
        or (hook.edit is None and (hook.recorded is None or hook.detach))
        for attention in (reader, writer)
    )
    return is_unobserved and controls.add.shape[1] == 1 and isinstance(reader.score, Cosine)


def access_memory_fast(
    reader: Attention,
    writer: Attention,
    controls: HeadControls,
    previous_weights: Float[Tensor, "b h 1 n"],
    matrix: Float[Tensor, "b n m"],
) -> AccessResult:
    """Compute `access_memory` with a hand-written gradient; needs `can_access_fast`."""
    return AccessResult(*_AccessFunction.apply(reader, writer, *controls, previous_weights, matrix))


class _AccessFunction(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        reader: Attention,
        writer: Attention,
        query: Tensor,
        gate: Tensor,
        sharpening: Tensor,
        shifts: Tensor,
        erase: Tensor,
        add: Tensor,
        previous_weights: Tensor,
        matrix: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        slots = matrix[:, None]
        memory = Memory(reader.score.prepare(slots), slots)
        content_weights = reader.weigh(query, memory)
        g, s, c = gate.sigmoid(), shifts.softmax(-1), F.softplus(sharpening) + 1
        e, a = erase.sigmoid(), add.tanh()
        neighborhoods = circular_windows(
            torch.lerp(previous_weights, content_weights, g), s.shape[-1]
        )
        shifted = (s.flip(-1) @ neighborhoods).add_(LOG_OFFSET)
        log = shifted.log()
        weights = (c * log).softmax(-1)
        read = reader.read(weights[:, :-1], memory)[:, :, 0]
        updated = updated_matrix(matrix, writer.intercept(weights[:, -1:])[:, :, 0], e, a)
        ctx.eps = reader.score.eps
        # save_for_backward, not attributes: an output in an attribute would be a reference cycle
        inputs, intermediates = (
            (query, sharpening, previous_weights, matrix),
            (g, s, c, e, a, neighborhoods, shifted, log, weights),
        )
        ctx.save_for_backward(*inputs, memory.keys, content_weights, *intermediates)
        return read, weights, updated

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator's names
        ctx: Any, *grads: Tensor
    ) -> tuple[Tensor | None, ...]:
        query, sharpening, previous_weights, matrix, keys, content_weights, *intermediates = (
            ctx.saved_tensors
        )
        g, s, c, e, a, neighborhoods, shifted, log, weights = intermediates
        grad_read, grad_weights, grad_updated = grads
        read_weights, write_weights = weights[:, :-1, 0], weights[:, -1:, 0]
        # writing, then reading
        grad_times_matrix = grad_updated * matrix
        grad_add, grad_e = write_weights @ grad_updated, write_weights @ grad_times_matrix
        grad_write_weights = torch.baddbmm(a @ grad_updated.mT, e, grad_times_matrix.mT, alpha=-1)
        grad_matrix = torch.addcmul(grad_updated, grad_updated, write_weights.mT * e, value=-1)
        grad_matrix = grad_matrix.baddbmm_(read_weights.mT, grad_read)
        grad_weights = (
            torch.cat([grad_read @ matrix.mT, grad_write_weights], 1)[:, :, None] + grad_weights
        )
        # sharpening, shifting, the gate
        grad_energy = softmax_backward(grad_weights, weights)
        grad_sharpening = (grad_energy * log).sum(-1, keepdim=True) * sharpening.sigmoid()
        grad_shifted = (grad_energy * c).div_(shifted)
        grad_shifts = softmax_backward((grad_shifted @ neighborhoods.mT).flip(-1), s)
        grad_gated = s @ circular_windows(grad_shifted, s.shape[-1])
        grad_gate = (grad_gated * (content_weights - previous_weights)).sum(-1, keepdim=True) * (
            g * (1 - g)
        )
        grad_content_weights = g * grad_gated
        # cosine similarity
        grad_energy = softmax_backward(grad_content_weights, content_weights)[:, :, 0]
        grad_query, scaled_query = query_backward(grad_energy @ keys[:, 0], query[:, :, 0], ctx.eps)
        grad_matrix += unit_vector_backward(
            grad_energy.mT @ scaled_query, matrix, keys[:, 0], ctx.eps
        )
        grad_erase, grad_add = grad_e.mul_(e * (e - 1)), grad_add.mul_(1 - a * a)
        grad_controls = (
            grad_query[:, :, None],
            grad_gate,
            grad_sharpening,
            grad_shifts,
            grad_erase,
            grad_add,
        )
        return None, None, *grad_controls, grad_gated - grad_content_weights, grad_matrix


def softmax_backward(grad: Tensor, weights: Tensor) -> Tensor:
    """p (g - p . g), the gradient of softmax."""
    weighted_grad = grad * weights
    return weighted_grad.addcmul_(weights, weighted_grad.sum(-1, keepdim=True), value=-1)


def unit_vector_backward(grad: Tensor, x: Tensor, unit: Tensor, eps: float) -> Tensor:
    """(g - u (u . g)) / |x|, the gradient of u = x / max(|x|, eps); g / eps where |x| <= eps."""
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    along = (grad * unit).sum(-1, keepdim=True).mul_(length > eps)
    return torch.addcmul(grad, unit, along, value=-1).div_(length.clamp_(min=eps))


def query_backward(grad: Tensor, query: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Return the gradients of q = b k / |k| for k and for b before its softplus, and q itself."""
    raw_strength, k = query[..., -1:], query[..., :-1]
    b, unit = F.softplus(raw_strength), F.normalize(k, dim=-1, eps=eps)
    grad_strength = (grad * unit).sum(-1, keepdim=True) * raw_strength.sigmoid()
    return torch.cat([unit_vector_backward(grad * b, k, unit, eps), grad_strength], -1), b * unit
