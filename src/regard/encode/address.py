"""One turn of the heads of a Turing machine: they find their places, read, and write.

    w^c(i) = softmax_i(b cos(k, M(i)))                   by content              eq. 5-6
    w^g    = g w^c + (1 - g) w_{t-1}                     or from where it was    eq. 7
    w~(i)  = sum_j w^g(j) s(i - j)                       circular convolution    eq. 8
    w_t(i) = w~(i)^c / sum_j w~(j)^c = softmax(c log w~)  sharpening             eq. 9
    r_t    = sum_i w_t(i) M(i)                           those that read         eq. 2
    M(i)  <- M(i) prod (1 - w_t(i) e) + sum w_t(i) a     those that write        eq. 3-4

Graves, Wayne, Danihelka 2014 (1410.5401), with b = softplus, g and e = sigmoid, s = softmax and c =
1 + softplus of what comes in. `turn` is these lines. A turn is some forty small operations, each of
which costs more to be recorded than to be done: where nobody needs the record, `quick_turn` does
the same with its gradient written out.

# differs: a is a tanh, where the paper sets no bound. What is in the memory then stays small, and
# so do gradients: without it, runs that had learnt to copy lost it again.
b: rows   h: heads   r: heads that read   n: slots   m: slot_dim   s: shifts
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attend.attention import Attention
from regard.attend.memory import Memory
from regard.attend.score import Cosine

TINY = 1e-30  # added to w~: log 0 is met wherever a head never was


class Wish(NamedTuple):
    """What the controller wants of its heads: of all; erase and add of those that write."""

    asked: Float[Tensor, "b h 1 m1"]  # k, and what b is made of
    gate: Float[Tensor, "b h 1 1"]
    sharp: Float[Tensor, "b h 1 1"]
    moves: Float[Tensor, "b h 1 s"]  # from -s to s: the last leads to higher slots
    erase: Float[Tensor, "b w m"]
    add: Float[Tensor, "b w m"]


class Turned(NamedTuple):
    read: Float[Tensor, "b r m"]
    weights: Float[Tensor, "b h 1 n"]
    matrix: Float[Tensor, "b n m"]


def turn(
    reader: Attention,
    writer: Attention,
    wish: Wish,
    before: Float[Tensor, "b h 1 n"],
    matrix: Float[Tensor, "b n m"],
) -> Turned:
    """All heads look at the memory as it was; the first ones read, and the last ones write."""
    slots = matrix[:, None]  # which all heads share
    memory = Memory(reader.score.prepare(slots), slots)
    found = reader.weigh(wish.asked, memory)
    mixed = torch.lerp(before, found, wish.gate.sigmoid())
    there = wish.moves.softmax(-1).flip(-1) @ windows(mixed, wish.moves.shape[-1])
    weights = ((F.softplus(wish.sharp) + 1) * (there + TINY).log()).softmax(-1)
    writes = wish.add.shape[1]
    read = reader.read(weights[:, :-writes], memory)[:, :, 0]
    writing = writer.seen(weights[:, -writes:])[:, :, 0]
    return Turned(read, weights, written(matrix, writing, wish.erase.sigmoid(), wish.add.tanh()))


def windows(rows: Float[Tensor, "b h 1 n"], moves: int) -> Float[Tensor, "b h s n"]:
    """Row j has in slot i what was in slot i + j - moves // 2, around the end."""
    reach = moves // 2
    longer = torch.cat([rows[..., -reach:], rows, rows[..., :reach]], -1)
    return longer.unfold(-1, rows.shape[-1], 1).squeeze(2)


def written(
    matrix: Float[Tensor, "b n m"],
    weights: Float[Tensor, "b w n"],
    erase: Float[Tensor, "b w m"],
    add: Float[Tensor, "b w m"],
) -> Float[Tensor, "b n m"]:
    """What all heads erase goes first, then what they add comes."""
    if weights.shape[1] == 1:
        kept = torch.addcmul(matrix, matrix, weights.mT * erase, value=-1)
    else:
        kept = matrix * (1 - weights[..., None] * erase[:, :, None]).prod(1)
    return torch.baddbmm(kept, weights.mT, add)


def is_plain(reader: Attention, writer: Attention, wish: Wish) -> bool:
    """Nobody edits weights or wants their gradient, and one head writes."""
    free = all(one.edit is None and (one.tap is None or one.detach) for one in (reader, writer))
    return free and wish.add.shape[1] == 1 and isinstance(reader.score, Cosine)


def quick_turn(
    reader: Attention,
    writer: Attention,
    wish: Wish,
    before: Float[Tensor, "b h 1 n"],
    matrix: Float[Tensor, "b n m"],
) -> Turned:
    """The same as `turn` where `is_plain`."""
    return Turned(*_Turn.apply(reader, writer, *wish, before, matrix))


class _Turn(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        reader: Attention,
        writer: Attention,
        asked: Tensor,
        gate: Tensor,
        sharp: Tensor,
        moves: Tensor,
        erase: Tensor,
        add: Tensor,
        before: Tensor,
        matrix: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        slots = matrix[:, None]
        memory = Memory(reader.score.prepare(slots), slots)
        found = reader.weigh(asked, memory)
        g, s, c = gate.sigmoid(), moves.softmax(-1), F.softplus(sharp) + 1
        e, a = erase.sigmoid(), add.tanh()
        around = windows(torch.lerp(before, found, g), s.shape[-1])
        there = (s.flip(-1) @ around).add_(TINY)
        log = there.log()
        weights = (c * log).softmax(-1)
        read = reader.read(weights[:, :-1], memory)[:, :, 0]
        after = written(matrix, writer.seen(weights[:, -1:])[:, :, 0], e, a)
        ctx.eps = reader.score.eps
        # all of them so, and none as an attribute: an output there would hold itself for ever
        given, made = (asked, sharp, before, matrix), (g, s, c, e, a, around, there, log, weights)
        ctx.save_for_backward(*given, memory.keys, found, *made)
        return read, weights, after

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator's names
        ctx: Any, *above: Tensor
    ) -> tuple[Tensor | None, ...]:
        asked, sharp, before, matrix, keys, found, *made = ctx.saved_tensors
        g, s, c, e, a, around, there, log, weights = made
        to_read, to_weights, to_after = above
        reading, writing = weights[:, :-1, 0], weights[:, -1:, 0]
        # writing, then reading
        changed = to_after * matrix
        to_add, to_e = writing @ to_after, writing @ changed
        to_writing = torch.baddbmm(a @ to_after.mT, e, changed.mT, alpha=-1)
        to_matrix = torch.addcmul(to_after, to_after, writing.mT * e, value=-1)
        to_matrix = to_matrix.baddbmm_(reading.mT, to_read)
        to_weights = torch.cat([to_read @ matrix.mT, to_writing], 1)[:, :, None] + to_weights
        # sharpening, shifting, the gate
        to_energy = through_softmax(to_weights, weights)
        to_sharp = (to_energy * log).sum(-1, keepdim=True) * sharp.sigmoid()
        to_there = (to_energy * c).div_(there)
        to_moves = through_softmax((to_there @ around.mT).flip(-1), s)
        to_mixed = s @ windows(to_there, s.shape[-1])
        to_gate = (to_mixed * (found - before)).sum(-1, keepdim=True) * (g * (1 - g))
        to_found = g * to_mixed
        # likeness
        to_energy = through_softmax(to_found, found)[:, :, 0]
        to_asked, asked_with = of_query(to_energy @ keys[:, 0], asked[:, :, 0], ctx.eps)
        to_matrix += through_unit(to_energy.mT @ asked_with, matrix, keys[:, 0], ctx.eps)
        to_erase, to_add = to_e.mul_(e * (e - 1)), to_add.mul_(1 - a * a)
        to_wish = (to_asked[:, :, None], to_gate, to_sharp, to_moves, to_erase, to_add)
        return None, None, *to_wish, to_mixed - to_found, to_matrix


def through_softmax(above: Tensor, shares: Tensor) -> Tensor:
    """p (g - p . g)"""
    part = above * shares
    return part.addcmul_(shares, part.sum(-1, keepdim=True), value=-1)


def through_unit(above: Tensor, x: Tensor, unit: Tensor, eps: float) -> Tensor:
    """Of u = x / max(|x|, eps): (g - u (u . g)) / |x|, and g / eps where x is shorter than that."""
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    along = (above * unit).sum(-1, keepdim=True).mul_(length > eps)
    return torch.addcmul(above, unit, along, value=-1).div_(length.clamp_(min=eps))


def of_query(above: Tensor, asked: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Through q = b k / |k| to k and what b is made of; and q itself."""
    raw, k = asked[..., -1:], asked[..., :-1]
    b, unit = F.softplus(raw), F.normalize(k, dim=-1, eps=eps)
    to_raw = (above * unit).sum(-1, keepdim=True) * raw.sigmoid()
    return torch.cat([through_unit(above * b, k, unit, eps), to_raw], -1), b * unit
