"""LSTMN against a loop written from the paper's equations."""

import pytest
import torch
from torch import Tensor, nn

from regard.attend.tap import intervene, observe, zero
from regard.encode.tape import TapeLSTM
from regard.models.lstmn import Lstmn

IDS = torch.tensor([[3, 1, 4, 1, 5], [2, 6, 5, 3, 5]])


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def wide(model: nn.Module) -> nn.Module:
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


def by_the_equations(
    p: dict[str, Tensor], inputs: list[Tensor]
) -> tuple[list[Tensor], list[list[float]]]:
    """h_t, and what each step looked at, for one row and one layer."""
    W_x, W_r = p["of_input.weight"], p["of_read.weight"]
    W_h, v = p["attention.score.of_key.weight"], p["attention.score.energy"]
    W, U, b = p["cell.weight_ih"], p["cell.weight_hh"], p["cell.bias_ih"] + p["cell.bias_hh"]
    width = U.shape[1]
    nothing = torch.zeros(width, dtype=torch.float64)
    tape, looked, read = list[tuple[Tensor, Tensor]](), [], nothing
    for x in inputs:
        energy = [(v @ torch.tanh(W_h @ h + W_x @ x + W_r @ read)).exp() for h, _ in tape]
        weights = [e / sum(energy) for e in energy]
        read = sum((s * h for s, (h, _) in zip(weights, tape, strict=True)), nothing)
        cell = sum((s * c for s, (_, c) in zip(weights, tape, strict=True)), nothing)
        i, f, g, o = (W @ x + U @ read + b).chunk(4)
        c = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        tape.append((o.sigmoid() * c.tanh(), c))
        looked.append([s.item() for s in weights])
    return [h for h, _ in tape], looked


@pytest.mark.parametrize("layers", [1, 2])
def test_it_is_its_equations(layers):
    model = wide(Lstmn(7, dim=3, hidden_dim=4, align_dim=5, layers=layers))
    with observe(model) as seen:
        states = model.forced(None, IDS)
    for row, ids in enumerate(IDS):
        x = list(model.words.weight[ids])
        for depth, layer in enumerate(model.layers):
            x, looked = by_the_equations(dict(layer.named_parameters()), x)
            weights = seen.whole()[f"layers.{depth}"][row]
            assert weights.shape == (5, 4)  # five words; the last is looked at by none
            for t, expected in enumerate(looked):
                padded = torch.tensor(expected + [0.0] * (4 - t), dtype=torch.float64)
                close(weights[t], padded[:4])
        close(states[row], torch.stack(x))
    said = states @ model.out.weight.T + model.out.bias
    close(model.logits(states), said)


def test_the_first_word_has_nothing_to_look_at():
    """It is a plain LSTM step from zeros; the second looks at the first alone, like an LSTM."""
    layer = wide(TapeLSTM(3, 4, 5))
    x = torch.randn(2, 3, 3).double()
    outputs, tape = layer(x, layer.begin(2))
    state = layer.cell.initial(2)
    for t in range(2):
        state = layer.cell(x[:, t], state)
        close(outputs[:, t], state[0])
    third = layer.cell(x[:, 2], state)
    assert not torch.allclose(outputs[:, 2], third[0])
    assert tape.memory.slots == 3


def test_gradients():
    layer = wide(TapeLSTM(2, 3, 2))
    inputs = torch.randn(2, 4, 2).double().requires_grad_()
    names, weights = zip(*layer.named_parameters(), strict=True)
    blank = layer.begin(2)

    def run(inputs: Tensor, *given: Tensor) -> Tensor:
        named = dict(zip(names, given, strict=True))
        return torch.func.functional_call(layer, named, (inputs, blank))[0]

    given = [inputs, *(w.detach().requires_grad_() for w in weights)]
    assert torch.autograd.gradcheck(run, given, fast_mode=True)


def test_looking_can_be_edited():
    """Reading nothing at all is forgetting: every step is a first step."""
    model = wide(Lstmn(7, dim=3))
    with intervene(model, {"layers.0": zero()}):
        states = model.forced(None, IDS)
    for t in range(5):
        close(states[:, t], model.forced(None, IDS[:, t : t + 1])[:, 0])


def test_what_was_looked_at_in_a_carried_tape():
    model = wide(Lstmn(7, dim=3))
    _, state = model.read(model.begin(2), IDS[:, :3])
    with observe(model) as seen:
        model.read(state, IDS[:, 3:])
    weights = seen.whole()["layers.0"]
    assert weights.shape == (2, 2, 4)
    close(weights.sum(-1), torch.ones(2, 2).double())
    assert not weights[:, 0, 3].any()


def test_a_tape_is_written_in_place_where_no_gradient_is_kept():
    model = wide(Lstmn(7, dim=3))
    with torch.no_grad():
        _, state = model.step(model.begin(2), IDS[:, 0])
        places = set()
        for _ in range(10):
            _, state = model.step(state, IDS[:, 1])
            places.add(state.tapes[0].memory.values.data_ptr())
    assert len(places) == 1


def test_detach_leaves_the_last_slots():
    model = wide(Lstmn(7, dim=3, longest=2))
    _, state = model.read(model.begin(2), IDS)
    cut = model.detach(state)
    assert cut.tapes[0].memory.slots == 2
    close(cut.tapes[0].memory.values, state.tapes[0].memory.values[:, -2:])
    assert wide(Lstmn(7, dim=3)).detach(state).tapes[0].memory.slots == 5


def test_keys_learn_from_a_carried_tape():
    """A step of the optimiser between two windows changes W_h: old slots get the new keys."""
    model = wide(Lstmn(7, dim=3))
    _, state = model.read(model.begin(2), IDS[:, :3])
    state = model.detach(state)
    key = model.layers[0].attention.score.of_key.weight
    with torch.no_grad():
        key.add_(1.0)
    states, after = model.read(state, IDS[:, 3:4])
    tape = after.tapes[0].memory
    close(tape.keys[:, :3], tape.values[:, :3, :3] @ key.T)
    assert torch.autograd.grad(states.sum(), key)[0].any()


def test_wrong_settings_are_refused(unchecked):
    with pytest.raises(ValueError, match="longest must be positive, not 0"):
        Lstmn(5, longest=0)
    with pytest.raises(ValueError, match="did you mean 'sparsemax'"):
        Lstmn(5, normalise="sparse_max")
    with pytest.raises(ValueError, match="layers must be positive, not 0"):
        Lstmn(5, layers=0)
