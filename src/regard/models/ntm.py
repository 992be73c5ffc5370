"""The Neural Turing Machine: a network that writes to a memory, and reads what it wrote.

    [h_t, state]  = controller(x_t, r_{t-1}, state)       feed-forward: tanh(W x + V r + b); or LSTM
    k, b, g, s, c = of each head, from h_t               key, strength, gate, shifts, sharpness
    w^c(i)        = softmax_i(b cos(k, M_{t-1}(i)))                                       eq. 5-6
    w^g           = g w^c + (1 - g) w_{t-1}                                               eq. 7
    w~(i)         = sum_j w^g(j) s(i - j)                 around the end of the memory    eq. 8
    w_t(i)        = w~(i)^c / sum_j w~(j)^c                                               eq. 9
    r_t           = sum_i w_t(i) M_{t-1}(i)               by each head that reads         eq. 2
    M_t(i)        = M_{t-1}(i) prod (1 - w_t(i) e) + sum w_t(i) a    by those that write  eq. 3-4
    y_t           = W [h_t; r_t] + b

Graves, Wayne, Danihelka 2014 (1410.5401). b = softplus, g and e = sigmoid, s = softmax, c = 1 +
softplus. Each head, whether it reads or writes, has a weighting of its own. Equations 2 to 9 are
in `encode.address`.

# differs: what the paper leaves open is chosen so that training goes well with any seed. M_0 is
# 1e-6 throughout (Collier & Beel 2018), not drawn. Every head begins at slot 0, w_0 = (1, 0, …):
# from equal weights a shift leads nowhere. A slot shorter than EPS matches a key in proportion, so
# that an empty one has no gradient of 1 / |M|. All heads look at M_{t-1}: reading comes first. What
# w_t hands back to w_{t-1} is cut at `clip`, as the paper cuts gradients to (-10, 10): c multiplies
# the log-odds of two slots, turn after turn, and what is undecided explodes.
b: rows   t: steps   h: heads   n: slots   m: slot_dim   d: dim
"""

from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.attend.attention import Attention
from regard.attend.check import check_positive, check_sequence, check_width
from regard.attend.score import Cosine
from regard.encode.address import Turned, Wish, is_plain, quick_turn, turn
from regard.encode.cell import LSTM, Recurrence, State

START, EPS = 1e-6, 1e-2


class Feedforward(nn.Module):
    """h = tanh(W x + b): a controller without a state, that is asked as a cell is."""

    def __init__(self, input_dim: int, hidden_dim: int):
        super().__init__()
        self.weight_ih = nn.Parameter(nn.init.xavier_uniform_(torch.empty(hidden_dim, input_dim)))
        self.bias = nn.Parameter(torch.zeros(hidden_dim))

    def initial(self, batch: int) -> State:
        return (self.bias.new_zeros(batch, 0),)

    def recurrence(self) -> Recurrence:
        return lambda projected, _: (projected.tanh(),)


class Ntm(nn.Module):
    """`episode` shows a sequence, and tells what the machine says at each of its steps.

    `read_heads` and `write_heads` move at most `shift` slots a step. `reader` and `writer` show
    the weightings that were read and written with: [rows, heads, steps, slots].
    """

    cross = ()  # there is no source to look at

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        controller: Literal["feedforward", "lstm"] = "lstm",
        dim: int = 100,
        slots: int = 128,
        slot_dim: int = 20,
        read_heads: int = 1,
        write_heads: int = 1,
        shift: int = 1,
        clip: float = 10.0,
    ):
        super().__init__()
        sizes = {"dim": dim, "slots": slots, "slot_dim": slot_dim, "shift": shift}
        for name, size in {**sizes, "read_heads": read_heads, "write_heads": write_heads}.items():
            check_positive(name, size)
        if 2 * shift + 1 > slots:
            raise ValueError(f"shift = {shift} goes around {slots} slots: make it smaller")
        if controller not in ("feedforward", "lstm"):
            raise ValueError(f"controller must be feedforward or lstm, not {controller!r}")
        self.source_size, self.slots, self.slot_dim = source_size, slots, slot_dim
        self.read_heads, self.write_heads, self.shift = read_heads, write_heads, shift
        self.clip = clip
        steers = LSTM if controller == "lstm" else Feedforward
        self.controller = steers(source_size + read_heads * slot_dim, dim)
        heads = read_heads + write_heads
        # of all heads: key and strength, gate, sharpness, shifts; of those that write: erase, add
        self.sizes = [heads * (slot_dim + 1), heads, heads, heads * (2 * shift + 1)]
        self.sizes += [write_heads * slot_dim] * 2
        self.of_heads = nn.Linear(dim, sum(self.sizes))
        self.out = nn.Linear(dim + read_heads * slot_dim, target_size)
        every = partial(torch.softmax, dim=-1)  # slot can be looked at: there is no mask
        self.reader, self.writer = (Attention(Cosine(EPS), every) for _ in range(2))

    def episode(
        self, inputs: Float[Tensor, "b t i"], feedback: Float[Tensor, "b t f"] | None = None
    ) -> Float[Tensor, "b t o"]:
        """Logits at each step. `feedback`, if there is any, stands beside the inputs."""
        given = inputs if feedback is None else torch.cat([inputs, feedback], -1)
        check_sequence("inputs", given)
        check_width("inputs and feedback", given, self.source_size)
        rows, heads = len(given), self.read_heads + self.write_heads
        control, state = self.controller.recurrence(), self.controller.initial(rows)
        of_read = self.controller.weight_ih[:, self.source_size :].t()
        matrix = given.new_full((rows, self.slots, self.slot_dim), START)
        weights = given.new_zeros(rows, heads, 1, self.slots)
        weights[..., 0] = 1.0
        read = given.new_zeros(rows, self.read_heads * self.slot_dim)
        states, reads = list[Tensor](), list[Tensor]()
        for x in self.project(given).unbind(1):
            state = control(torch.addmm(x, read, of_read), state)
            if self.clip and weights.requires_grad:
                weights.register_hook(self.clipped)
            found, weights, matrix = self.turn(state[0], weights, matrix)
            read = found.flatten(1)
            states.append(state[0])
            reads.append(read)
        return self.out(torch.cat([torch.stack(states, 1), torch.stack(reads, 1)], -1))

    def clipped(self, gradient: Tensor) -> Tensor:
        """Of w_t, from the steps after it."""
        return gradient.clamp(-self.clip, self.clip)

    def project(self, given: Float[Tensor, "b t i"]) -> Float[Tensor, "b t g"]:
        """What the inputs add to the controller, for all steps at once."""
        steers = self.controller
        bias = steers.bias_ih + steers.bias_hh if isinstance(steers, LSTM) else steers.bias
        return F.linear(given, steers.weight_ih[:, : self.source_size], bias)

    def turn(
        self,
        state: Float[Tensor, "b d"],
        before: Float[Tensor, "b h 1 n"],
        matrix: Float[Tensor, "b n m"],
    ) -> Turned:
        """One step of the heads: what was read, where they are now, and the memory after."""
        rows, heads = before.shape[:2]
        *of_all, erase, add = self.of_heads(state).split(self.sizes, -1)
        wants = [one.view(rows, heads, 1, -1) for one in of_all]
        wants += [one.view(rows, self.write_heads, -1) for one in (erase, add)]
        parts = self.reader, self.writer, Wish(*wants)
        return (quick_turn if is_plain(*parts) else turn)(*parts, before, matrix)
