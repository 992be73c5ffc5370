"""Bahdanau's model against a loop written from appendix A."""

import pytest
import torch
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.models.rnnsearch import RnnSearch

SOURCE, TARGET = [3, 5, 4, 6, 2], [1, 4, 5, 3]


def with_random_weights(model: RnnSearch) -> RnnSearch:
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


def gru(p: dict[str, Tensor], x: Tensor, h: Tensor, reset: str) -> Tensor:
    """A.1.1 with the gate that keeps, z; `reset` is before or after the product with U."""
    W_r, W_z, W = p["weight_ih"].chunk(3)
    U_r, U_z, U = p["weight_hh"].chunk(3)
    (b_r, b_z, b), (d_r, d_z, d) = p["bias_ih"].chunk(3), p["bias_hh"].chunk(3)
    r = torch.sigmoid(W_r @ x + U_r @ h + b_r + d_r)
    z = torch.sigmoid(W_z @ x + U_z @ h + b_z + d_z)
    inner = U @ (r * h) + d if reset == "before" else r * (U @ h + d)
    return z * h + (1 - z) * torch.tanh(W @ x + b + inner)


def by_the_equations(
    model: RnnSearch, reset: str = "before", current: bool = False
) -> tuple[Tensor, Tensor]:
    """Return log-probabilities and weights for each step."""
    p = {name: weight.detach() for name, weight in model.named_parameters()}
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    forward, backward = ({n: p[f"encoder.cells.{i}.{n}"] for n in names} for i in range(2))
    cell = {n: p[f"cell.{n}"] for n in names}
    words = [p["source_words.weight"][x] for x in SOURCE]

    def read(cell: dict[str, Tensor], words: list[Tensor]) -> list[Tensor]:
        h, states = torch.zeros(len(cell["bias_ih"]) // 3, dtype=torch.float64), []
        for x in words:
            h = gru(cell, x, h, reset)
            states.append(h)
        return states

    ahead, back = read(forward, words), read(backward, words[::-1])[::-1]
    annotations = [torch.cat(pair) for pair in zip(ahead, back, strict=True)]
    s = torch.tanh(p["of_backward.weight"] @ back[0] + p["of_backward.bias"])
    W_a, U_a = p["attention.score.of_query.weight"], p["attention.score.of_key.weight"]
    U_o, V_o, C_o = (p[f"deep.parts.{i}.weight"] for i in range(3))
    outputs, all_weights = [], []
    for y in TARGET:
        word = p["target_words.weight"][y]
        energy = torch.stack(
            [p["attention.score.energy"] @ torch.tanh(W_a @ s + U_a @ h) for h in annotations]
        )
        weights = energy.exp() / energy.exp().sum()
        c = sum(w * h for w, h in zip(weights, annotations, strict=True))
        before, s = s, gru(cell, torch.cat([word, c]), s, reset)
        t = U_o @ (s if current else before) + V_o @ word + C_o @ c + p["deep.parts.0.bias"]
        units = torch.stack([torch.max(t[j], t[j + len(t) // 2]) for j in range(len(t) // 2)])
        outputs.append((p["output.weight"] @ units + p["output.bias"]).log_softmax(0))
        all_weights.append(weights)
    return torch.stack(outputs), torch.stack(all_weights)


@pytest.mark.parametrize("reset", ["before", "after"])
@pytest.mark.parametrize("readout", ["previous", "current"])
def test_it_is_its_equations(reset, readout):
    model = with_random_weights(
        RnnSearch(
            *(7, 8), dim=3, hidden_dim=4, align_dim=5, output_dim=6, reset=reset, readout=readout
        )
    )
    source = torch.tensor([SOURCE])
    with observe(model) as recorded:
        memory = model.remember(source, torch.ones_like(source, dtype=torch.bool))
        states = model.teacher_forced(memory, torch.tensor([TARGET]))
    expected, expected_weights = by_the_equations(model, reset, readout == "current")
    log_probabilities = model.logits(states)[0].log_softmax(-1)
    torch.testing.assert_close(log_probabilities, expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(
        recorded.joined()["attention"][0], expected_weights, rtol=1e-10, atol=1e-12
    )


def test_the_decoder_starts_from_the_backward_state_of_the_first_word():
    model = with_random_weights(RnnSearch(7, 8, dim=3, hidden_dim=4))
    source = torch.tensor([SOURCE, [6, 2, 0, 0, 0]])
    states, _ = model.encoder(model.source_words(source), source != 0)
    first = model.of_backward(states[:, 0, 4:]).tanh()
    torch.testing.assert_close(model.remember(source, source != 0).first, first)


def test_keys_are_made_once(monkeypatch):
    model, calls = with_random_weights(RnnSearch(7, 8, dim=3)), []
    prepare = model.attention.score.prepare
    monkeypatch.setattr(
        model.attention.score, "prepare", lambda states: calls.append(1) or prepare(states)
    )
    source = torch.tensor([SOURCE])
    model.teacher_forced(model.remember(source, source != 0), torch.tensor([TARGET]))
    assert len(calls) == 1


def test_it_starts_as_the_paper_says():
    model = RnnSearch(50, 50, dim=64)
    for name, weight in model.named_parameters():
        if weight.ndim == 1:  # v_a and the biases
            assert not weight.any(), name
        elif name.endswith("weight_hh"):
            for block in weight.split(64):
                torch.testing.assert_close(block @ block.T, torch.eye(64), atol=1e-5, rtol=0)
        else:
            std = 0.001 if name.startswith("attention.score") else 0.01
            assert weight.std().item() == pytest.approx(std, rel=0.1), name
    scaled = RnnSearch(50, 50, dim=64, init="scaled")
    assert scaled.attention.score.energy.any()


def test_wrong_settings_are_refused(unchecked):
    with pytest.raises(ValueError, match="readout must be 'previous' or 'current', not 'next'"):
        RnnSearch(5, 5, readout="next")
    with pytest.raises(ValueError, match="reset must be"):
        RnnSearch(5, 5, reset="never")
    with pytest.raises(
        ValueError, match=r"score 'dot' needs a query as wide .* widths are 256 and 512"
    ):
        RnnSearch(5, 5, score="dot")
    with pytest.raises(ValueError, match="did you mean 'sparsemax'"):
        RnnSearch(5, 5, normalize="sparse_max")
