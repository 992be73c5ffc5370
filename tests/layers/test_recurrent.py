"""Recurrent layers against torch, against one row and one step at a time, and their laws."""

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
some_lengths = st.lists(st.integers(0, 5), min_size=1, max_size=4)
seeds = st.integers(0, 2**31)


def upto(lengths: list[int], steps: int | None = None) -> Tensor:
    """valid: which of `steps` steps are real."""
    return torch.arange(steps or max(*lengths, 1)) < torch.tensor(lengths)[:, None]


def shaken(layer: Recurrent) -> Recurrent:
    """In float64, with every parameter moved, so that no bias is 0 and no gain is 1."""
    layer = layer.double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter) / 3)
    return layer


def some_state(layer: Recurrent, batch: int) -> RecurrentState:
    return tuple(torch.randn_like(part) for part in layer.initial_state(batch))


def explicit(layer: Recurrent, cell: type[Cell]) -> Recurrent:
    """The same layer, for which torch is said to have no kernel."""
    unfused = type("Unfused", (cell,), {"kernel": None})
    twin = Recurrent(
        unfused, layer.input_dim, layer.hidden_dim, layer.layers, layer.directions == 2
    )
    twin.to(layer.stack[0].weight_hh.dtype).load_state_dict(layer.state_dict())
    return twin


def one_by_one(
    layer: Recurrent, inputs: Tensor, lengths: list[int], state: RecurrentState
) -> tuple[Tensor, RecurrentState]:
    """Row by row, layer by layer, step by step, from the definition of a recurrent layer."""
    outputs = inputs.new_zeros(*inputs.shape[:2], layer.output_dim)
    final = [part.clone() for part in state]
    for row, length in enumerate(lengths):
        below = [inputs[row, t] for t in range(length)]
        for depth in range(layer.layers):
            read = []
            for direction in range(layer.directions):
                index = depth * layer.directions + direction
                now = tuple(part[index, row][None] for part in state)
                seen = {}
                for t in range(length) if direction == 0 else reversed(range(length)):
                    now = layer.stack[index](below[t][None], now)
                    seen[t] = now[0][0]
                for part, value in zip(final, now, strict=True):
                    part[index, row] = value[0]
                read.append(seen)
            below = [torch.cat([seen[t] for seen in read]) for t in range(length)]
        for t in range(length):
            outputs[row, t] = below[t]
    return outputs, tuple(final)


@pytest.mark.parametrize("name", CELLS)
@given(
    lengths=some_lengths,
    layers=st.integers(1, 2),
    both=st.booleans(),
    spare=st.integers(0, 2),
    seed=seeds,
)
@settings(max_examples=8)
def test_it_is_its_cell_step_by_step(name, lengths, layers, both, spare, seed):
    torch.manual_seed(seed)
    layer = shaken(Recurrent(CELLS[name], 3, 4, layers, both))
    steps = max(*lengths, 1) + spare
    inputs = torch.randn(len(lengths), steps, 3).double()
    state = some_state(layer, len(lengths))
    expected = one_by_one(layer, inputs, lengths, state)
    close(layer(inputs, upto(lengths, steps), state), expected)
    with torch.no_grad():  # by the packed kernel, where there is one
        close(layer(inputs, upto(lengths, steps), state), expected)


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("lengths", [None, [2, 5, 1]])
def test_it_is_torch_at_its_weights(name, layers, both, lengths):
    cell, theirs = FUSED[name]
    theirs = theirs(3, 4, layers, bidirectional=both, batch_first=True).double()
    ours = Recurrent(cell, 3, 4, layers, both).double().load_torch_weights(theirs)
    inputs = torch.randn(3, 5, 3).double().requires_grad_()
    state = some_state(ours, 3)
    given = inputs
    if lengths is not None:
        given = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    outputs, final = theirs(given, state if len(state) == 2 else state[0])
    if lengths is not None:
        outputs, _ = pad_packed_sequence(outputs, batch_first=True)
    final = final if len(state) == 2 else (final,)
    got = ours(inputs, None if lengths is None else upto(lengths), state)
    close(got, (outputs, final))

    pull = torch.randn_like(outputs)
    weights = [[p for c in ours.stack for p in c.weights], list(theirs.parameters())]
    mine, yours = (
        torch.autograd.grad((o * pull).sum() + sum(part.sum() for part in f), [inputs, *w])
        for (o, f), w in zip([got, (outputs, final)], weights, strict=True)
    )
    close(mine, yours)


@pytest.mark.parametrize("both", [False, True])
def test_a_projected_lstm_is_torchs(both):
    theirs = nn.LSTM(3, 5, 2, bidirectional=both, batch_first=True, proj_size=2).double()
    ours = (
        Recurrent(partial(LSTM, projection_dim=2), 3, 5, 2, both)
        .double()
        .load_torch_weights(theirs)
    )
    inputs, state = torch.randn(3, 4, 3).double(), some_state(ours, 3)
    expected = theirs(inputs, state)
    assert expected[0].shape == (3, 4, ours.output_dim)
    close(ours(inputs, None, state), expected)
    close(ours(inputs, upto([4, 4, 2]), state)[0][:2], expected[0][:2])
    if not both:
        for t, x in enumerate(inputs.unbind(1)):
            top, state = ours.step(x, state)
            close(top, expected[0][:, t])


@pytest.mark.parametrize("name", FUSED)
@given(layers=st.integers(1, 2), both=st.booleans(), seed=seeds)
@settings(max_examples=6)
def test_fused_is_explicit(name, layers, both, seed):
    torch.manual_seed(seed)
    cell, _ = FUSED[name]
    layer = shaken(Recurrent(cell, 3, 4, layers, both))
    twin = explicit(layer, cell)
    inputs = torch.randn(3, 4, 3).double().requires_grad_()
    gradients = []
    for each in (layer, twin):
        outputs, final = each(inputs)
        total = outputs.square().sum() + sum(part.square().sum() for part in final)
        gradients.append(torch.autograd.grad(total, [inputs, *each.parameters()]))
    close(layer(inputs), twin(inputs))
    close(*gradients)
    valid = upto([2, 0, 4])
    with torch.no_grad():
        close(layer(inputs, valid), twin(inputs, valid))


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("lengths", [None, [3, 0, 1]])
def test_gradients(name, lengths):
    layer = shaken(Recurrent(CELLS[name], 1, 2 + ("norm" in name), bidirectional=True))
    inputs = torch.randn(3, 3, 1).double().requires_grad_()
    state = tuple(part.requires_grad_() for part in some_state(layer, 3))
    valid = None if lengths is None else upto(lengths)

    def run(inputs: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        outputs, final = layer(inputs, valid, state)
        return outputs, *final

    assert torch.autograd.gradcheck(run, (inputs, *state), fast_mode=True)


def test_kernels_run_where_they_should(monkeypatch):
    """Timings cannot be tested on a busy machine; which path is taken can."""
    taken = []
    fused, unrolled = Recurrent.run_fused, recurrent.run_unfused
    monkeypatch.setattr(
        Recurrent, "run_fused", lambda *words: (taken.append("fused"), fused(*words))[1]
    )
    monkeypatch.setattr(
        recurrent, "run_unfused", lambda *words: (taken.append("loop"), unrolled(*words))[1]
    )
    inputs, valid = torch.randn(2, 3, 4), upto([3, 1])

    def path(layer: Recurrent, valid: Tensor | None = None) -> str:
        taken.clear()
        layer(inputs, valid)
        return " ".join(taken)

    for cell in (Elman, LSTM, GRU, partial(Elman, activation=torch.relu)):
        stack = Recurrent(cell, 4, 5, layers=2, bidirectional=True, dropout=0.5)
        assert path(stack) == "fused"  # one call for all layers and directions
        assert path(stack, valid) == "loop loop"  # measured to be faster where gradients are kept
        with torch.no_grad():
            assert path(stack, valid) == "fused"
            assert path(stack, torch.ones_like(valid)) == "fused"
        inward = Recurrent(cell, 4, 5, layers=2, input_dropout=0.5)
        assert path(inward) == "fused fused"
        assert path(inward.eval()) == "fused"
        varied = Recurrent(cell, 4, 5, state_dropout=0.5)
        assert path(varied) == "loop"
        assert path(varied.eval()) == "fused"
    other = ({"layer_norm": True}, {"state_clip": 3.0}, {"projection_dim": 2})
    for cell in (partial(GRU, reset="before"), *(partial(LSTM, **what) for what in other)):
        assert path(Recurrent(cell, 4, 5)) == "loop"


# Laws


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("both", [False, True])
@given(lengths=some_lengths, spare=st.integers(1, 3), seed=seeds)
@settings(max_examples=8)
def test_padding_is_irrelevant(name, both, lengths, spare, seed):
    """How much there is and what it holds: NaN in it reaches neither values nor gradients."""
    torch.manual_seed(seed)
    layer = shaken(Recurrent(CELLS[name], 3, 4, 2, both))
    short = max(*lengths, 1)
    inputs = torch.randn(len(lengths), short, 3).double()
    more = torch.cat([inputs, torch.randn(len(lengths), spare, 3).double()], 1)
    more[~upto(lengths, short + spare)] = math.nan
    kept, longer = upto(lengths), upto(lengths, short + spare)
    outputs, final = layer(inputs, kept)
    padded, same = layer(more, longer)
    close((padded[:, :short], same), (outputs, final))
    assert (padded[~longer] == 0).all()
    if any(lengths):
        gradients = torch.autograd.grad(padded.sum(), list(layer.parameters()))
        assert all(gradient.isfinite().all() for gradient in gradients)
    with torch.no_grad():
        close(layer(more, longer), (padded, same))


@pytest.mark.parametrize("name", CELLS)
@given(lengths=some_lengths, seed=seeds)
@settings(max_examples=8)
def test_rows_know_nothing_of_each_other(name, lengths, seed):
    torch.manual_seed(seed)
    layer = shaken(Recurrent(CELLS[name], 3, 4, 1, True))
    inputs, valid = torch.randn(len(lengths), max(*lengths, 1), 3).double(), upto(lengths)
    state = some_state(layer, len(lengths))
    order = torch.randperm(len(lengths))
    outputs, final = layer(inputs, valid, state)
    shuffled, shuffled_final = layer(inputs[order], valid[order], select_state(state, order))
    close((shuffled, shuffled_final), (outputs[order], select_state(final, order)))


@pytest.mark.parametrize("name", CELLS)
@given(layers=st.integers(1, 3), steps=st.integers(1, 5), seed=seeds)
@settings(max_examples=6)
def test_stepping_is_the_full_pass(name, layers, steps, seed):
    """Also in training, with the same masks of variational dropout."""
    torch.manual_seed(seed)
    layer = shaken(Recurrent(CELLS[name], 3, 4, layers, input_dropout=0.3, state_dropout=0.3))
    inputs = torch.randn(2, steps, 3).double()
    for masks in (layer.draw_masks(2), layer.eval().draw_masks(2)):
        state = start = some_state(layer, 2)
        seen = []
        for x in inputs.unbind(1):
            output, state = layer.step(x, state, masks)
            seen.append(output)
        close((torch.stack(seen, 1), state), layer(inputs, None, start, masks))


@pytest.mark.parametrize("name", CELLS)
@given(lengths=some_lengths, seed=seeds)
@settings(max_examples=6)
def test_backwards_is_forwards_in_a_mirror(name, lengths, seed):
    """Reverse every row and swap the two cells: outputs are reversed, and their halves swapped."""
    torch.manual_seed(seed)
    layer = shaken(Recurrent(CELLS[name], 3, 4, 1, True))
    other = Recurrent(CELLS[name], 3, 4, 1, True).double()
    for i in (0, 1):
        other.cells[i].load_state_dict(layer.cells[1 - i].state_dict())
    inputs, valid = torch.randn(len(lengths), max(*lengths, 1), 3).double(), upto(lengths)

    def mirrored(x: Tensor) -> Tensor:
        x = x.clone()
        for row, length in enumerate(lengths):
            x[row, :length] = x[row, :length].flip(0)
        return x

    outputs, final = layer(inputs, valid)
    mirror, mirror_final = other(mirrored(inputs), valid)
    close(mirrored(mirror).roll(layer.output_dim // 2, -1), outputs)
    close(tuple(part.flip(0) for part in mirror_final), final)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_every_precision_is_finite_and_stays(name, dtype):
    layer = Recurrent(CELLS[name], 3, 4, 2, True).to(dtype)
    inputs = (10 * torch.randn(3, 4, 3)).to(dtype)
    for valid in (None, upto([4, 0, 2])):
        outputs, final = layer(inputs, valid)
        assert all(part.dtype == dtype and part.isfinite().all() for part in (outputs, *final))
        outputs.float().sum().backward()
        with torch.no_grad():
            again, _ = layer(inputs, valid)
        loose = 0.1 if dtype == torch.bfloat16 else 1e-5
        torch.testing.assert_close(again, outputs, rtol=loose, atol=loose)
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())


# States


def test_a_row_without_steps_keeps_its_state():
    layer = Recurrent(LSTM, 3, 4, 2, True)
    inputs, state = torch.randn(2, 3, 3), some_state(layer, 2)
    outputs, final = layer(inputs, upto([0, 3]), state)
    assert not outputs[0].any()
    assert all(torch.equal(a[:, 0], b[:, 0]) for a, b in zip(final, state, strict=True))
    outputs, final = layer(inputs, upto([0, 0], 3), state)
    assert outputs.shape == (2, 3, 8)
    assert not outputs.any()
    assert all(torch.equal(a, b) for a, b in zip(final, state, strict=True))


def test_a_sequence_in_two_parts_is_the_sequence():
    layer = shaken(Recurrent(GRU, 3, 4, 2))
    inputs = torch.randn(2, 7, 3).double()
    whole, final = layer(inputs)
    first, state = layer(inputs[:, :3])
    second, after = layer(inputs[:, 3:], None, state)
    close((torch.cat([first, second], 1), after), (whole, final))


def test_select_takes_rows_of_every_layer():
    state = (torch.arange(12.0).view(2, 3, 2), -torch.arange(12.0).view(2, 3, 2))
    chosen = select_state(state, torch.tensor([2, 2, 0, 1]))
    assert chosen[0][:, :, 0].tolist() == [[4, 4, 0, 2], [10, 10, 6, 8]]
    assert torch.equal(chosen[1], -chosen[0])


def test_packing_by_hand():
    packing = Packing.from_valid(upto([2, 0, 3, 1]))
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
    assert Packing.from_valid(upto([3, 3])) is None


# Dropout


def doubling(layers: int = 1, **dropouts: float) -> Recurrent:
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
    layer, valid = doubling(state_dropout=0.5), upto(lengths)
    start = (torch.ones(1, 4, 6),)
    outputs, _ = layer(torch.zeros(4, 3, 6), valid, start)
    powers = torch.tensor([2.0, 4.0, 8.0])[:, None]
    for row, length in enumerate(lengths):
        first = outputs[row, 0] / 2
        assert set(first.tolist()) <= {0.0, 1.0}
        assert torch.equal(outputs[row, :length], powers[:length] * first)
    drawn = (outputs[:, 0] / 2).tolist()
    assert any(drawn[0] != other for other in drawn[1:])  # 1 in 2^18 that all rows agree


@pytest.mark.parametrize("lengths", [[3, 3], [1, 3]])
def test_one_input_mask_for_each_sequence_and_layer(lengths):
    layer, valid = doubling(layers=2, input_dropout=0.5), upto(lengths, 3)
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
    layer = doubling(layers=2, dropout=0.5)
    with torch.no_grad():
        for cell in layer.stack:
            cell.weight_hh.zero_()
    outputs, _ = layer(torch.ones(2, 50, 6))
    assert set(outputs.flatten().tolist()) == {0.0, 2.0}
    assert (outputs[:, 1:] != outputs[:, :-1]).any((1, 2)).all()
    assert 0.35 < outputs.mean() / 2 < 0.65  # six deviations of 600 coins
    _, state = layer(torch.ones(2, 1, 6))
    assert (state[0][0] == 1).all()  # within the first layer nothing is dropped


def test_dropout_between_layers_while_stepping():
    torch.manual_seed(0)
    layer = doubling(layers=2, dropout=0.5)
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


def bad(words: str, call: object) -> object:
    return pytest.param(words, call, id=words)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("words", "call"),
    [
        bad("inputs must be 3 wide, not 2", lambda r, x: r(x[..., :2])),
        bad("inputs must be [batch, steps, input_dim], not [4, 3]", lambda r, x: r(x[0])),
        bad("inputs must have at least one row and one step, not shape [2, 0, 3]", lambda r, x: r(x[:, :0])),
        bad("inputs must have at least one row and one step, not shape [0, 4, 3]", lambda r, x: r(x[:0])),
        bad("inputs must be torch.float32 like the weights", lambda r, x: r(x.double())),
        bad("inputs must be torch.float32 like the weights, not", lambda r, x: r(x.long())),
        bad("inputs holds NaN, first at (0, 0, 0)", lambda r, x: r(x * math.nan)),
        bad("inputs holds NaN", lambda r, x: r(x * math.nan, upto([1, 4]))),
        bad("valid must be boolean", lambda r, x: r(x, torch.ones(2, 4))),
        bad("valid must be [2, 4] like inputs, not [1, 4]", lambda r, x: r(x, upto([4]))),
        bad("valid must be [2, 4] like inputs, not [2, 3]", lambda r, x: r(x, upto([3, 3]))),
        bad("valid must be padded on the right", lambda r, x: r(x, upto([1, 2], 4).flip(1))),
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
            "masks must be drawn once",
            lambda _, x: (r := Recurrent(GRU, 3, 2, state_dropout=0.1)).step(
                x[:, 0], r.initial_state(2)
            ),
        ),
    ],
)
def test_bad_input_is_named_in_one_line(words, call):
    with pytest.raises(ValueError) as error:
        call(Recurrent(LSTM, 3, 5), torch.randn(2, 4, 3))
    assert str(error.value).startswith(words)
    assert "\n" not in str(error.value)


def test_masks_may_be_given():
    """All ones drop nothing, and nothing is drawn beside them."""
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
    outputs, _ = layer(inputs, upto(lengths), None, masks)
    for row, length in enumerate(lengths):
        if length:
            own = DropoutMasks(
                *(tuple(m[row : row + 1] for m in part if m is not None) for part in masks)
            )
            alone, _ = layer(inputs[row : row + 1, :length], None, None, own)
            close(outputs[row : row + 1, :length], alone)
