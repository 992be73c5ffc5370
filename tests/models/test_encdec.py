"""Cho's and Sutskever's models against loops written from their equations."""

import pytest
import torch
from torch import Tensor, nn

from regard.models.encdec import EncoderDecoder, Seq2Seq

SOURCE, TARGET = [3, 5, 4, 6, 2], [1, 4, 5, 3]


def with_random_weights(model: nn.Module) -> nn.Module:
    """Draw large weights in float64, so that a wrong equation has an effect."""
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


def log_probs(model) -> Tensor:
    source = torch.tensor([SOURCE])
    memory = model.remember(source, torch.ones_like(source, dtype=torch.bool))
    return model.logits(model.teacher_forced(memory, torch.tensor([TARGET])))[0].log_softmax(-1)


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-12)


def cho_by_equation(model: EncoderDecoder) -> Tensor:
    """Compute appendix A.1 and A.2, one product at a time."""
    p = {name: weight.detach() for name, weight in model.named_parameters()}
    E_x, E_y = p["source_words.weight"], p["target_words.weight"]

    W_r, W_z, W = p["encoder.cells.0.weight_ih"].chunk(3)
    U_r, U_z, U = p["encoder.cells.0.weight_hh"].chunk(3)
    b_r, b_z, b = (p["encoder.cells.0.bias_ih"] + p["encoder.cells.0.bias_hh"]).chunk(3)
    h = torch.zeros(len(U), dtype=torch.float64)
    for x in SOURCE:
        r = torch.sigmoid(W_r @ E_x[x] + U_r @ h + b_r)
        z = torch.sigmoid(W_z @ E_x[x] + U_z @ h + b_z)
        new = torch.tanh(W @ E_x[x] + U @ (r * h) + b)
        h = z * h + (1 - z) * new
    c = torch.tanh(p["of_last.weight"] @ h + p["of_last.bias"])

    W_r, W_z, W = p["cell.weight_ih"].chunk(3)
    U_r, U_z, U = p["cell.weight_hh"].chunk(3)
    C_r, C_z, C = p["into_cell.weight"].chunk(3)
    (b_r, b_z, b), (d_r, d_z, d) = p["cell.bias_ih"].chunk(3), p["cell.bias_hh"].chunk(3)
    O_h, O_y, O_c = (p[f"deep.parts.{i}.weight"] for i in range(3))
    h = torch.tanh(p["of_summary.weight"] @ c + p["of_summary.bias"])
    outputs = []
    for y in TARGET:
        r = torch.sigmoid(W_r @ E_y[y] + U_r @ h + C_r @ c + b_r + d_r)
        z = torch.sigmoid(W_z @ E_y[y] + U_z @ h + C_z @ c + b_z + d_z)
        new = torch.tanh(W @ E_y[y] + b + r * (U @ h + C @ c + d))
        h = z * h + (1 - z) * new
        s = O_h @ h + O_y @ E_y[y] + O_c @ c + p["deep.parts.0.bias"]
        units = torch.stack([torch.max(s[j], s[j + len(s) // 2]) for j in range(len(s) // 2)])
        outputs.append((p["output.weight"] @ units + p["output.bias"]).log_softmax(0))
    return torch.stack(outputs)


def lstm(cells: list[dict[str, Tensor]], x: Tensor, states: list[tuple[Tensor, Tensor]]):
    """Run one step of all layers; return the new states, the top one last."""
    after = []
    for cell, (h, c) in zip(cells, states, strict=True):
        raw = cell["weight_ih"] @ x + cell["weight_hh"] @ h + cell["bias_ih"] + cell["bias_hh"]
        i, f, g, o = raw.chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        x = torch.sigmoid(o) * torch.tanh(c)
        after.append((x, c))
    return after


def sutskever_by_equation(model: Seq2Seq, order: list[int]) -> Tensor:
    p = {name: weight.detach() for name, weight in model.named_parameters()}
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    encoder, decoder = (
        [{n: p[f"{side}.cells.{i}.{n}"] for n in names} for i in range(model.encoder.layers)]
        for side in ("encoder", "decoder")
    )
    zero = torch.zeros(model.encoder.hidden_dim, dtype=torch.float64)
    states = [(zero, zero)] * model.encoder.layers
    for x in order:
        states = lstm(encoder, p["source_words.weight"][x], states)
    outputs = []
    for y in TARGET:
        states = lstm(decoder, p["target_words.weight"][y], states)
        outputs.append((p["output.weight"] @ states[-1][0] + p["output.bias"]).log_softmax(0))
    return torch.stack(outputs)


def test_cho_is_its_equations():
    model = with_random_weights(EncoderDecoder(7, 8, dim=3, hidden_dim=4, output_dim=5))
    close(log_probs(model), cho_by_equation(model))


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("reverse", [True, False])
def test_sutskever_is_its_equations(layers, reverse):
    model = with_random_weights(Seq2Seq(7, 8, dim=3, hidden_dim=4, layers=layers, reverse=reverse))
    close(log_probs(model), sutskever_by_equation(model, SOURCE[::-1] if reverse else SOURCE))


def test_only_the_source_is_reversed_and_only_its_words():
    """A padded row is read from its own end, not from the end of the batch."""
    model = with_random_weights(Seq2Seq(7, 8, dim=3))
    padded = torch.tensor([SOURCE, [6, 2, 0, 0, 0]])
    memory = model.remember(padded, padded != 0)
    alone = model.remember(torch.tensor([[6, 2]]), torch.ones(1, 2, dtype=torch.bool))
    close(memory.h[:, 1:], alone.h)
    model.reverse = False
    turned = model.remember(torch.tensor([[2, 6]]), torch.ones(1, 2, dtype=torch.bool))
    close(alone.h, turned.h)


def test_both_start_as_their_papers_say():
    for name, weight in EncoderDecoder(50, 50, dim=64).named_parameters():
        if name.endswith("weight_hh"):
            for block in weight.split(64):
                torch.testing.assert_close(block @ block.T, torch.eye(64), atol=1e-5, rtol=0)
        elif weight.ndim > 1:
            assert 0.009 < weight.std() < 0.011, name
    for name, weight in Seq2Seq(50, 50, dim=64).named_parameters():
        assert weight.abs().max() <= 0.08, name
        if weight.ndim > 1:
            assert weight.std().item() == pytest.approx(0.08 / 3**0.5, rel=0.1), name


@pytest.mark.parametrize("model_class", [EncoderDecoder, Seq2Seq])
def test_wrong_settings_are_refused(model_class, unchecked):
    with pytest.raises(ValueError, match="init must be 'paper' or 'scaled', not 'zero'"):
        model_class(5, 5, init="zero")
    with pytest.raises(ValueError, match="dropout must be in"):
        model_class(5, 5, dropout=1.0)
