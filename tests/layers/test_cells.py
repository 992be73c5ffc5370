"""Cells against loops over single numbers, against torch, and properties from the papers."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call

from regard.layers.cells import GRU, LSTM, Cell, Elman

# Builders of the cells.
CELLS = {
    "elman": Elman,
    "elman sigmoid": partial(Elman, activation=torch.sigmoid),
    "elman relu": partial(Elman, activation=torch.relu),
    "elman norm": partial(Elman, layer_norm=True),
    "lstm": LSTM,
    "lstm norm": partial(LSTM, layer_norm=True),
    "gru after": GRU,
    "gru before": partial(GRU, reset="before"),
    "gru after norm": partial(GRU, layer_norm=True),
    "gru before norm": partial(GRU, reset="before", layer_norm=True),
}
Vector = list[float]


def sigma(v: float) -> float:
    return 1 / (1 + math.exp(-v))


def times(matrix: list[Vector], vector: Vector) -> Vector:
    return [sum(m * v for m, v in zip(row, vector, strict=True)) for row in matrix]


class Gate:
    """The weights of one gate as plain numbers, and its pre-activation by the equation."""

    def __init__(self, cell: Cell, index: int):
        rows = slice(index * cell.hidden_dim, (index + 1) * cell.hidden_dim)
        self.W, self.U = cell.weight_ih[rows].tolist(), cell.weight_hh[rows].tolist()
        self.b, self.b_h = cell.bias_ih[rows].tolist(), cell.bias_hh[rows].tolist()
        self.gain = None if cell.gain is None else cell.gain[index].tolist()

    def raw(self, x: Vector, h: Vector, r: Vector | None = None) -> Vector:
        """W x + r (U h + b') + b, with the norm of the cell; r is 1 except in a GRU."""
        r = [1.0] * len(h) if r is None else r
        of_x, of_h = times(self.W, x), times(self.U, h)
        inner = [a + k * (b + c) for a, k, b, c in zip(of_x, r, of_h, self.b_h, strict=True)]
        if self.gain is not None:
            mean = sum(inner) / len(inner)
            spread = math.sqrt(sum((v - mean) ** 2 for v in inner) / len(inner) + 1e-5)
            inner = [g * (v - mean) / spread for g, v in zip(self.gain, inner, strict=True)]
        return [v + b for v, b in zip(inner, self.b, strict=True)]


def elman(cell: Elman, x: Vector, h: Vector) -> tuple[Vector, ...]:
    act = {torch.tanh: math.tanh, torch.sigmoid: sigma, torch.relu: lambda v: max(v, 0.0)}
    return ([act[cell.activation](v) for v in Gate(cell, 0).raw(x, h)],)


def lstm(cell: LSTM, x: Vector, h: Vector, c: Vector) -> tuple[Vector, ...]:
    i, f, g, o = (Gate(cell, n).raw(x, h) for n in range(4))
    units = range(len(h))
    c = [sigma(f[j]) * c[j] + sigma(i[j]) * math.tanh(g[j]) for j in units]
    return [sigma(o[j]) * math.tanh(c[j]) for j in units], c


def gru(cell: GRU, x: Vector, h: Vector) -> tuple[Vector, ...]:
    """The equations with the update gate u = 1 - z."""
    r = [sigma(v) for v in Gate(cell, 0).raw(x, h)]
    u = [1 - sigma(v) for v in Gate(cell, 1).raw(x, h)]
    if cell.reset == "after":
        new = Gate(cell, 2).raw(x, h, r)
    else:
        new = Gate(cell, 2).raw(x, [a * b for a, b in zip(r, h, strict=True)])
    return ([(1 - u[j]) * h[j] + u[j] * math.tanh(new[j]) for j in range(len(h))],)


def step_by_equation(cell: Cell, x: Tensor, state: tuple[Tensor, ...]) -> list[Tensor]:
    step = {Elman: elman, LSTM: lstm, GRU: gru}[type(cell)]
    rows = [step(cell, x[n].tolist(), *(s[n].tolist() for s in state)) for n in range(len(x))]
    return [torch.tensor(part, dtype=torch.float64) for part in zip(*rows, strict=True)]


def randomized(cell: Cell) -> Cell:
    """Convert to float64 and move every parameter, so that no bias is 0 and no gain is 1."""
    cell = cell.double()
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.add_(torch.randn_like(parameter) / 2)
    return cell


def random_inputs(cell: Cell, batch: int = 3) -> tuple[Tensor, tuple[Tensor, ...]]:
    x = torch.randn(batch, cell.input_dim).to(cell.weight_hh)
    return x, tuple(torch.randn_like(part) for part in cell.initial_state(batch))


@pytest.mark.parametrize("name", CELLS)
@given(sizes=st.tuples(*[st.integers(1, 5)] * 3), seed=st.integers(0, 2**31))
@settings(max_examples=10)
def test_it_is_the_equation(name, sizes, seed):
    torch.manual_seed(seed)
    cell = randomized(CELLS[name](*sizes[:2]))
    x, state = random_inputs(cell, sizes[2])
    expected = step_by_equation(cell, x, state)
    for got in (cell(x, state), cell.recurrence()(cell.project(x), state)):
        torch.testing.assert_close(list(got), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "build_torch_cell"),
    [
        ("elman", nn.RNNCell),
        ("elman relu", partial(nn.RNNCell, nonlinearity="relu")),
        ("lstm", nn.LSTMCell),
        ("gru after", nn.GRUCell),
    ],
)
def test_it_loads_the_weights_of_torch(name, build_torch_cell):
    torch_cell = build_torch_cell(4, 5).double()
    cell = CELLS[name](4, 5).double()
    cell.load_state_dict(torch_cell.state_dict())
    x, state = random_inputs(cell)
    expected = torch_cell(x, state if cell.tensors_per_state == 2 else state[0])
    expected = list(expected) if cell.tensors_per_state == 2 else [expected]
    for got in (cell(x, state), cell.recurrence()(cell.project(x), state)):
        torch.testing.assert_close(list(got), expected, rtol=1e-10, atol=1e-12)


def test_projection_and_clip_by_equation():
    """A plain LSTM with c clipped, and then P (o tanh c) clipped."""
    cell = randomized(LSTM(2, 4, projection_dim=3, state_clip=0.4))
    x, (h, c) = random_inputs(cell)
    assert (h.shape, c.shape) == ((3, 3), (3, 4))
    for row, (got_h, got_c) in enumerate(zip(*cell(x, (h, c)), strict=True)):
        gates, ones = [Gate(cell, n) for n in range(4)], [1.0] * 4
        i, f, g, o = (gate.raw(x[row].tolist(), h[row].tolist(), ones) for gate in gates)
        units = range(4)
        unclipped = [sigma(f[j]) * c[row, j].item() + sigma(i[j]) * math.tanh(g[j]) for j in units]
        clipped = [min(max(v, -0.4), 0.4) for v in unclipped]
        projected = times(
            cell.weight_hr.tolist(), [sigma(o[j]) * math.tanh(clipped[j]) for j in units]
        )
        assert got_c.tolist() == pytest.approx(clipped)
        assert got_h.tolist() == pytest.approx([min(max(v, -0.4), 0.4) for v in projected])
    assert (cell(5 * x, (h, 5 * c))[1].abs() == 0.4).any()


@pytest.mark.parametrize("name", CELLS)
def test_gradients(name):
    cell = randomized(CELLS[name](1, 3))
    names, weights = zip(*cell.named_parameters(), strict=True)
    x, state = random_inputs(cell, 2)

    def run(x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        given = dict(zip(names, rest[cell.tensors_per_state :], strict=True))
        return functional_call(cell, given, (x, rest[: cell.tensors_per_state]))

    inputs = [t.detach().requires_grad_() for t in (x, *state, *weights)]
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_every_precision_is_finite_and_stays(name, dtype):
    cell = CELLS[name](4, 6).to(dtype)
    x, state = random_inputs(cell)
    after = cell(100 * x, state)
    assert all(part.dtype == dtype and part.isfinite().all() for part in after)
    torch.stack([part.sum() for part in after]).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in cell.parameters())


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("elman", torch.rnn_tanh),
        ("elman relu", torch.rnn_relu),
        ("elman sigmoid", None),
        ("elman norm", None),
        ("lstm", torch.lstm),
        ("lstm norm", None),
        ("gru after", torch.gru),
        ("gru before", None),
        ("gru after norm", None),
    ],
)
def test_a_kernel_exactly_where_torch_has_the_function(name, kernel):
    assert CELLS[name](2, 3).kernel is kernel


def test_forget_bias_by_hand():
    """Without input and weights every gate is half open, except the forget gate: sigma(bias)."""
    for bias in (0.0, 1.0, -2.0):
        cell = LSTM(1, 1, forget_bias=bias).double()
        for weight in (cell.weight_ih, cell.weight_hh):
            nn.init.zeros_(weight)
        c = torch.tensor([[0.8]]).double()
        h, after = cell(torch.zeros_like(c), (torch.zeros_like(c), c))
        assert after.item() == pytest.approx(0.8 * sigma(bias))
        assert h.item() == pytest.approx(0.5 * math.tanh(0.8 * sigma(bias)))


@pytest.mark.parametrize("norm", [False, True])
def test_biases_start_at_zero_but_for_the_one_named(norm):
    lstm, gru = (
        LSTM(3, 4, forget_bias=1.5, layer_norm=norm),
        GRU(3, 4, keep_bias=-0.5, layer_norm=norm),
    )
    assert lstm.bias_ih.tolist() == [0.0] * 4 + [1.5] * 4 + [0.0] * 8
    assert gru.bias_ih.tolist() == [0.0] * 4 + [-0.5] * 4 + [0.0] * 4
    assert not lstm.bias_hh.any()
    assert not gru.bias_hh.any()
    assert LSTM(3, 4).bias_ih.tolist() == [0.0] * 4 + [1.0] * 4 + [0.0] * 8


def test_norm_does_not_remove_the_forget_bias():
    """LN would remove a bias that is equal in all units of a gate; so it is outside LN."""
    x, (h, c) = random_inputs(LSTM(3, 8))
    torch.manual_seed(0)
    keeps = LSTM(3, 8, forget_bias=20.0, layer_norm=True)
    torch.manual_seed(0)
    loses = LSTM(3, 8, forget_bias=-20.0, layer_norm=True)
    torch.testing.assert_close(keeps(x, (h, c))[1] - loses(x, (h, c))[1], c)


def test_keep_bias_keeps():
    x, (h,) = random_inputs(GRU(3, 4))
    torch.testing.assert_close(GRU(3, 4, keep_bias=40.0)(x, (h,))[0], h)
    assert (GRU(3, 4, keep_bias=-40.0)(x, (h,))[0] - h).abs().max() > 0.1


def test_negated_update_gate_is_the_keep_gate():
    """h' = (1 - u) h + u h~ with u from the negated z rows."""
    cell = randomized(GRU(2, 3, reset="before"))
    negated = GRU(2, 3, reset="before").double()
    negated.load_state_dict(cell.state_dict())
    with torch.no_grad():
        for weight in negated.weights:
            weight[3:6].neg_()
    x, (h,) = random_inputs(cell)
    raw_z, raw_u = (c.project(x) + h @ c.weight_hh.t() for c in (cell, negated))
    z, u = raw_z[:, 3:6].sigmoid(), raw_u[:, 3:6].sigmoid()
    torch.testing.assert_close(u, 1 - z)
    output, negated_output = cell(x, (h,))[0], negated(x, (h,))[0]
    # (z h + (1 - z) n) + (u h + (1 - u) n) = h + n, with n the new content of both
    new = output + negated_output - h
    torch.testing.assert_close(output, (1 - u) * h + u * new)


def test_the_two_places_of_the_reset_gate():
    """Different functions, which agree when the reset gate is open."""
    after, before = randomized(GRU(3, 4)), GRU(3, 4, reset="before").double()
    before.load_state_dict(after.state_dict())
    x, state = random_inputs(after)
    assert (after(x, state)[0] - before(x, state)[0]).abs().max() > 1e-3
    for cell in (after, before):
        cell.init_gate_bias(0, "reset_bias", 60.0)
    torch.testing.assert_close(after(x, state)[0], before(x, state)[0])


@pytest.mark.parametrize("name", ["elman norm", "lstm norm", "gru before norm", "gru after norm"])
def test_norm_is_separate_for_each_gate(name):
    """Scaling all weights of one gate changes nothing; without norm it does."""
    cell = CELLS[name](5, 8).double()
    x, state = random_inputs(cell)
    before = cell(x, state)[0]
    for gate in range(cell.gates):
        with torch.no_grad():
            for weight in (cell.weight_ih, cell.weight_hh):
                weight[gate * 8 : (gate + 1) * 8] *= 4 + gate
    torch.testing.assert_close(cell(x, state)[0], before, rtol=1e-3, atol=1e-4)
    cell.gain = None
    assert (cell(x, state)[0] - before).abs().max() > 1e-2


@pytest.mark.parametrize("kind", [Elman, LSTM, GRU])
def test_recurrent_weights_start_orthogonal(kind):
    cell = kind(30, 20)
    for U in cell.weight_hh.split(20):
        torch.testing.assert_close(U @ U.t(), torch.eye(20), rtol=0, atol=1e-5)
    limit = math.sqrt(6 / (30 + 20))  # Glorot & Bengio 2010, eq. 16
    assert 0.9 * limit < cell.weight_ih.abs().max() <= limit


def test_a_state_drops_only_where_it_enters_a_product():
    """With all of h dropped there is no product with h; a GRU still keeps h itself."""
    x, (h,) = random_inputs(randomized(GRU(2, 3)))
    all_dropped = torch.zeros_like(h)
    for name, build in CELLS.items():
        cell = randomized(build(2, 3))
        state = (h, h)[: cell.tensors_per_state]
        with_h = cell.advance(x, state, all_dropped)[0]
        cell.weight_hh.data.zero_()
        torch.testing.assert_close(with_h, cell.advance(x, state)[0], msg=name)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("x must be 3 wide, not 2", lambda cell, x, s: cell(x[:, :2], s)),
        (r"x must be \[batch, input_dim\], not \[3\]", lambda cell, x, s: cell(x[0], s)),
        ("x must be torch.float32", lambda cell, x, s: cell(x.double(), s)),
        ("x must be torch.float32", lambda cell, x, s: cell(x.long(), s)),
        ("state must have 2 tensors, not 1", lambda cell, x, s: cell(x, s[:1])),
        (r"state must be of shape \[4, 5\]", lambda cell, x, s: cell(x, (s[0], s[1][:2]))),
        ("state must be torch.float32", lambda cell, x, s: cell(x, (s[0], s[1].double()))),
        ("input_dim must be positive, not 0", lambda *_: LSTM(0, 5)),
        ("hidden_dim must be positive, not -1", lambda *_: Elman(2, -1)),
        ("forget_bias must be finite, not nan", lambda *_: LSTM(2, 2, forget_bias=math.nan)),
        ("projection_dim must be between 1 and hid", lambda *_: LSTM(2, 2, projection_dim=2)),
        ("projection_dim must be between 1 and hid", lambda *_: LSTM(2, 2, projection_dim=0)),
        ("state_clip must be positive, not 0.0", lambda *_: LSTM(2, 2, state_clip=0.0)),
        ("keep_bias must be finite, not inf", lambda *_: GRU(2, 2, keep_bias=math.inf)),
        ("reset must be 'after' or 'before', not 'never'", lambda *_: GRU(2, 2, reset="never")),
    ],
)
def test_bad_input_is_named_in_one_line(message, call):
    cell = LSTM(3, 5)
    with pytest.raises(ValueError, match=message) as error:
        call(cell, torch.randn(4, 3), cell.initial_state(4))
    assert "\n" not in str(error.value)
