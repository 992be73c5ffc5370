"""Luong's variants against a loop written from the paper's equations."""

import math

import pytest
import torch
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.models.luong import Luong

SOURCE, TARGET = [3, 5, 4, 6, 5, 3, 2], [1, 4, 5, 3, 6]
LAYERS, RADIUS = 2, 2


def with_random_weights(model: Luong) -> Luong:
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


def lstm(cells: list[dict[str, Tensor]], x: Tensor, states: list[tuple[Tensor, Tensor]]):
    after = []
    for cell, (h, c) in zip(cells, states, strict=True):
        raw = cell["weight_ih"] @ x + cell["weight_hh"] @ h + cell["bias_ih"] + cell["bias_hh"]
        i, f, g, o = raw.chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        x = torch.sigmoid(o) * torch.tanh(c)
        after.append((x, c))
    return after


def energy(p: dict[str, Tensor], score: str, h: Tensor, states: list[Tensor], s: int) -> Tensor:
    """Compute eq. 8; W_a [h_t; h_s] of concat is stored as two blocks of columns."""
    match score:
        case "dot":
            return h @ states[s]
        case "general":
            return h @ (p["attention.score.of_key.weight"] @ states[s])
        case "additive":
            W = torch.cat(
                [p["attention.score.of_query.weight"], p["attention.score.of_key.weight"]], 1
            )
            return p["attention.score.energy"] @ torch.tanh(W @ torch.cat([h, states[s]]))
        case _:
            return (p["attention.score.of_query.weight"] @ h)[s]


def attention_weights(
    p: dict[str, Tensor], score: str, window: str | None, h: Tensor, states: list[Tensor], t
):
    """Compute a_t of sec. 3.1 and 3.2 over all source positions."""
    length = len(states)
    center: Tensor | float = t
    if window == "local_p":
        W_p, v_p = p["attention.window.center.0.weight"], p["attention.window.center.2.weight"][0]
        center = length * torch.sigmoid(v_p @ torch.tanh(W_p @ h))
    inside = [s for s in range(length) if window is None or abs(s - center) <= RADIUS]
    weights = torch.zeros(length, dtype=torch.float64)
    if not inside:
        return weights
    total = sum(energy(p, score, h, states, s).exp() for s in inside)
    for s in inside:
        weights[s] = energy(p, score, h, states, s).exp() / total
        if window == "local_p":
            weights[s] *= torch.exp(-((s - center) ** 2) / (2 * (RADIUS / 2) ** 2))
    return weights


def by_the_equations(model: Luong, score: str, window: str | None) -> tuple[Tensor, Tensor]:
    p = {name: weight.detach() for name, weight in model.named_parameters()}
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    encoder, decoder = (
        [{n: p[f"{side}.cells.{i}.{n}"] for n in names} for i in range(LAYERS)]
        for side in ("encoder", "decoder")
    )
    zero = torch.zeros(model.encoder.hidden_dim, dtype=torch.float64)
    states, read = [(zero, zero)] * LAYERS, {}
    positions = range(len(SOURCE))
    for s in reversed(positions) if model.reverse else positions:
        states = lstm(encoder, p["source_words.weight"][SOURCE[s]], states)
        read[s] = states[-1][0]
    slots = [read[s] for s in positions]
    attentional, outputs, all_weights = zero, [], []
    for t, y in enumerate(TARGET):
        x = p["target_words.weight"][y]
        states = lstm(decoder, torch.cat([x, attentional]) if model.input_feeding else x, states)
        h = states[-1][0]
        weights = attention_weights(p, score, window, h, slots, t)
        c = sum(w * s for w, s in zip(weights, slots, strict=True))
        attentional = torch.tanh(p["combine.weight"] @ torch.cat([c, h]))
        outputs.append((p["output.weight"] @ attentional + p["output.bias"]).log_softmax(0))
        all_weights.append(weights)
    return torch.stack(outputs), torch.stack(all_weights)


@pytest.mark.parametrize("feed", [True, False])
@pytest.mark.parametrize("window", [None, "local_m", "local_p"])
@pytest.mark.parametrize("score", ["dot", "general", "additive", "location"])
def test_it_is_its_equations(score, window, feed):
    options = {
        "score": score,
        "window": window,
        "radius": RADIUS,
        "input_feeding": feed,
        "max_positions": 9,
    }
    model = with_random_weights(Luong(7, 8, dim=3, hidden_dim=4, layers=LAYERS, **options))
    source = torch.tensor([SOURCE])
    with observe(model) as recorded:
        memory = model.remember(source, torch.ones_like(source, dtype=torch.bool))
        states = model.teacher_forced(memory, torch.tensor([TARGET]))
    expected, expected_weights = by_the_equations(model, score, window)
    log_probabilities = model.logits(states)[0].log_softmax(-1)
    torch.testing.assert_close(log_probabilities, expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(
        recorded.joined()["attention"][0], expected_weights, rtol=1e-10, atol=1e-12
    )


def test_slots_are_in_the_order_of_the_source_however_it_is_read():
    """Forward, slot 0 depends on its own word only; backward, on all words."""
    for reverse, informed in ((False, [0]), (True, [0, 1, 2, 3, 4, 5, 6])):
        model = with_random_weights(Luong(7, 8, dim=3, reverse=reverse))
        source = torch.tensor([SOURCE])
        words = model.source_words(source).detach().requires_grad_()
        model.source_words.forward = lambda ids, words=words: (  # in the order of the ids
            words.flip(1) if ids[0].tolist() == SOURCE[::-1] else words
        )
        memory = model.remember(source, source != 0).memory
        memory.values[0, 0].sum().backward()
        assert words.grad is not None
        assert words.grad[0].any(-1).nonzero().flatten().tolist() == informed


def test_a_wide_flat_window_is_no_window():
    plain = with_random_weights(Luong(7, 8, dim=4))
    windowed = with_random_weights(Luong(7, 8, dim=4, window="local_p", radius=10**6))
    windowed.load_state_dict(plain.state_dict(), strict=False)
    masked = with_random_weights(Luong(7, 8, dim=4, window="local_m", radius=100))
    masked.load_state_dict(plain.state_dict())
    source, target = torch.tensor([SOURCE]), torch.tensor([TARGET])
    expected = plain.teacher_forced(plain.remember(source, source != 0), target)
    for model in (windowed, masked):
        states = model.teacher_forced(model.remember(source, source != 0), target)
        torch.testing.assert_close(states, expected, rtol=0, atol=1e-6)


def test_the_location_score_limits_the_source():
    model = Luong(7, 8, dim=4, score="location", max_positions=6)
    source = torch.tensor([SOURCE])
    memory = model.remember(source, source != 0)
    with pytest.raises(ValueError, match="7 slots, but the location score has at most 6"):
        model.teacher_forced(memory, torch.tensor([TARGET]))


def test_it_starts_as_the_paper_says():
    for name, weight in Luong(50, 50, dim=64).named_parameters():
        assert weight.abs().max() <= 0.1, name
        if weight.ndim > 1:
            assert weight.std().item() == pytest.approx(0.1 / math.sqrt(3), rel=0.1), name


def test_wrong_settings_are_refused(unchecked):
    with pytest.raises(ValueError, match="window must be None, 'local_m' or 'local_p', not 'big'"):
        Luong(5, 5, window="big")
    with pytest.raises(ValueError, match="did you mean 'additive'"):
        Luong(5, 5, score="concat")
    with pytest.raises(ValueError, match="radius"):
        Luong(5, 5, window="local_m", radius=0)
