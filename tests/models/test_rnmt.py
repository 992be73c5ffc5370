"""RNMT+ against a loop written from its description."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.models.rnmt import Rnmt

SOURCE, TARGET = [3, 5, 4, 6, 2], [1, 4, 5, 3]
HEADS = 2


def with_random_weights(model: Rnmt) -> Rnmt:
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


class Weights(dict[str, Tensor]):
    def under(self, path: str) -> "Weights":
        return Weights({n[len(path) + 1 :]: w for n, w in self.items() if n.startswith(path + ".")})


def lstm(p: Weights, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Run one step; with a gain, each gate is normalized separately."""
    h, c = state
    raw = (p["weight_ih"] @ x + p["weight_hh"] @ h + p["bias_hh"]).chunk(4)
    outer = p["bias_ih"].chunk(4)
    if "gain" in p:
        raw = [F.layer_norm(r, r.shape) * g for r, g in zip(raw, p["gain"], strict=True)]
    i, f, g, o = (r + b for r, b in zip(raw, outer, strict=True))
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def run_lstm(p: Weights, inputs: list[Tensor]) -> list[Tensor]:
    state, outputs = zero_state(p), []
    for x in inputs:
        state = lstm(p, x, state)
        outputs.append(state[0])
    return outputs


def zero_state(p: Weights) -> tuple[Tensor, Tensor]:
    zero = torch.zeros(p["weight_hh"].shape[1], dtype=torch.float64)
    return zero, zero


def affine(p: Weights, x: Tensor) -> Tensor:
    return p["weight"] @ x + p["bias"]


def attend(p: Weights, query: Tensor, slots: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Compute additive attention in each head; return the projected contexts and the weights."""
    q = affine(p.under("to_query"), query).chunk(HEADS)
    keys = [affine(p.under("to_key"), h).chunk(HEADS) for h in slots]
    values = [affine(p.under("to_value"), h).chunk(HEADS) for h in slots]
    score, contexts, all_weights = p.under("attention.score"), [], []
    for head in range(HEADS):
        W, U = score["of_query.weight"][head].T, score["of_key.weight"][head].T
        energy = torch.stack(
            [score["energy"][head] @ torch.tanh(W @ q[head] + U @ key[head]) for key in keys]
        )
        weights = energy.softmax(0)
        all_weights.append(weights)
        contexts.append(sum(w * v[head] for w, v in zip(weights, values, strict=True)))
    return affine(p.under("out"), torch.cat(contexts)), torch.stack(all_weights)


def by_the_description(model: Rnmt) -> tuple[Tensor, Tensor]:
    p = Weights((name, weight.detach()) for name, weight in model.named_parameters())
    x = [p["source_words.weight"][i] for i in SOURCE]
    for index in range(len(model.encoder)):
        ahead = run_lstm(p.under(f"encoder.{index}.cells.0"), x)
        back = run_lstm(p.under(f"encoder.{index}.cells.1"), x[::-1])[::-1]
        y = [torch.cat(pair) for pair in zip(ahead, back, strict=True)]
        x = [a + b for a, b in zip(x, y, strict=True)] if index >= 2 else y
    slots = [affine(p.under("project"), h) for h in x]
    states = [zero_state(p.under("first")) for _ in range(1 + len(model.upper))]
    outputs, all_weights, context = [], [], states[0][0]
    for i in TARGET:
        word = p["target_words.weight"][i]
        if not model.current:
            context, weights = attend(p.under("attention"), states[0][0], slots)
        states[0] = lstm(p.under("first"), torch.cat([word, context]), states[0])
        if model.current:
            context, weights = attend(p.under("attention"), states[0][0], slots)
        x = states[0][0]
        for layer in range(1, len(states)):
            cell = p.under(f"upper.{layer - 1}.cells.0")
            states[layer] = lstm(cell, torch.cat([x, context]), states[layer])
            x = x + states[layer][0] if layer >= 2 else states[layer][0]
        outputs.append(affine(p.under("output"), torch.cat([x, context])).log_softmax(0))
        all_weights.append(weights)
    return torch.stack(outputs), torch.stack(all_weights, 1)


@pytest.mark.parametrize("context", ["previous", "current"])
@pytest.mark.parametrize("norm", [True, False])
def test_it_is_its_description(norm, context):
    options = {"heads": HEADS, "layer_norm": norm, "query_state": context}
    model = with_random_weights(
        Rnmt(7, 8, dim=3, hidden_dim=4, layers=3, decoder_layers=4, **options)
    )
    source = torch.tensor([SOURCE])
    with observe(model) as recorded:
        memory = model.remember(source, torch.ones_like(source, dtype=torch.bool))
        states = model.teacher_forced(memory, torch.tensor([TARGET]))
    expected, expected_weights = by_the_description(model)
    log_probabilities = model.logits(states)[0].log_softmax(-1)
    torch.testing.assert_close(log_probabilities, expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(
        recorded.joined()["attention"][0], expected_weights, rtol=1e-10, atol=1e-12
    )


def test_the_upper_layers_run_over_all_steps_at_once():
    model, steps = with_random_weights(Rnmt(7, 8, dim=4, decoder_layers=3)), []
    for layer in model.upper:
        layer.register_forward_hook(lambda _, inputs, __: steps.append(inputs[0].shape[1]))
    source = torch.tensor([SOURCE])
    model.teacher_forced(model.remember(source, source != 0), torch.tensor([TARGET]))
    assert steps == [4, 4]


def test_wrong_settings_are_refused(unchecked):
    with pytest.raises(ValueError, match="dim 10 is not a multiple of heads 4"):
        Rnmt(5, 6, dim=10)
    with pytest.raises(ValueError, match="query_state must be 'previous' or 'current', not 'next'"):
        Rnmt(5, 6, query_state="next")
    with pytest.raises(ValueError, match="layers must be positive"):
        Rnmt(5, 6, layers=0)
