"""LSTMN against loops written from the paper's equations: alone, and with a source."""

import pytest
import torch
from torch import Tensor, nn

from regard.attention.observe import intervene, observe, zero
from regard.layers.tape_lstm import TapeLSTM
from regard.models.lstmn import Lstmn, LstmnFusion

IDS = torch.tensor([[3, 1, 4, 1, 5], [2, 6, 5, 3, 5]])


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-12)


def with_random_weights(model: nn.Module) -> nn.Module:
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


Slot = tuple[Tensor, Tensor]  # h_i, c_i


def by_the_equations(
    p: dict[str, Tensor], inputs: list[Tensor], source: list[Slot] | None = None
) -> tuple[list[Slot], list[list[float]]]:
    """Return h_t and c_t, and the weights of each step, for one row and one layer.

    With a source (deep fusion), the weights are those of the source.
    """
    W_x, W_r = p["of_input.weight"], p["of_read.weight"]
    W_h, v = p["attention.score.of_key.weight"], p["attention.score.energy"]
    W, U, b = p["cell.weight_ih"], p["cell.weight_hh"], p["cell.bias_ih"] + p["cell.bias_hh"]
    width = U.shape[1]
    nothing = torch.zeros(width, dtype=torch.float64)
    tape, all_weights, read, source_read = list[Slot](), [], nothing, nothing

    def read_slots(energy: list[Tensor], slots: list[Slot]) -> tuple[list[Tensor], Tensor, Tensor]:
        weights = [e.exp() / sum(other_energy.exp() for other_energy in energy) for e in energy]
        h = sum((s * h for s, (h, _) in zip(weights, slots, strict=True)), nothing)
        return weights, h, sum((s * c for s, (_, c) in zip(weights, slots, strict=True)), nothing)

    for x in inputs:
        energy = [v @ torch.tanh(W_h @ h + W_x @ x + W_r @ read) for h, _ in tape]
        weights, read, cell = read_slots(energy, tape)
        i, f, g, o = (W @ x + U @ read + b).chunk(4)
        c = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        if source is not None:
            u, W_g = p["cross.score.energy"], p["cross.score.of_key.weight"]
            of_x, of_source_read = p["cross_input.weight"] @ x, p["cross_read.weight"] @ source_read
            energy = [u @ torch.tanh(W_g @ gamma + of_x + of_source_read) for gamma, _ in source]
            weights, source_read, alpha = read_slots(energy, source)
            r = (
                p["gate_read.weight"] @ source_read
                + p["gate_input.weight"] @ x
                + p["gate_input.bias"]
            )
            c = c + r.sigmoid() * alpha
        tape.append((o.sigmoid() * c.tanh(), c))
        all_weights.append([s.item() for s in weights])
    return tape, all_weights


@pytest.mark.parametrize("layers", [1, 2])
def test_it_is_its_equations(layers):
    model = with_random_weights(Lstmn(7, dim=3, hidden_dim=4, align_dim=5, layers=layers))
    with observe(model) as recorded:
        states = model.teacher_forced(None, IDS)
    for row, ids in enumerate(IDS):
        x = list(model.words.weight[ids])
        for depth, layer in enumerate(model.layers):
            tape, all_weights = by_the_equations(dict(layer.named_parameters()), x)
            x = [h for h, _ in tape]
            weights = recorded.joined()[f"layers.{depth}"][row]
            assert weights.shape == (5, 4)  # five words; no word attends to the last
            for t, expected in enumerate(all_weights):
                padded = torch.tensor(expected + [0.0] * (4 - t), dtype=torch.float64)
                close(weights[t], padded[:4])
        close(states[row], torch.stack(x))
    logits = states @ model.out.weight.T + model.out.bias
    close(model.logits(states), logits)


def test_the_first_two_words_are_plain_lstm_steps():
    """The first step starts from zeros; the second attends to the first alone, like an LSTM."""
    layer = with_random_weights(TapeLSTM(3, 4, 5))
    x = torch.randn(2, 3, 3).double()
    outputs, tape = layer(x, layer.initial_tape(2))
    state = layer.cell.initial_state(2)
    for t in range(2):
        state = layer.cell(x[:, t], state)
        close(outputs[:, t], state[0])
    third = layer.cell(x[:, 2], state)
    assert not torch.allclose(outputs[:, 2], third[0])
    assert tape.memory.slots == 3


def test_gradients():
    layer = with_random_weights(TapeLSTM(2, 3, 2))
    inputs = torch.randn(2, 4, 2).double().requires_grad_()
    names, weights = zip(*layer.named_parameters(), strict=True)
    blank = layer.initial_tape(2)

    def run(inputs: Tensor, *tensors: Tensor) -> Tensor:
        named = dict(zip(names, tensors, strict=True))
        return torch.func.functional_call(layer, named, (inputs, blank))[0]

    tensors = [inputs, *(w.detach().requires_grad_() for w in weights)]
    assert torch.autograd.gradcheck(run, tensors, fast_mode=True)


def test_attention_to_the_tape_can_be_edited():
    """With zero weights every step is a first step."""
    model = with_random_weights(Lstmn(7, dim=3))
    with intervene(model, {"layers.0": zero()}):
        states = model.teacher_forced(None, IDS)
    for t in range(5):
        close(states[:, t], model.teacher_forced(None, IDS[:, t : t + 1])[:, 0])


def test_weights_over_a_carried_tape():
    model = with_random_weights(Lstmn(7, dim=3))
    _, state = model.read(model.begin(2), IDS[:, :3])
    with observe(model) as recorded:
        model.read(state, IDS[:, 3:])
    weights = recorded.joined()["layers.0"]
    assert weights.shape == (2, 2, 4)
    close(weights.sum(-1), torch.ones(2, 2).double())
    assert not weights[:, 0, 3].any()


def test_a_tape_is_written_in_place_where_no_gradient_is_kept():
    model = with_random_weights(Lstmn(7, dim=3))
    with torch.no_grad():
        _, state = model.step(model.begin(2), IDS[:, 0])
        places = set()
        for _ in range(10):
            _, state = model.step(state, IDS[:, 1])
            places.add(state.tapes[0].memory.values.data_ptr())
    assert len(places) == 1


def test_detach_leaves_the_last_slots():
    model = with_random_weights(Lstmn(7, dim=3, max_slots=2))
    _, state = model.read(model.begin(2), IDS)
    cut = model.detach(state)
    assert cut.tapes[0].memory.slots == 2
    close(cut.tapes[0].memory.values, state.tapes[0].memory.values[:, -2:])
    assert with_random_weights(Lstmn(7, dim=3)).detach(state).tapes[0].memory.slots == 5


def test_keys_learn_from_a_carried_tape():
    """An optimizer step between two windows changes W_h: old slots get new keys."""
    model = with_random_weights(Lstmn(7, dim=3))
    _, state = model.read(model.begin(2), IDS[:, :3])
    state = model.detach(state)
    key = model.layers[0].attention.score.of_key.weight
    with torch.no_grad():
        key.add_(1.0)
    states, after = model.read(state, IDS[:, 3:4])
    tape = after.tapes[0].memory
    close(tape.keys[:, :3], tape.values[:, :3, :3] @ key.T)
    assert torch.autograd.grad(states.sum(), key)[0].any()


def test_deep_fusion_is_its_equations():
    model = with_random_weights(LstmnFusion(7, 8, dim=3, hidden_dim=4, align_dim=5, layers=2))
    source = torch.tensor([[3, 5, 4, 6, 2], [6, 2, 0, 0, 0]])
    valid = source != 0
    with observe(model) as recorded:
        states = model.teacher_forced(model.remember(source, valid), IDS)
    for row, length in enumerate((5, 2)):
        x = list(model.source_words.weight[source[row, :length]])
        y = list(model.target_words.weight[IDS[row]])
        for depth in range(2):
            below, _ = by_the_equations(dict(model.encoder[depth].named_parameters()), x)
            parameters = dict(model.decoder[depth].named_parameters())
            tape, all_weights = by_the_equations(parameters, y, below)
            x, y = [h for h, _ in below], [h for h, _ in tape]
            weights = recorded.joined()[f"decoder.{depth}.cross"][row]
            close(weights[:, :length], torch.tensor(all_weights, dtype=torch.float64))
            assert not weights[:, length:].any()
        close(states[row], torch.stack(y))
    assert model.cross_attentions == ("decoder.0.cross", "decoder.1.cross")


def test_shallow_fusion_is_a_tape_that_also_reads_the_source():
    """The query is the last state; the context is concatenated to the word."""
    model = with_random_weights(
        LstmnFusion(7, 8, dim=3, hidden_dim=4, align_dim=5, layers=2, fusion="shallow")
    )
    source = torch.tensor([[3, 5, 4, 6, 2]])
    memory = model.remember(source, source != 0)
    states = model.teacher_forced(memory, IDS[:1])
    x = list(model.source_words.weight[source[0]])
    for layer in model.encoder:
        x = [h for h, _ in by_the_equations(dict(layer.named_parameters()), x)[0]]
    score = dict(model.attention.score.named_parameters())
    W, U, v = score["of_query.weight"], score["of_key.weight"], score["energy"]
    contexts, h = [], torch.zeros(4).double()
    for t, y in enumerate(IDS[0]):
        energy = torch.stack([v @ torch.tanh(W @ h + U @ slot) for slot in x]).softmax(0)
        contexts.append(torch.cat([model.target_words.weight[y], energy @ torch.stack(x)]))
        z = contexts
        for layer in model.decoder:  # from the start each time: slow but simple
            z = [h for h, _ in by_the_equations(dict(layer.named_parameters()), z)[0]]
        h = z[-1]
        close(states[0, t], h)


@pytest.mark.parametrize("fusion", ["deep", "shallow"])
def test_fusion_obeys_a_search(fusion, unchecked):
    """Steps equal teacher forcing, rows can be selected, and padding does not matter."""
    model = with_random_weights(LstmnFusion(7, 8, dim=3, layers=2, fusion=fusion))
    source = torch.tensor([[3, 5, 4, 6, 2], [6, 2, 0, 0, 0]])
    states = model.teacher_forced(model.remember(source, source != 0), IDS)
    expected = model.logits(states).log_softmax(-1)
    wider = torch.where(source != 0, source, 4).repeat(1, 2)
    valid = torch.arange(10) < torch.tensor([[5], [2]])
    rows = torch.tensor([1, 0, 0])
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            state = model.select(model.start(model.remember(wider, valid)), rows)
            for t, tokens in enumerate(IDS[rows].unbind(1)):
                scores, after = model.step(state, tokens)
                close(scores, expected[rows, t])
                close(model.step(state, tokens)[0], scores)
                state = model.select(after, torch.tensor([0, 2, 1]))
    states.sum().backward()
    for name, weight in model.named_parameters():
        assert name.startswith("output.") or weight.grad.any(), name
    model.dropout = 0.5
    model.train()
    repeated = model.teacher_forced(model.remember(source, source != 0), IDS)
    assert not torch.allclose(
        repeated, model.teacher_forced(model.remember(source, source != 0), IDS)
    )


def test_wrong_settings_are_refused(unchecked):
    with pytest.raises(ValueError, match="max_slots must be positive, not 0"):
        Lstmn(5, max_slots=0)
    with pytest.raises(ValueError, match="did you mean 'sparsemax'"):
        Lstmn(5, normalize="sparse_max")
    with pytest.raises(ValueError, match="layers must be positive, not 0"):
        Lstmn(5, layers=0)
    with pytest.raises(ValueError, match="fusion must be 'deep' or 'shallow', not 'cold'"):
        LstmnFusion(5, 5, fusion="cold")
