"""Recurrent layers against torch, against a loop over rows and steps, and their laws."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.layers import recurrent
from regard.layers.cells import GRU, LSTM, Cell, Elman, RecurrentState
from regard.layers.recurrent import DropoutMasks, Packing, Recurrent, select_state

CELLS = {
    "elman": Elman,
    "elman sigmoid": partial(Elman, activation=torch.sigmoid),
    "lstm": LSTM,
    "lstm norm": partial(LSTM, layer_norm=True),
    "lstm projected": partial(LSTM, projection_dim=1),
    "lstm clipped": partial(LSTM, projection_dim=1, state_clip=0.3),
    "gru after": GRU,
    "gru before": partial(GRU, reset="before"),
    "gru before norm": partial(GRU, reset="before", layer_norm=True),
}
FUSED = {"elman": (Elman, nn.RNN), "lstm": (LSTM, nn.LSTM), "gru after": (GRU, nn.GRU)}
close = partial(torch.testing.assert_close, rtol=1e-10, atol=1e-12)
row_lengths = st.lists(st.integers(0, 5), min_size=1, max_size=4)
seeds = st.integers(0, 2**31)


def valid_up_to(lengths: list[int], steps: int | None = None) -> Tensor:
    """Return a mask of the real steps."""
    return torch.arange(steps or max(*lengths, 1)) < torch.tensor(lengths)[:, None]


def randomized(layer: Recurrent) -> Recurrent:
    """Convert to float64 and move every parameter, so that no bias is 0 and no gain is 1."""
    layer = layer.double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter) / 3)
    return layer


def random_state(layer: Recurrent, batch: int) -> RecurrentState:
    return tuple(torch.randn_like(part) for part in layer.initial_state(batch))


def unfused_copy(layer: Recurrent, cell: type[Cell]) -> Recurrent:
    """Copy a layer, without torch's kernel."""
    unfused = type("Unfused", (cell,), {"kernel": None})
    twin = Recurrent(
        unfused, layer.input_dim, layer.hidden_dim, layer.layers, layer.directions == 2
    )
    twin.to(layer.stack[0].weight_hh.dtype).load_state_dict(layer.state_dict())
    return twin


def run_by_definition(
    layer: Recurrent, inputs: Tensor, lengths: list[int], state: RecurrentState
) -> tuple[Tensor, RecurrentState]:
    """Run row by row, layer by layer, step by step."""
    outputs = inputs.new_zeros(*inputs.shape[:2], layer.output_dim)
    final = [part.clone() for part in state]
    for row, length in enumerate(lengths):
        layer_inputs = [inputs[row, t] for t in range(length)]
        for depth in range(layer.layers):
            directions = []
            for direction in range(layer.directions):
                index = depth * layer.directions + direction
                now = tuple(part[index, row][None] for part in state)
                outputs_by_step = {}
                for t in range(length) if direction == 0 else reversed(range(length)):
                    now = layer.stack[index](layer_inputs[t][None], now)
                    outputs_by_step[t] = now[0][0]
                for part, value in zip(final, now, strict=True):
                    part[index, row] = value[0]
                directions.append(outputs_by_step)
            layer_inputs = [
                torch.cat([outputs_by_step[t] for outputs_by_step in directions])
                for t in range(length)
            ]
        for t in range(length):
            outputs[row, t] = layer_inputs[t]
    return outputs, tuple(final)


@pytest.mark.parametrize("name", CELLS)
@given(
    lengths=row_lengths,
    layers=st.integers(1, 2),
    bidirectional=st.booleans(),
    spare=st.integers(0, 2),
    seed=seeds,
)
@settings(max_examples=4)
def test_it_is_its_cell_step_by_step(name, lengths, layers, bidirectional, spare, seed):
    torch.manual_seed(seed)
    layer = randomized(Recurrent(CELLS[name], 3, 4, layers, bidirectional))
    steps = max(*lengths, 1) + spare
    inputs = torch.randn(len(lengths), steps, 3).double()
    state = random_state(layer, len(lengths))
    expected = run_by_definition(layer, inputs, lengths, state)
    close(layer(inputs, valid_up_to(lengths, steps), state), expected)
    with torch.no_grad():  # here the packed kernel runs, if there is one
        close(layer(inputs, valid_up_to(lengths, steps), state), expected)


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("lengths", [None, [2, 5, 1]])
def test_it_is_torch_at_its_weights(name, layers, bidirectional, lengths):
    cell, torch_layer = FUSED[name]
    torch_layer = torch_layer(3, 4, layers, bidirectional=bidirectional, batch_first=True).double()
    layer = Recurrent(cell, 3, 4, layers, bidirectional).double().load_torch_weights(torch_layer)
    inputs = torch.randn(3, 5, 3).double().requires_grad_()
    state = random_state(layer, 3)
    packed_inputs = inputs
    if lengths is not None:
        packed_inputs = pack_padded_sequence(
            inputs, lengths, batch_first=True, enforce_sorted=False
        )
    outputs, final = torch_layer(packed_inputs, state if len(state) == 2 else state[0])
    if lengths is not None:
        outputs, _ = pad_packed_sequence(outputs, batch_first=True)
    final = final if len(state) == 2 else (final,)
    got = layer(inputs, None if lengths is None else valid_up_to(lengths), state)
    close(got, (outputs, final))

    pull = torch.randn_like(outputs)
    weights = [[p for c in layer.stack for p in c.weights], list(torch_layer.parameters())]
    gradients, torch_gradients = (
        torch.autograd.grad((o * pull).sum() + sum(part.sum() for part in f), [inputs, *w])
        for (o, f), w in zip([got, (outputs, final)], weights, strict=True)
    )
    close(gradients, torch_gradients)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_projected_lstm_is_torchs(bidirectional):
    torch_layer = nn.LSTM(
        3, 5, 2, bidirectional=bidirectional, batch_first=True, proj_size=2
    ).double()
    layer = (
        Recurrent(partial(LSTM, projection_dim=2), 3, 5, 2, bidirectional)
        .double()
        .load_torch_weights(torch_layer)
    )
    inputs, state = torch.randn(3, 4, 3).double(), random_state(layer, 3)
    expected = torch_layer(inputs, state)
    assert expected[0].shape == (3, 4, layer.output_dim)
    close(layer(inputs, None, state), expected)
    close(layer(inputs, valid_up_to([4, 4, 2]), state)[0][:2], expected[0][:2])
    if not bidirectional:
        for t, x in enumerate(inputs.unbind(1)):
            top, state = layer.step(x, state)
            close(top, expected[0][:, t])


@pytest.mark.parametrize("name", FUSED)
@given(layers=st.integers(1, 2), bidirectional=st.booleans(), seed=seeds)
@settings(max_examples=4)
def test_fused_is_explicit(name, layers, bidirectional, seed):
    torch.manual_seed(seed)
    cell, _ = FUSED[name]
    layer = randomized(Recurrent(cell, 3, 4, layers, bidirectional))
    twin = unfused_copy(layer, cell)
    inputs = torch.randn(3, 4, 3).double().requires_grad_()
    gradients = []
    for each in (layer, twin):
        outputs, final = each(inputs)
        total = outputs.square().sum() + sum(part.square().sum() for part in final)
        gradients.append(torch.autograd.grad(total, [inputs, *each.parameters()]))
    close(layer(inputs), twin(inputs))
    close(*gradients)
    valid = valid_up_to([2, 0, 4])
    with torch.no_grad():
        close(layer(inputs, valid), twin(inputs, valid))


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("lengths", [None, [3, 0, 1]])
def test_gradients(name, lengths):
    layer = randomized(Recurrent(CELLS[name], 1, 2 + ("norm" in name), bidirectional=True))
    inputs = torch.randn(3, 3, 1).double().requires_grad_()
    state = tuple(part.requires_grad_() for part in random_state(layer, 3))
    valid = None if lengths is None else valid_up_to(lengths)

    def run(inputs: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        outputs, final = layer(inputs, valid, state)
        return outputs, *final

    assert torch.autograd.gradcheck(run, (inputs, *state), fast_mode=True)


def test_kernels_run_where_they_should(monkeypatch):
    """Check which path runs; timings cannot be tested on a busy machine."""
    taken = []
    fused, unrolled = Recurrent.run_fused, recurrent.run_unfused
    monkeypatch.setattr(
        Recurrent, "run_fused", lambda *words: (taken.append("fused"), fused(*words))[1]
    )
    monkeypatch.setattr(
        recurrent, "run_unfused", lambda *words: (taken.append("loop"), unrolled(*words))[1]
    )
    inputs, valid = torch.randn(2, 3, 4), valid_up_to([3, 1])

    def path(layer: Recurrent, valid: Tensor | None = None) -> str:
        taken.clear()
        layer(inputs, valid)
        return " ".join(taken)

    for cell in (Elman, LSTM, GRU, partial(Elman, activation=torch.relu)):
        stack = Recurrent(cell, 4, 5, layers=2, bidirectional=True, dropout=0.5)
        assert path(stack) == "fused"  # one call for all layers and directions
        assert path(stack, valid) == "loop loop"  # faster for training, by measurement
        with torch.no_grad():
            assert path(stack, valid) == "fused"
            assert path(stack, torch.ones_like(valid)) == "fused"
        input_dropped = Recurrent(cell, 4, 5, layers=2, input_dropout=0.5)
        assert path(input_dropped) == "fused fused"
        assert path(input_dropped.eval()) == "fused"
        variational = Recurrent(cell, 4, 5, state_dropout=0.5)
        assert path(variational) == "loop"
        assert path(variational.eval()) == "fused"
    options = ({"layer_norm": True}, {"state_clip": 3.0}, {"projection_dim": 2})
    for cell in (partial(GRU, reset="before"), *(partial(LSTM, **option) for option in options)):
        assert path(Recurrent(cell, 4, 5)) == "loop"


# Laws


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("bidirectional", [False, True])
@given(lengths=row_lengths, spare=st.integers(1, 3), seed=seeds)
@settings(max_examples=4)
def test_padding_is_irrelevant(name, bidirectional, lengths, spare, seed):
    """Its length and content do not matter: NaN in it reaches neither values nor gradients."""
    torch.manual_seed(seed)
    layer = randomized(Recurrent(CELLS[name], 3, 4, 2, bidirectional))
    short = max(*lengths, 1)
    inputs = torch.randn(len(lengths), short, 3).double()
    longer_inputs = torch.cat([inputs, torch.randn(len(lengths), spare, 3).double()], 1)
    longer_inputs[~valid_up_to(lengths, short + spare)] = math.nan
    valid, longer_valid = valid_up_to(lengths), valid_up_to(lengths, short + spare)
    outputs, final = layer(inputs, valid)
    padded, padded_final = layer(longer_inputs, longer_valid)
    close((padded[:, :short], padded_final), (outputs, final))
    assert (padded[~longer_valid] == 0).all()
    if any(lengths):
        gradients = torch.autograd.grad(padded.sum(), list(layer.parameters()))
        assert all(gradient.isfinite().all() for gradient in gradients)
    with torch.no_grad():
        close(layer(longer_inputs, longer_valid), (padded, padded_final))


@pytest.mark.parametrize("name", CELLS)
@given(lengths=row_lengths, seed=seeds)
@settings(max_examples=4)
def test_rows_know_nothing_of_each_other(name, lengths, seed):
    torch.manual_seed(seed)
    layer = randomized(Recurrent(CELLS[name], 3, 4, 1, True))
    inputs, valid = torch.randn(len(lengths), max(*lengths, 1), 3).double(), valid_up_to(lengths)
    state = random_state(layer, len(lengths))
    order = torch.randperm(len(lengths))
    outputs, final = layer(inputs, valid, state)
    shuffled, shuffled_final = layer(inputs[order], valid[order], select_state(state, order))
    close((shuffled, shuffled_final), (outputs[order], select_state(final, order)))


@pytest.mark.parametrize("name", CELLS)
@given(layers=st.integers(1, 3), steps=st.integers(1, 5), seed=seeds)
@settings(max_examples=4)
def test_stepping_is_the_full_pass(name, layers, steps, seed):
    """Steps equal one pass, also in training with the same masks of variational dropout."""
    torch.manual_seed(seed)
    layer = randomized(Recurrent(CELLS[name], 3, 4, layers, input_dropout=0.3, state_dropout=0.3))
    inputs = torch.randn(2, steps, 3).double()
    for masks in (layer.draw_masks(2), layer.eval().draw_masks(2)):
        state = start = random_state(layer, 2)
        outputs = []
        for x in inputs.unbind(1):
            output, state = layer.step(x, state, masks)
            outputs.append(output)
        close((torch.stack(outputs, 1), state), layer(inputs, None, start, masks))


@pytest.mark.parametrize("name", CELLS)
@given(lengths=row_lengths, seed=seeds)
@settings(max_examples=4)
def test_backwards_is_forwards_in_a_mirror(name, lengths, seed):
    """Reverse every row and swap the two cells: outputs are reversed, and their halves swapped."""
    torch.manual_seed(seed)
    layer = randomized(Recurrent(CELLS[name], 3, 4, 1, True))
    mirror_layer = Recurrent(CELLS[name], 3, 4, 1, True).double()
    for i in (0, 1):
        mirror_layer.cells[i].load_state_dict(layer.cells[1 - i].state_dict())
    inputs, valid = torch.randn(len(lengths), max(*lengths, 1), 3).double(), valid_up_to(lengths)

    def mirrored(x: Tensor) -> Tensor:
        x = x.clone()
        for row, length in enumerate(lengths):
            x[row, :length] = x[row, :length].flip(0)
        return x

    outputs, final = layer(inputs, valid)
    mirror, mirror_final = mirror_layer(mirrored(inputs), valid)
    close(mirrored(mirror).roll(layer.output_dim // 2, -1), outputs)
    close(tuple(part.flip(0) for part in mirror_final), final)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_every_precision_is_finite_and_stays(name, dtype):
    layer = Recurrent(CELLS[name], 3, 4, 2, True).to(dtype)
    inputs = (10 * torch.randn(3, 4, 3)).to(dtype)
    for valid in (None, valid_up_to([4, 0, 2])):
        outputs, final = layer(inputs, valid)
        assert all(part.dtype == dtype and part.isfinite().all() for part in (outputs, *final))
        outputs.float().sum().backward()
        with torch.no_grad():
            evaluated, _ = layer(inputs, valid)
        loose = 0.1 if dtype == torch.bfloat16 else 1e-5
        torch.testing.assert_close(evaluated, outputs, rtol=loose, atol=loose)
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())


# States


def test_a_row_without_steps_keeps_its_state():
    layer = Recurrent(LSTM, 3, 4, 2, True)
    inputs, state = torch.randn(2, 3, 3), random_state(layer, 2)
    outputs, final = layer(inputs, valid_up_to([0, 3]), state)
    assert not outputs[0].any()
    assert all(torch.equal(a[:, 0], b[:, 0]) for a, b in zip(final, state, strict=True))
    outputs, final = layer(inputs, valid_up_to([0, 0], 3), state)
    assert outputs.shape == (2, 3, 8)
    assert not outputs.any()
    assert all(torch.equal(a, b) for a, b in zip(final, state, strict=True))


def test_a_sequence_in_two_parts_is_the_sequence():
    layer = randomized(Recurrent(GRU, 3, 4, 2))
    inputs = torch.randn(2, 7, 3).double()
    full, final = layer(inputs)
    first, state = layer(inputs[:, :3])
    second, after = layer(inputs[:, 3:], None, state)
    close((torch.cat([first, second], 1), after), (full, final))


def test_select_takes_rows_of_every_layer():
    state = (torch.arange(12.0).view(2, 3, 2), -torch.arange(12.0).view(2, 3, 2))
    chosen = select_state(state, torch.tensor([2, 2, 0, 1]))
    assert chosen[0][:, :, 0].tolist() == [[4, 4, 0, 2], [10, 10, 6, 8]]
    assert torch.equal(chosen[1], -chosen[0])


def test_packing_by_hand():
    packing = Packing.from_valid(valid_up_to([2, 0, 3, 1]))
    assert packing is not None
    assert packing.sizes == (3, 2, 1)
    assert packing.rows.tolist() == [2, 0, 3]
    letters = torch.tensor([[1, 2, 0], [0, 0, 0], [3, 4, 5], [6, 0, 0]]).double()[..., None]
    data = packing.pack(letters)
    assert data[:, 0].tolist() == [3, 1, 6, 4, 2, 5]
    assert torch.equal(packing.unpack(data), letters)
    assert packing.repeat_over_steps(torch.arange(4.0)[:, None])[:, 0].tolist() == [
        2,
        0,
        3,
        2,
        0,
        2,
    ]
    assert Packing.from_valid(valid_up_to([3, 3])) is None


# Dropout


def identity_layer(layers: int = 1, **dropouts: float) -> Recurrent:
    """h_t = x_t + h_{t-1}, so that masks can be read off the outputs."""
    cell = partial(Elman, activation=lambda v: v)
    layer = Recurrent(cell, 6, 6, layers, **dropouts)
    with torch.no_grad():
        for c in layer.stack:
            c.weight_ih.copy_(torch.eye(6))
            c.weight_hh.copy_(torch.eye(6))
    return layer


@pytest.mark.parametrize("lengths", [[3, 3, 3, 3], [3, 1, 2, 3]])
def test_one_mask_for_all_steps_of_a_sequence(lengths):
    """h_t = (m h_{t-1}) with m in {0, 2}: 2^t where it was kept at every step, else 0."""
    layer, valid = identity_layer(state_dropout=0.5), valid_up_to(lengths)
    start = (torch.ones(1, 4, 6),)
    outputs, _ = layer(torch.zeros(4, 3, 6), valid, start)
    powers = torch.tensor([2.0, 4.0, 8.0])[:, None]
    for row, length in enumerate(lengths):
        first = outputs[row, 0] / 2
        assert set(first.tolist()) <= {0.0, 1.0}
        assert torch.equal(outputs[row, :length], powers[:length] * first)
    drawn = (outputs[:, 0] / 2).tolist()
    assert any(drawn[0] != other for other in drawn[1:])  # all rows agree with probability 2^-18


@pytest.mark.parametrize("lengths", [[3, 3], [1, 3]])
def test_one_input_mask_for_each_sequence_and_layer(lengths):
    layer, valid = identity_layer(layers=2, input_dropout=0.5), valid_up_to(lengths, 3)
    with torch.no_grad():
        for cell in layer.stack:
            cell.weight_hh.zero_()
    masks = layer.draw_masks(2)
    assert masks is not None
    assert masks.states == (None, None)
    inputs = torch.randn(2, 3, 6)
    outputs, _ = layer(inputs, valid, None, masks)
    first, second = masks.inputs
    assert first is not None
    assert second is not None
    assert set(first.flatten().tolist()) <= {0.0, 2.0}
    expected = inputs * (first * second)[:, None] * valid[..., None]
    torch.testing.assert_close(outputs, expected)


def test_dropout_between_layers_is_drawn_at_every_step():
    layer = identity_layer(layers=2, dropout=0.5)
    with torch.no_grad():
        for cell in layer.stack:
            cell.weight_hh.zero_()
    outputs, _ = layer(torch.ones(2, 50, 6))
    assert set(outputs.flatten().tolist()) == {0.0, 2.0}
    assert (outputs[:, 1:] != outputs[:, :-1]).any((1, 2)).all()
    assert 0.35 < outputs.mean() / 2 < 0.65  # six standard deviations of 600 draws
    _, state = layer(torch.ones(2, 1, 6))
    assert (state[0][0] == 1).all()  # nothing is dropped within the first layer


def test_dropout_between_layers_while_stepping():
    torch.manual_seed(0)
    layer = identity_layer(layers=2, dropout=0.5)
    x, state = torch.ones(50, 6), layer.initial_state(50)
    output, _ = layer.step(x, state)
    assert set(output.flatten().tolist()) == {0.0, 2.0}
    assert torch.equal(layer.eval().step(x, state)[0], torch.ones(50, 6))


def test_masks_keep_the_mean_and_evaluation_drops_nothing():
    layer = Recurrent(LSTM, 50, 60, 2, True, input_dropout=0.2, state_dropout=0.4)
    masks = layer.draw_masks(40)
    assert masks is not None
    assert [m.shape for m in masks.inputs if m is not None] == [(40, 50), (40, 120)]
    assert [m.shape for m in masks.states if m is not None] == [(40, 60)] * 4
    for mask, rate in ((masks.inputs[0], 0.2), (masks.states[3], 0.4)):
        assert mask is not None
        assert mask.mean().item() == pytest.approx(1, abs=0.15)
        assert (mask == 0).float().mean().item() == pytest.approx(rate, abs=0.1)
    assert layer.eval().draw_masks(40) is None
    inputs = torch.randn(2, 3, 50)
    assert torch.equal(layer(inputs)[0], layer(inputs)[0])


# Bad input


def bad(message: str, call: object) -> object:
    return pytest.param(message, call, id=message)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("message", "call"),
    [
        bad("inputs must be 3 wide, not 2", lambda r, x: r(x[..., :2])),
        bad("inputs must be [batch, steps, input_dim], not [4, 3]", lambda r, x: r(x[0])),
        bad(
            "inputs must have at least one row and one step, not shape [2, 0, 3]",
            lambda r, x: r(x[:, :0]),
        ),
        bad(
            "inputs must have at least one row and one step, not shape [0, 4, 3]",
            lambda r, x: r(x[:0]),
        ),
        bad("inputs must be torch.float32 like the weights", lambda r, x: r(x.double())),
        bad("inputs must be torch.float32 like the weights, not", lambda r, x: r(x.long())),
        bad("inputs holds NaN, first at (0, 0, 0)", lambda r, x: r(x * math.nan)),
        bad("inputs holds NaN", lambda r, x: r(x * math.nan, valid_up_to([1, 4]))),
        bad("valid must be boolean", lambda r, x: r(x, torch.ones(2, 4))),
        bad("valid must be [2, 4] like inputs, not [1, 4]", lambda r, x: r(x, valid_up_to([4]))),
        bad("valid must be [2, 4] like inputs, not [2, 3]", lambda r, x: r(x, valid_up_to([3, 3]))),
        bad("valid must be padded on the right", lambda r, x: r(x, valid_up_to([1, 2], 4).flip(1))),
        bad("state must have 2 tensors, not 1", lambda r, x: r(x, None, r.initial_state(2)[:1])),
        bad(
            "state must be of shape [1, 2, 5], not [1, 3, 5]",
            lambda r, x: r(x, None, r.initial_state(3)),
        ),
        bad("state holds NaN", lambda r, x: r(x, None, tuple(s / 0 for s in r.initial_state(2)))),
        bad("x must be 3 wide, not 2", lambda r, x: r.step(x[:, 0, :2], r.initial_state(2))),
        bad(
            "x must be [batch, input_dim], not [2, 4, 3]",
            lambda r, x: r.step(x, r.initial_state(2)),
        ),
        bad("x must be torch.float32", lambda r, x: r.step(x[:, 0].double(), r.initial_state(2))),
        bad("state must be of shape [1, 2, 5]", lambda r, x: r.step(x[:, 0], r.initial_state(1))),
        bad("layers must be positive, not 0", lambda *_: Recurrent(GRU, 2, 2, layers=0)),
        bad("hidden_dim must be positive", lambda *_: Recurrent(GRU, 2, 0)),
        bad("dropout must be in [0, 1), not 1.5", lambda *_: Recurrent(GRU, 2, 2, 2, dropout=1.5)),
        bad("input_dropout must be", lambda *_: Recurrent(GRU, 2, 2, input_dropout=-0.1)),
        bad("state_dropout must be", lambda *_: Recurrent(GRU, 2, 2, state_dropout=1.0)),
        bad("dropout 0.1 needs at least two layers", lambda *_: Recurrent(GRU, 2, 2, dropout=0.1)),
        bad(
            "other must have the sizes of this layer",
            lambda r, _: r.load_torch_weights(nn.LSTM(3, 6)),
        ),
        bad(
            "other must have the sizes of this layer",
            lambda r, _: r.load_torch_weights(nn.GRU(3, 5)),
        ),
        bad(
            "step needs a layer of one direction",
            lambda _, x: (r := Recurrent(GRU, 3, 2, 1, True)).step(x[:, 0], r.initial_state(2)),
        ),
        bad(
            "masks is missing",
            lambda _, x: (r := Recurrent(GRU, 3, 2, state_dropout=0.1)).step(
                x[:, 0], r.initial_state(2)
            ),
        ),
    ],
)
def test_bad_input_is_named_in_one_line(message, call):
    with pytest.raises(ValueError) as error:
        call(Recurrent(LSTM, 3, 5), torch.randn(2, 4, 3))
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_masks_may_be_given():
    """Masks of ones drop nothing, and no other masks are drawn."""
    layer = Recurrent(GRU, 3, 4, state_dropout=0.9, input_dropout=0.9)
    inputs = torch.randn(2, 5, 3)
    ones = DropoutMasks((torch.ones(2, 3),), (torch.ones(2, 4),))
    got, _ = layer(inputs, None, None, ones)
    torch.testing.assert_close(got, layer.eval()(inputs)[0])


@pytest.mark.parametrize("name", CELLS)
def test_masks_follow_their_rows_through_the_packing(name):
    layer = Recurrent(CELLS[name], 3, 4, 2, True, input_dropout=0.5, state_dropout=0.5).double()
    lengths = [1, 4, 0, 3]
    inputs, masks = torch.randn(4, 4, 3).double(), layer.draw_masks(4)
    assert masks is not None
    outputs, _ = layer(inputs, valid_up_to(lengths), None, masks)
    for row, length in enumerate(lengths):
        if length:
            row_masks = DropoutMasks(
                *(tuple(m[row : row + 1] for m in part if m is not None) for part in masks)
            )
            alone, _ = layer(inputs[row : row + 1, :length], None, None, row_masks)
            close(outputs[row : row + 1, :length], alone)
