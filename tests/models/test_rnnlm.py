"""The recurrent language model against torch.nn, a loop from the equations, and its dropout."""

import pytest
import torch
from torch import Tensor, nn

from regard.models.rnnlm import Rnnlm

IDS = torch.tensor([[3, 1, 4, 1, 5], [2, 6, 5, 3, 5]])
close = torch.testing.assert_close


def with_random_weights(model: Rnnlm) -> Rnnlm:
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


@pytest.mark.parametrize(
    ("cell", "activation"), [("elman", torch.tanh), ("sigmoid", torch.sigmoid)]
)
def test_elman_is_its_equations(cell, activation):
    model = with_random_weights(Rnnlm(7, cell=cell, dim=3, hidden_dim=4))
    p = {name: weight.detach() for name, weight in model.named_parameters()}
    W, U = p["layers.cells.0.weight_ih"], p["layers.cells.0.weight_hh"]
    b = p["layers.cells.0.bias_ih"] + p["layers.cells.0.bias_hh"]
    for row in IDS:
        h, outputs = torch.zeros(4).double(), []
        for y in row:
            h = activation(W @ p["words.weight"][y] + U @ h + b)
            outputs.append((p["out.weight"] @ h + p["out.bias"]).log_softmax(0))
        states = model.teacher_forced(None, row[None])
        close(model.logits(states)[0].log_softmax(-1), torch.stack(outputs), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("cell", "build_torch_layer"), [("lstm", nn.LSTM), ("gru", nn.GRU)])
def test_it_is_torchs_layers_between_two_tables(cell, build_torch_layer):
    """Compare one read, and two reads with a carried state."""
    model = with_random_weights(Rnnlm(7, cell=cell, dim=3, hidden_dim=4, layers=2))
    torch_layer = build_torch_layer(3, 4, 2, batch_first=True).double()
    model.layers.load_torch_weights(torch_layer)
    expected, _ = torch_layer(model.words.weight[IDS])
    close(model.teacher_forced(None, IDS), expected, rtol=1e-10, atol=1e-12)
    first, state = model.read(model.begin(2), IDS[:, :2])
    second, _ = model.read(model.detach(state), IDS[:, 2:])
    close(torch.cat([first, second], 1), expected, rtol=1e-10, atol=1e-12)


def test_gradients():
    model = with_random_weights(Rnnlm(4, cell="lstm", dim=2, hidden_dim=3, tie_embeddings=True))
    names, weights = zip(*model.named_parameters(), strict=True)

    def run(*tensors: Tensor) -> Tensor:
        named = {f"model.{name}": weight for name, weight in zip(names, tensors, strict=True)}
        return torch.func.functional_call(Scored(model), named, IDS % 4)

    tensors = [weight.detach().requires_grad_() for weight in weights]
    assert torch.autograd.gradcheck(run, tensors, fast_mode=True)


class Scored(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        return self.model.logits(self.model.teacher_forced(None, ids))


def test_tied_weights_are_one_table():
    model = with_random_weights(Rnnlm(7, dim=3, hidden_dim=4, tie_embeddings=True))
    assert model.output is model.words
    assert model.out is None
    states = model.teacher_forced(None, IDS)
    assert states.shape == (2, 5, 3)
    h, _ = model.layers(model.words.weight[IDS])
    close(states, h @ model.project.weight.T)
    close(model.logits(states), states @ model.words.weight.T + model.words.bias)
    same = Rnnlm(7, dim=3, tie_embeddings=True)
    assert same.project is None
    assert sum(p.numel() for p in same.parameters()) == 7 * 3 + 7 + 4 * (3 * 3 + 3 * 3 + 3 + 3)


def test_the_size_of_a_public_model():
    """The word language model of torch's examples: 2 x 200 on 10,000 words, tied and untied."""
    with torch.device("meta"):
        plain = Rnnlm(10_000, dim=200, layers=2)
        tied = Rnnlm(10_000, dim=200, layers=2, tie_embeddings=True)
    lstm = 2 * 4 * (200 * 200 + 200 * 200 + 2 * 200)
    assert sum(p.numel() for p in plain.parameters()) == 2 * 10_000 * 200 + 10_000 + lstm
    assert sum(p.numel() for p in tied.parameters()) == 10_000 * 200 + 10_000 + lstm


@pytest.mark.parametrize("rates", [{"state_dropout": 0.5}, {"input_dropout": 0.5}])
def test_one_mask_for_a_window(rates):
    """`begin` and `detach` draw masks; `read` and `step` keep them; `select` moves them."""
    model = with_random_weights(Rnnlm(7, dim=8, layers=2, **rates)).train()
    start = model.begin(2)
    states, _ = model.read(start, IDS)
    close(model.read(start, IDS)[0], states)
    first, state = model.read(start, IDS[:, :2])
    close(torch.cat([first, model.read(state, IDS[:, 2:])[0]], 1), states)
    swap, log_probs = torch.tensor([1, 0]), []
    state = model.select(start, swap)
    for tokens in IDS[swap].unbind(1):
        scores, state = model.step(state, tokens)
        log_probs.append(scores)
    close(torch.stack(log_probs, 1), model.logits(states)[swap].log_softmax(-1))
    assert not torch.allclose(model.read(model.begin(2), IDS)[0], states)
    assert not torch.allclose(model.read(model.detach(start), IDS)[0], states)
    plain = model.eval().teacher_forced(None, IDS)
    close(model.read(start, IDS)[0], plain)  # evaluation ignores the masks
    assert not torch.allclose(plain, states)


def test_wrong_settings_are_refused(unchecked):
    with pytest.raises(
        ValueError, match="cell must be one of lstm, gru, elman, sigmoid, not 'rnn'"
    ):
        Rnnlm(5, cell="rnn")
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\)"):
        Rnnlm(5, dropout=1.0)
    with pytest.raises(ValueError, match="layers must be positive, not 0"):
        Rnnlm(5, layers=0)
