"""Where a head of a Turing machine goes, after it was found what is like its key; and writing.

    w^g    = g w^c + (1 - g) w_{t-1}                    interpolation          eq. 7
    w~(i)  = sum_j w^g(j) s(i - j)                      circular convolution   eq. 8
    w_t(i) = w~(i)^c / sum_j w~(j)^c                    sharpening             eq. 9
    M_t(i) = M_{t-1}(i) prod (1 - w_t(i) e) + sum w_t(i) a                     eq. 3-4

Graves, Wayne, Danihelka 2014 (1410.5401), with g = sigmoid, s = softmax, c = 1 + softplus, e =
sigmoid of what comes in. Gradients are written out: a step of a machine is many small operations,
of which each costs more to be recorded than to be done.
b: rows   h: heads   n: slots   m: slot_dim   s: shifts
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

TINY = 1e-30  # added to w~: log 0 is met wherever a head never was


def moved(
    found: Float[Tensor, "b h 1 n"],
    before: Float[Tensor, "b h 1 n"],
    gate: Float[Tensor, "b h 1 1"],
    moves: Float[Tensor, "b h 1 s"],
    sharp: Float[Tensor, "b h 1 1"],
) -> Float[Tensor, "b h 1 n"]:
    """w_t of w^c and w_{t-1}. `moves` are of -s … s: the last leads to higher slots."""
    return _Moved.apply(found, before, gate, moves, sharp)


class _Moved(torch.autograd.Function):
    """w^c and c are taken through logarithms: w~^c / sum w~^c = softmax(c log w~)."""

    @staticmethod
    def forward(
        ctx: Any, found: Tensor, before: Tensor, gate: Tensor, moves: Tensor, sharp: Tensor
    ) -> Tensor:
        g, s, c = gate.sigmoid(), moves.softmax(-1), F.softplus(sharp) + 1
        around = rolled(torch.lerp(before, found, g), s.shape[-1] // 2)
        there = (s @ around).add_(TINY)
        log = there.log()
        weights = (c * log).softmax(-1)
        ctx.save_for_backward(found, before, g, s, c, sharp, around, there, log, weights)
        return weights

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator's names
        ctx: Any, *above: Tensor
    ) -> tuple[Tensor, ...]:
        found, before, g, s, c, sharp, around, there, log, weights = ctx.saved_tensors
        to_energy = weights * above[0]
        to_energy = torch.addcmul(to_energy, weights, to_energy.sum(-1, keepdim=True), value=-1)
        to_c = (to_energy * log).sum(-1, keepdim=True)
        to_there = (to_energy * c).div_(there)
        to_s = (to_there @ around.mT).mul_(s)
        to_mixed = s @ rolled(to_there, -(s.shape[-1] // 2))
        to_found = g * to_mixed
        to_g = (to_mixed * (found - before)).sum(-1, keepdim=True)
        return (
            to_found,
            to_mixed - to_found,
            to_g * g * (1 - g),
            torch.addcmul(to_s, s, to_s.sum(-1, keepdim=True), value=-1),
            to_c * sharp.sigmoid(),
        )


def rolled(rows: Float[Tensor, "b h 1 n"], reach: int) -> Float[Tensor, "b h s n"]:
    """Moved by -reach … reach slots, around the end; of a negative reach, the other way."""
    step = 1 if reach > 0 else -1
    return torch.cat([rows.roll(n, -1) for n in range(-reach, reach + step, step)], -2)


def written(
    matrix: Float[Tensor, "b n m"],
    weights: Float[Tensor, "b h n"],
    erase: Float[Tensor, "b h m"],
    add: Float[Tensor, "b h m"],
) -> Float[Tensor, "b n m"]:
    """M_t of M_{t-1}: what all heads erase goes first, then what they add comes."""
    e = erase.sigmoid()
    if weights.shape[1] == 1:
        kept = torch.addcmul(matrix, matrix, weights.mT * e, value=-1)
    else:
        kept = matrix * (1 - weights[..., None] * e[:, :, None]).prod(1)
    return torch.baddbmm(kept, weights.mT, add)
