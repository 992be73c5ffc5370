"""Recurrent cells: one step from an input and the last state to the next state.

b: batch   d: input_dim   h: hidden_dim   g: gates (Elman 1, GRU 3, LSTM 4)

Parameters have the names and the row layout of `torch.nn.{RNN,LSTM,GRU}Cell`, so that weights can
be copied in both directions: `weight_ih` is [g*h, d], `weight_hh` is [g*h, h], and the biases
`bias_ih` and `bias_hh` add up.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.validation import check_positive, check_width
from regard.errors import InputError
from regard.kernels.gru import GruGates, GruState, can_train_by_kernels, gru_step
from regard.kernels.linear import linear
from regard.kernels.shared import step_product
from regard.layers.precision import interpolate

RecurrentState = tuple[Tensor, ...]  # state[0] is the output h; state[1] is the c of an LSTM
Recurrence = Callable[[Tensor, RecurrentState], RecurrentState]  # (projected input, state) -> state
TensorFunction = Callable[[Tensor], Tensor]
Kernel = Callable[..., tuple[Tensor, ...]]  # a function of torch that runs a whole sequence


class Cell(nn.Module):
    """The base of all cells: a product with the input, a product with the last state, and biases.

    `project` does not need the state, so a layer runs it once for a whole sequence. `recurrence`
    does the rest of a step. With `layer_norm`, each gate is normalized separately:

        gate = sigma(gain * LN(W x + U h + bias_hh) + bias_ih)

    This is the form of RNMT+ (Chen et al. 2018), which does not normalize the cell state of an
    LSTM. Ba et al. 2016 normalize the two products separately, and the cell state too.

    Recurrent weights start orthogonal, gate by gate (Saxe et al. 2014; Bahdanau et al. 2015, B.1).
    Input weights start as in Glorot & Bengio 2010. Biases start at 0, except those that a
    constructor takes as an argument.
    """

    gates: int
    tensors_per_state = 1

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        layer_norm: bool = False,
        output_dim: int | None = None,
    ):
        super().__init__()
        check_positive("input_dim", input_dim)
        check_positive("hidden_dim", hidden_dim)
        self.input_dim, self.hidden_dim = input_dim, hidden_dim
        self.output_dim = output_dim or hidden_dim  # width of h
        rows = self.gates * hidden_dim
        self.weight_ih = nn.Parameter(torch.empty(rows, input_dim))
        self.weight_hh = nn.Parameter(torch.empty(rows, self.output_dim))
        self.bias_ih = nn.Parameter(torch.zeros(rows))
        self.bias_hh = nn.Parameter(torch.zeros(rows))
        # differs: RNMT+ has no bias inside LN (ours starts at 0), and an eps of 1e-8 (ours: 1e-5)
        self.gain = nn.Parameter(torch.ones(self.gates, hidden_dim)) if layer_norm else None
        for block in self.weight_ih.split(hidden_dim):
            nn.init.xavier_uniform_(block)
        for block in self.weight_hh.split(hidden_dim):
            nn.init.orthogonal_(block)

    def init_gate_bias(self, gate: int, name: str, bias: float) -> None:
        """Set the initial bias of a gate; all of it goes into bias_ih, nothing into bias_hh."""
        if not math.isfinite(bias):
            raise InputError(f"{name} must be finite, not {bias}")
        with torch.no_grad():
            self.bias_ih[gate * self.hidden_dim : (gate + 1) * self.hidden_dim] = bias

    def initial_state(self, batch: int) -> RecurrentState:
        """Return zeros, one row for each sequence."""
        return tuple(self.weight_hh.new_zeros(batch, width) for width in self.state_widths)

    @property
    def state_widths(self) -> tuple[int, ...]:
        """Widths of the tensors in a state, h first."""
        return self.output_dim, *(self.hidden_dim for _ in range(self.tensors_per_state - 1))

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The parameters in the order of torch's kernels."""
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    @property
    def kernel(self) -> Kernel | None:
        """torch's fused kernel over a sequence if it computes the same function, else None."""
        raise NotImplementedError

    def fused_step(self, x: Tensor, state: RecurrentState) -> RecurrentState:
        """Run one step with torch's fused function; called only if there is a `kernel`."""
        raise NotImplementedError

    def project(self, inputs: Float[Tensor, "*b d"]) -> Float[Tensor, "*b gh"]:
        """W x, plus the biases that do not depend on the state."""
        bias = self.bias_ih + self.bias_hh if self.gain is None else self.bias_hh
        return linear(inputs, self.weight_ih, bias)

    def recurrence(self, state_mask: Float[Tensor, "b h"] | None = None) -> Recurrence:
        """Return the state-dependent part of a step; it computes once what all steps share.

        `state_mask` is a dropout mask on h where h enters a product (Gal & Ghahramani 2016). It may
        have more rows than the state.
        """
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "b d"], state: RecurrentState) -> RecurrentState:
        self.check(x, state)
        return self.advance(x, state)

    def advance(
        self, x: Tensor, state: RecurrentState, state_mask: Tensor | None = None
    ) -> RecurrentState:
        """Run one step without checking the arguments."""
        if self.kernel is None or state_mask is not None:
            return self.recurrence(state_mask)(self.project(x), state)
        return self.fused_step(x, state)

    def check(self, x: Tensor, state: RecurrentState) -> None:
        """Check shapes and dtypes. `Recurrent.forward` checks the values of a whole sequence."""
        if x.ndim != 2:
            raise InputError(f"x must be [batch, input_dim], not {list(x.shape)}")
        check_width("x", x, self.input_dim)
        check_dtype("x", x, self.weight_hh)
        check_state(state, [(x.shape[0], width) for width in self.state_widths], self.weight_hh)

    def gate_normalizer(self, gates: slice) -> TensorFunction:
        """Return gain * LN(raw) + bias_ih for each of these gates, or the identity without norm."""
        if self.gain is None:
            return _identity
        gain, hidden = self.gain[gates], self.hidden_dim
        bias = self.bias_ih.unflatten(0, (self.gates, hidden))[gates]

        def normalize(raw: Tensor) -> Tensor:
            normalized = F.layer_norm(raw.unflatten(-1, (-1, hidden)), (hidden,))
            return torch.addcmul(bias, normalized, gain).flatten(-2)

        return normalize

    def extra_repr(self) -> str:
        projected = f" -> {self.output_dim}" if self.output_dim != self.hidden_dim else ""
        norm = ", layer_norm=True" if self.gain is not None else ""
        return f"{self.input_dim}, {self.hidden_dim}{projected}{norm}"


class Elman(Cell):
    """h_t = sigma(W x_t + U h_{t-1} + b)  (Elman 1990); sigma is any function of a tensor."""

    gates = 1

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        activation: TensorFunction = torch.tanh,
        layer_norm: bool = False,
    ):
        super().__init__(input_dim, hidden_dim, layer_norm)
        self.activation = activation

    @property
    def kernel(self) -> Kernel | None:
        if self.gain is not None:
            return None
        return {torch.tanh: torch.rnn_tanh, torch.relu: torch.rnn_relu}.get(self.activation)

    def fused_step(self, x: Tensor, state: RecurrentState) -> RecurrentState:
        step = torch.rnn_tanh_cell if self.activation is torch.tanh else torch.rnn_relu_cell
        return (step(x, state[0], *self.weights),)

    def recurrence(self, state_mask: Float[Tensor, "b h"] | None = None) -> Recurrence:
        add_product, activation = step_product(self.weight_hh), self.activation
        normalize = self.gate_normalizer(slice(1))

        def step(projected: Tensor, state: RecurrentState) -> RecurrentState:
            (h,) = state
            return (activation(normalize(add_product(projected, _masked(h, state_mask)))),)

        return step


class LSTM(Cell):
    """i, f, o = sigma(W x + U h + b), g = tanh(W x + U h + b), c' = f c + i g, h' = o tanh(c').

    Hochreiter & Schmidhuber 1997 with the forget gate of Gers et al. 2000. The rows of the weights
    are i, f, g, o, as in torch. `forget_bias` is the initial sum of the two forget biases (1 after
    Gers et al. and Jozefowicz et al. 2015). All of it is in bias_ih, which layer norm does not
    remove.

    With `projection_dim`, h' = P (o tanh(c')) has that width, and c keeps `hidden_dim` (Sak et al.
    2014; `proj_size` of torch). With `state_clip`, c' and P (...) are clipped to [-clip, clip]
    where they enter a state (ELMo, Peters et al. 2018: 3).
    """

    gates = 4
    tensors_per_state = 2

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        forget_bias: float = 1.0,
        layer_norm: bool = False,
        projection_dim: int | None = None,
        state_clip: float | None = None,
    ):
        if projection_dim is not None and not 0 < projection_dim < hidden_dim:
            raise InputError(
                f"projection_dim must be between 1 and hidden_dim - 1, not {projection_dim}"
            )
        if state_clip is not None:
            check_positive("state_clip", state_clip)
        super().__init__(input_dim, hidden_dim, layer_norm, projection_dim)
        self.state_clip = state_clip
        self.weight_hr = None
        if projection_dim is not None:
            weight = torch.empty(projection_dim, hidden_dim)
            self.weight_hr = nn.Parameter(nn.init.xavier_uniform_(weight))
        self.init_gate_bias(1, "forget_bias", forget_bias)

    @property
    def weights(self) -> tuple[Tensor, ...]:
        return super().weights if self.weight_hr is None else (*super().weights, self.weight_hr)

    @property
    def kernel(self) -> Kernel | None:
        # on a CPU, torch's kernel with projections is a loop too, and torch warns about it
        plain = self.gain is None and self.state_clip is None and self.weight_hr is None
        return torch.lstm if plain else None

    def fused_step(self, x: Tensor, state: RecurrentState) -> RecurrentState:
        return torch.lstm_cell(x, state, *self.weights)

    def recurrence(self, state_mask: Float[Tensor, "b h"] | None = None) -> Recurrence:
        add_product, normalize = step_product(self.weight_hh), self.gate_normalizer(slice(4))
        P, clipped = self.weight_hr, self.clipped

        def step(projected: Tensor, state: RecurrentState) -> RecurrentState:
            h, c = state
            raw = normalize(add_product(projected, _masked(h, state_mask)))
            i, f, g, o = raw.chunk(4, -1)
            c = clipped(torch.addcmul(f.sigmoid() * c, i.sigmoid(), g.tanh()))
            h = o.sigmoid() * c.tanh()
            return h if P is None else clipped(linear(h, P)), c

        return step

    def clipped(self, x: Tensor) -> Tensor:
        return x if self.state_clip is None else x.clamp(-self.state_clip, self.state_clip)


class GRU(Cell):
    """r, z = sigma(W x + U h + b), h' = z h + (1 - z) h~  (Cho et al. 2014, eq. 5-8).

    Other texts write the same with the update gate u = 1 - z: h' = (1 - u) h + u h~. This class
    stores z, the gate that keeps, as torch does. So the rows of the weights are r, z, h~, and
    torch's kernels run on them unchanged. Negating the z rows of all four parameters turns z into
    u. The reset gate can be in one of two places, which are different functions:

        reset="after"    h~ = tanh(W x + b + r (U h + b'))     torch, cuDNN
        reset="before"   h~ = tanh(W x + U (r h) + b)          Cho et al. 2014

    `keep_bias` is the initial bias of z, similar to the forget bias of an LSTM.
    """

    gates = 3

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        reset: Literal["after", "before"] = "after",
        keep_bias: float = 0.0,
        layer_norm: bool = False,
    ):
        super().__init__(input_dim, hidden_dim, layer_norm)
        if reset not in ("after", "before"):
            raise InputError(f"reset must be 'after' or 'before', not {reset!r}")
        self.reset = reset
        self.init_gate_bias(1, "keep_bias", keep_bias)

    @property
    def kernel(self) -> Kernel | None:
        return torch.gru if self.gain is None and self.reset == "after" else None

    def fused_step(self, x: Tensor, state: RecurrentState) -> RecurrentState:
        return (torch.gru_cell(x, state[0], *self.weights),)

    def project(self, inputs: Float[Tensor, "*b d"]) -> Float[Tensor, "*b gh"]:
        if self.reset == "before":
            return super().project(inputs)
        return linear(inputs, self.weight_ih, self.bias_ih if self.gain is None else None)

    def recurrence(self, state_mask: Float[Tensor, "b h"] | None = None) -> Recurrence:
        if state_mask is None and self.gain is None:
            run_step = gru_step(self.weight_hh, self.bias_hh, resets_before=self.reset == "before")
            if run_step is not None:
                return lambda projected, state: (run_step(projected, state[0]),)
        if self.reset == "before" and self.gain is None and can_train_by_kernels(self.weight_hh):
            return self.fused_recurrence(state_mask)
        normalize_gates, normalize_new = (
            self.gate_normalizer(slice(2)),
            self.gate_normalizer(slice(2, 3)),
        )
        product = self.reset_after() if self.reset == "after" else self.reset_before()

        def step(projected: Tensor, state: RecurrentState) -> RecurrentState:
            (h,) = state
            z, raw = product(projected, _masked(h, state_mask), normalize_gates)
            return (interpolate(normalize_new(raw).tanh(), h, z),)

        return step

    def fused_recurrence(self, state_mask: Tensor | None) -> Recurrence:
        """Return the same recurrence with the reset before the product, for training."""
        sizes = [2 * self.hidden_dim, self.hidden_dim]
        add_gates, add_new = (step_product(U) for U in self.weight_hh.split(sizes))

        def step(projected: Tensor, state: RecurrentState) -> RecurrentState:
            input_gates, input_new = projected.split(sizes, -1)
            h = _masked(state[0], state_mask)
            reset, keep = GruGates.apply(add_gates(input_gates, h), h)
            return (GruState.apply(add_new(input_new, reset), keep, state[0]),)

        return step

    def reset_after(self) -> Callable[[Tensor, Tensor, TensorFunction], tuple[Tensor, Tensor]]:
        """Return a function for z, and h~ before its tanh, with r on the product U h + b'."""
        sizes = [2 * self.hidden_dim, self.hidden_dim]
        add_product, bias = step_product(self.weight_hh), self.bias_hh

        def product(
            projected: Tensor, h: Tensor, normalize_gates: TensorFunction
        ) -> tuple[Tensor, Tensor]:
            input_gates, input_new = projected.split(sizes, -1)
            gates, new = add_product(bias.expand(len(h), -1), h).split(sizes, -1)
            r, z = normalize_gates(input_gates + gates).sigmoid().chunk(2, -1)
            return z, torch.addcmul(input_new, r, new)

        return product

    def reset_before(self) -> Callable[[Tensor, Tensor, TensorFunction], tuple[Tensor, Tensor]]:
        """Return a function for z, and h~ before its tanh, with r on the state h."""
        sizes = [2 * self.hidden_dim, self.hidden_dim]
        add_gates, add_new = (step_product(U) for U in self.weight_hh.split(sizes))

        def product(
            projected: Tensor, h: Tensor, normalize_gates: TensorFunction
        ) -> tuple[Tensor, Tensor]:
            input_gates, input_new = projected.split(sizes, -1)
            r, z = normalize_gates(add_gates(input_gates, h)).sigmoid().chunk(2, -1)
            return z, add_new(input_new, r * h)

        return product


def check_dtype(name: str, tensor: Tensor, weight: Tensor) -> None:
    """Check for the dtype of the weights; under autocast, torch casts by itself."""
    if tensor.dtype != weight.dtype and not torch.is_autocast_enabled(weight.device.type):
        raise InputError(f"{name} must be {weight.dtype} like the weights, not {tensor.dtype}")


def check_state(state: RecurrentState, shapes: Sequence[tuple[int, ...]], weight: Tensor) -> None:
    if len(state) != len(shapes):
        raise InputError(f"state must have {len(shapes)} tensors, not {len(state)}")
    for part, shape in zip(state, shapes, strict=True):
        if part.shape != shape:
            raise InputError(f"state must be of shape {list(shape)}, not {list(part.shape)}")
        check_dtype("state", part, weight)


def _identity(raw: Tensor) -> Tensor:
    return raw


def _masked(h: Tensor, state_mask: Tensor | None) -> Tensor:
    return h if state_mask is None else h * state_mask[: h.shape[0]]
