"""The Neural Turing Machine: a network that writes to a memory and reads from it.

    [h_t, state]  = controller(x_t, r_{t-1}, state)       feed-forward: tanh(W x + V r + b); or LSTM
    k, b, g, s, c = W h_t + b, for each head              key, strength, gate, shifts, sharpness
    w^c(i)        = softmax_i(b cos(k, M_{t-1}(i)))                                       eq. 5-6
    w^g           = g w^c + (1 - g) w_{t-1}                                               eq. 7
    w~(i)         = sum_j w^g(j) s(i - j)                 circular                        eq. 8
    w_t(i)        = w~(i)^c / sum_j w~(j)^c                                               eq. 9
    r_t           = sum_i w_t(i) M_{t-1}(i)               for each read head              eq. 2
    M_t(i)        = M_{t-1}(i) prod (1 - w_t(i) e) + sum w_t(i) a    over write heads     eq. 3-4
    y_t           = W [h_t; r_t] + b

Graves, Wayne, Danihelka 2014 (1410.5401). b = softplus, g and e = sigmoid, s = softmax, c = 1 +
softplus. Each read or write head has its own weights. Equations 2 to 9 are in
`layers.memory_access`.

# differs: where the paper is open, the choice makes training work with any seed.
# - M_0 is 1e-6 everywhere (Collier & Beel 2018), not random.
# - Every head starts at slot 0, w_0 = (1, 0, …): a shift does not change equal weights.
# - A slot with a norm below EPS matches a key in proportion to its norm. So an empty slot has no
#   gradient of 1 / |M|.
# - All heads address M_{t-1}: reading comes before writing.
# - The gradient from w_t to w_{t-1} is clipped at `gradient_clip`, as the paper clips gradients to
#   (-10, 10). c multiplies the log-odds of two slots at each step, so gradients can explode.
b: rows   t: steps   h: heads   n: slots   m: slot_dim   d: dim
"""

from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.scores import Cosine
from regard.attention.validation import check_positive, check_sequence, check_width
from regard.errors import InputError
from regard.kernels.linear import Linear, add_linear, linear
from regard.layers.cells import LSTM, Recurrence, RecurrentState
from regard.layers.memory_access import (
    AccessResult,
    HeadControls,
    access_memory,
    access_memory_fast,
    can_access_fast,
)
from regard.layers.precision import without_autocast

INITIAL_VALUE, EPS = 1e-6, 1e-2


class FeedforwardController(nn.Module):
    """h = tanh(W x + b): a controller without a state, with the interface of a cell."""

    def __init__(self, input_dim: int, hidden_dim: int):
        super().__init__()
        self.weight_ih = nn.Parameter(nn.init.xavier_uniform_(torch.empty(hidden_dim, input_dim)))
        self.bias = nn.Parameter(torch.zeros(hidden_dim))

    def initial_state(self, batch: int) -> RecurrentState:
        return (self.bias.new_zeros(batch, 0),)

    def recurrence(self) -> Recurrence:
        return lambda projected, _: (projected.tanh(),)


class Ntm(nn.Module):
    """The model of the equations above; `episode` returns its outputs over a sequence.

    `read_heads` and `write_heads` are numbers of heads; a head moves at most `max_shift` slots in a
    step. `observe` records the weights of reading and writing as "reader" and "writer": [rows,
    heads, steps, slots].
    """

    cross_attentions = ()  # this model has no source

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
        max_shift: int = 1,
        gradient_clip: float = 10.0,
    ):
        super().__init__()
        sizes = {"dim": dim, "slots": slots, "slot_dim": slot_dim, "max_shift": max_shift}
        for name, size in {**sizes, "read_heads": read_heads, "write_heads": write_heads}.items():
            check_positive(name, size)
        if 2 * max_shift + 1 > slots:
            raise InputError(f"max_shift ({max_shift}) must be less than half of slots ({slots})")
        if controller not in ("feedforward", "lstm"):
            raise InputError(f"controller must be feedforward or lstm, not {controller!r}")
        self.source_size, self.slots, self.slot_dim = source_size, slots, slot_dim
        self.read_heads, self.write_heads, self.max_shift = read_heads, write_heads, max_shift
        self.gradient_clip = gradient_clip
        controller_class = LSTM if controller == "lstm" else FeedforwardController
        self.controller = controller_class(source_size + read_heads * slot_dim, dim)
        heads = read_heads + write_heads
        # for all heads: key and strength, gate, sharpness, shifts; for write heads: erase, add
        self.sizes = [heads * (slot_dim + 1), heads, heads, heads * (2 * max_shift + 1)]
        self.sizes += [write_heads * slot_dim] * 2
        self.of_heads = Linear(dim, sum(self.sizes))
        self.out = Linear(dim + read_heads * slot_dim, target_size)
        softmax_over_slots = partial(torch.softmax, dim=-1)  # all slots are real: no mask needed
        self.reader, self.writer = (Attention(Cosine(EPS), softmax_over_slots) for _ in range(2))

    def episode(
        self, inputs: Float[Tensor, "b t i"], feedback: Float[Tensor, "b t f"] | None = None
    ) -> Float[Tensor, "b t o"]:
        """Return the logits of each step; `feedback` is concatenated to the inputs."""
        inputs_and_feedback = inputs if feedback is None else torch.cat([inputs, feedback], -1)
        check_sequence("inputs", inputs_and_feedback)
        check_width("inputs and feedback", inputs_and_feedback, self.source_size)
        with without_autocast(self.out.weight):
            return self.run_episode(inputs_and_feedback)

    def run_episode(self, inputs_and_feedback: Tensor) -> Tensor:
        """Run all steps in the dtype of the weights."""
        rows, heads = len(inputs_and_feedback), self.read_heads + self.write_heads
        control, state = self.controller.recurrence(), self.controller.initial_state(rows)
        of_read = self.controller.weight_ih[:, self.source_size :]
        matrix = inputs_and_feedback.new_full((rows, self.slots, self.slot_dim), INITIAL_VALUE)
        weights = inputs_and_feedback.new_zeros(rows, heads, 1, self.slots)
        weights[..., 0] = 1.0
        read = inputs_and_feedback.new_zeros(rows, self.read_heads * self.slot_dim)
        states, reads = list[Tensor](), list[Tensor]()
        for x in self.project(inputs_and_feedback).unbind(1):
            state = control(add_linear(x, read, of_read), state)
            if self.gradient_clip and weights.requires_grad:
                weights.register_hook(self.clip_gradient)
            read_vectors, weights, matrix = self.step_heads(state[0], weights, matrix)
            read = read_vectors.flatten(1)
            states.append(state[0])
            reads.append(read)
        return self.out(torch.cat([torch.stack(states, 1), torch.stack(reads, 1)], -1))

    def clip_gradient(self, gradient: Tensor) -> Tensor:
        """Clip the gradient of w_t that comes from later steps."""
        return gradient.clamp(-self.gradient_clip, self.gradient_clip)

    def project(self, inputs: Float[Tensor, "b t i"]) -> Float[Tensor, "b t g"]:
        """Return the inputs' part of the controller's product, for all steps at once."""
        controller = self.controller
        bias = (
            controller.bias_ih + controller.bias_hh
            if isinstance(controller, LSTM)
            else controller.bias
        )
        return linear(inputs, controller.weight_ih[:, : self.source_size], bias)

    def step_heads(
        self,
        state: Float[Tensor, "b d"],
        before: Float[Tensor, "b h 1 n"],
        matrix: Float[Tensor, "b n m"],
    ) -> AccessResult:
        """Run one step of the heads; return the read vectors, the weights and the new memory."""
        rows, heads = before.shape[:2]
        *head_parts, erase, add = self.of_heads(state).split(self.sizes, -1)
        parameters = [part.view(rows, heads, 1, -1) for part in head_parts]
        parameters += [part.view(rows, self.write_heads, -1) for part in (erase, add)]
        parts = self.reader, self.writer, HeadControls(*parameters)
        return (access_memory_fast if can_access_fast(*parts) else access_memory)(
            *parts, before, matrix
        )
