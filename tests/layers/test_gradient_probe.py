"""The gradient probe against the closed form of a linear network, and on models of other shapes."""

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from regard.attention.core import Attention
from regard.attention.scores import Dot
from regard.layers.cells import GRU, LSTM, Elman, RecurrentState
from regard.layers.gradient_probe import gradient_by_distance
from regard.layers.recurrent import Recurrent

STEPS = 12


def linear(V: Tensor) -> Elman:
    """h_t = V h_{t-1} + U x_t: an Elman network with the identity as activation."""
    cell = Elman(2, len(V), activation=lambda v: v).double()
    with torch.no_grad():
        cell.weight_hh.copy_(V)
    return cell


def probe(cell: Elman | LSTM | GRU, steps: int = STEPS, batch: int = 3) -> Tensor:
    inputs = torch.randn(batch, steps, cell.input_dim).double()
    return gradient_by_distance(cell.double(), inputs, cell.initial_state(batch))


def test_linear_network_is_the_closed_form():
    """dJ_t/dh_k = dJ_t/dh_t V^(t-k), and J_t = sum h_t has the gradient (1, ... 1)."""
    V = torch.randn(4, 4).double()
    norms = probe(linear(V))
    expected = [
        (torch.ones(4).double() @ torch.matrix_power(V, n)).norm() for n in range(STEPS + 1)
    ]
    torch.testing.assert_close(norms, torch.stack(expected), rtol=1e-10, atol=0)


@pytest.mark.parametrize("eigenvalue", [0.5, 1.0, 1.5])
def test_the_largest_eigenvalue_decides(eigenvalue):
    """Below 1 the gradient vanishes and above 1 it explodes, like its power."""
    Q, _ = torch.linalg.qr(torch.randn(5, 5).double())
    V = Q @ torch.diag(torch.tensor([eigenvalue, 0.1, 0.05, -0.1, 0.02]).double()) @ Q.t()
    norms = probe(linear(V), 40)
    assert (norms[40] / norms[20]).item() == pytest.approx(eigenvalue**20, rel=1e-4)


def test_by_hand():
    """One unit, h_t = tanh(h_{t-1} / 2) without input from h_0 = 1."""
    cell = Elman(1, 1).double()
    for weight, value in ((cell.weight_hh, 0.5), (cell.weight_ih, 0.0)):
        torch.nn.init.constant_(weight, value)
    initial = torch.ones(1, 1).double()
    norms = gradient_by_distance(cell, torch.zeros(1, 2, 1).double(), (initial,))
    h1 = math.tanh(0.5)
    h2 = math.tanh(h1 / 2)
    back_one = (1 - h2**2) / 2
    assert norms.tolist() == pytest.approx([1, back_one, back_one * (1 - h1**2) / 2])


def test_it_is_the_difference_quotient():
    cell = LSTM(2, 3).double()
    inputs, (h, c) = torch.randn(1, 4, 2).double(), (torch.randn(2, 1, 3).double().unbind(0))

    def end(h: Tensor) -> float:
        state: RecurrentState = (h, c)
        for x in inputs.unbind(1):
            state = cell(x, state)
        return state[0].square().sum().item()

    tiny = 1e-6 * torch.eye(3).double()
    slope = torch.tensor([(end(h + d) - end(h - d)) / 2e-6 for d in tiny]).norm()
    norms = gradient_by_distance(cell, inputs, (h, c), lambda h: h.square().sum())
    assert norms[4].item() == pytest.approx(slope.item(), rel=1e-6)
    assert norms.shape == (5,)


def test_gradients_vanish_without_gates():
    elman = probe(Elman(16, 16), 50)
    gru = probe(GRU(16, 16, keep_bias=math.log(49)), 50)
    lstm = probe(LSTM(16, 16, forget_bias=math.log(49)), 50)
    assert elman[50] / elman[0] < 1e-6
    assert gru[50] / gru[0] > 1e-2
    assert lstm[50] / lstm[0] > 1e-2
    closed = probe(LSTM(16, 16, forget_bias=-3.0), 50)  # it is the gate that does it
    assert closed[50] / closed[0] < 1e-10


def test_rows_are_averaged_and_not_mixed():
    cell = GRU(2, 3).double()
    inputs = torch.randn(4, 5, 2).double()
    together = gradient_by_distance(cell, inputs, cell.initial_state(4))
    rows = [gradient_by_distance(cell, row[None], cell.initial_state(1)) for row in inputs]
    torch.testing.assert_close(together, torch.stack(rows).mean(0))


def test_any_recurrent_model_has_a_step():
    """A stack of layers, and a model with a tape that grows and that it attends to."""
    layer = Recurrent(LSTM, 2, 3, layers=2)
    inputs = torch.randn(4, 6, 2)
    norms = gradient_by_distance(lambda x, s: layer.step(x, s)[1], inputs, layer.initial_state(4))
    assert norms.shape == (7,)
    assert (norms > 0).all()

    cell, attention = GRU(5, 3), Attention(Dot())

    def step(x: Tensor, state: RecurrentState) -> RecurrentState:
        h, tape = state
        context = attention(h[:, None], attention.remember(tape))[:, 0]
        (h,) = cell(torch.cat([x, context], -1), (h,))
        return h, torch.cat([tape, h[:, None]], 1)

    norms = gradient_by_distance(step, inputs, (torch.zeros(4, 3), torch.zeros(4, 1, 3)))
    assert norms.shape == (7,)
    assert (norms > 0).all()


def test_a_state_that_is_not_read_has_no_gradient():
    norms = gradient_by_distance(
        lambda x, _: (x.exp(),), torch.randn(2, 2, 3), (torch.zeros(2, 3),)
    )
    assert norms.tolist() == [pytest.approx(math.sqrt(3)), 0, 0]


def test_no_gradients_are_left():
    """No gradient on parameters or inputs, also under no_grad."""
    cell, inputs = GRU(2, 3), torch.randn(2, 4, 2, requires_grad=True)
    state = (torch.zeros(2, 3, requires_grad=True),)
    with torch.no_grad():
        norms = gradient_by_distance(cell, inputs, state)
    assert not norms.requires_grad
    assert all(t.grad is None for t in (inputs, *state, *cell.parameters()))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("message", "inputs", "loss"),
    [
        ("inputs must be", torch.randn(4, 2), torch.sum),
        ("inputs must be", torch.randn(4, 0, 2), torch.sum),
        ("inputs holds NaN", torch.full((4, 3, 2), math.nan), torch.sum),
        ("loss must return a scalar", torch.randn(4, 3, 2), partial(torch.sum, dim=1)),
    ],
)
def test_bad_input_is_named_in_one_line(message, inputs, loss):
    cell = GRU(2, 3)
    with pytest.raises(ValueError, match=message) as error:
        gradient_by_distance(cell, inputs, cell.initial_state(4), loss)
    assert "\n" not in str(error.value)
