"""SNAIL: against the paper's equations in plain loops; its past, its reach, and what it shows."""

import numpy as np
import pytest
import torch
from torch import nn

from regard.attention.observe import intervene, observe, zero
from regard.models.snail import AttentionBlock, DenseBlock, Snail

ROWS, STEPS, SEEN, SAID = 2, 9, 3, 4
MIXED = ("A(4, 3)", "TC(5)", "A(6, 2)", "TC(3)", "A(2, 7)")
EVERY = pytest.mark.parametrize(
    "settings",
    [{"dim": 8}, {"blocks": MIXED}, {"dilation": 2, "blocks": ("TC(4)", "A(3,5)")}],
    ids=str,
)


def made(**settings) -> Snail:
    """Weights are drawn wide, so that attention is of few."""
    model = Snail(SEEN, SAID, STEPS, **settings).double()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model


def some(steps=STEPS) -> torch.Tensor:
    return torch.randn(ROWS, steps, SEEN, dtype=torch.float64)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def of(linear, x):
    return linear.weight.detach().numpy() @ x + linear.bias.detach().numpy()


def dense(layer, states, dilation):
    """Algorithm 1, step by step: before the first one, zeros."""
    both = layer.gated.both.of_window
    filters = both.out_features // 2
    found = []
    for t, now in enumerate(states):
        earlier = states[t - dilation] if t >= dilation else np.zeros_like(now)
        mixed = of(both, np.concatenate([earlier, now]))
        said = np.tanh(mixed[:filters]) * sigmoid(mixed[filters:])
        found.append(np.concatenate([now, said]))
    return found


def look(layer, states):
    """Algorithm 2, query by query: a softmax over the keys up to its own."""
    keys, values = ([of(part, x) for x in states] for part in (layer.to_key, layer.to_value))
    found = []
    for t, now in enumerate(states):
        query = of(layer.to_query, now)
        energies = np.array([query @ keys[s] for s in range(t + 1)]) / np.sqrt(len(query))
        weights = np.exp(energies - energies.max())
        weights /= weights.sum()
        read = sum(weight * value for weight, value in zip(weights, values[: t + 1], strict=True))
        found.append(np.concatenate([now, read]))
    return found


def reference(model, row, blocks, first):
    states = [x if model.inner is None else of(model.inner, x) for x in row]
    layers = iter(model.layers)
    for block in blocks:
        if block.startswith("A"):
            states = look(next(layers), states)
        else:
            for power in range(4):  # ceil(log2 9)
                states = dense(next(layers), states, first * 2**power)
    assert next(layers, None) is None
    return np.stack([of(model.out, x) for x in states])


@EVERY
def test_it_is_the_paper_s_in_loops(settings):
    model, inputs = made(**settings), some()
    said = model.episode(inputs)
    assert said.shape == (ROWS, STEPS, SAID)
    blocks = settings.get("blocks", ("TC(32)", "TC(32)", "A(32, 32)"))
    for row, found in zip(inputs.numpy(), said.detach().numpy(), strict=True):
        wanted = reference(model, row, blocks, settings.get("dilation", 1))
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


@EVERY
def test_the_future_changes_nothing(settings):
    model, inputs = made(**settings), some()
    plain = model.episode(inputs)
    for step in range(1, STEPS):
        other = inputs.clone()
        other[:, step:] = torch.randn_like(other[:, step:])
        changed = model.episode(other)
        torch.testing.assert_close(changed[:, :step], plain[:, :step], rtol=1e-9, atol=1e-11)
        assert not torch.allclose(changed[:, step:], plain[:, step:])


@EVERY
@pytest.mark.parametrize("learnt", [False, True])
def test_an_episode_can_be_read_piece_by_piece(settings, learnt):
    """With its memory in spare room, and, where there are gradients, without."""
    model, inputs = made(**settings), some()
    whole, state, found = model.episode(inputs), model.begin(ROWS), []
    with torch.set_grad_enabled(learnt):
        for piece in inputs.split([1, 1, 4, 2, 1], 1):
            said, state = model.read(state, piece)
            found.append(said)
    torch.testing.assert_close(torch.cat(found, 1), whole, rtol=1e-9, atol=1e-11)


def test_weights_are_of_the_keys():
    """Each step divides one look among the steps up to itself; over queries, columns would sum."""
    model, inputs = made(blocks=MIXED), some()
    with observe(model.eval()) as seen:
        looked = model.episode(inputs)
    assert torch.equal(looked, model.episode(inputs))
    assert len(seen) == 3
    for weights in seen.joined().values():
        assert weights.shape == (ROWS, STEPS, STEPS)
        torch.testing.assert_close(weights.sum(-1), torch.ones(ROWS, STEPS).double())
        assert torch.equal(weights, weights.tril())
        assert (weights[:, 0, 0] == 1).all()
        assert not torch.allclose(weights.sum(-2), torch.ones(ROWS, STEPS).double(), atol=0.1)


def test_without_its_looks_it_says_something_else():
    model, inputs = made(), some()
    plain = model.episode(inputs)
    with intervene(model, {name: zero() for name in observed(model)}):
        assert not torch.allclose(model.episode(inputs), plain)


def observed(model):
    with observe(model) as seen:
        return list(seen)


@pytest.mark.parametrize(
    ("steps", "dilation", "wanted"),
    [
        (10, 1, [1, 2, 4, 8]),
        (10, 2, [2, 4, 8, 16]),
        (8, 1, [1, 2, 4]),
        (2, 1, [1]),
        (1, 1, [1]),
        (26, 1, [1, 2, 4, 8, 16]),
    ],
)
def test_dilations(steps, dilation, wanted):
    model = Snail(SEEN, SAID, steps, blocks=("TC(3)",), dilation=dilation)
    assert [layer.gated.both.dilation for layer in model.layers] == wanted


def influence(dilation):
    """Which steps the last one of 8 hears of, by convolutions alone."""
    model = Snail(SEEN, SAID, 8, dim=None, blocks=("TC(4)",), dilation=dilation).double()
    inputs = torch.randn(1, 8, SEEN, dtype=torch.float64, requires_grad=True)
    model.episode(inputs)[0, -1].sum().backward()
    assert inputs.grad is not None
    return inputs.grad[0].abs().sum(-1).gt(0).tolist()


def test_only_odd_steps_meet_if_dilations_are_as_written():
    assert influence(1) == [True] * 8
    assert influence(2) == [False, True] * 4


def test_the_paper_s_omniglot_network_has_these_widths():
    blocks = ("A(64, 32)", "TC(128)", "A(256, 128)", "TC(128)", "A(512, 256)")
    model = Snail(64 + 5, 5, 6, dim=None, blocks=blocks)
    kinds = [type(layer) for layer in model.layers]
    assert kinds == [
        AttentionBlock,
        DenseBlock,
        DenseBlock,
        DenseBlock,
        AttentionBlock,
        DenseBlock,
        DenseBlock,
        DenseBlock,
        AttentionBlock,
    ]
    assert [layer.width for layer in model.layers] == [
        *(101, 229, 357, 485),
        *(613, 741, 869, 997, 1253),
    ]
    assert model.out.in_features == 1253


def test_alike_looks_first_at_what_is_like_it():
    model = Snail(SEEN, SAID, STEPS, dim=None, blocks=("A(8, 2)",), tie_query_key_init=True)
    plain = Snail(SEEN, SAID, STEPS, dim=None, blocks=("A(8, 2)",))
    for one, same in ((model, True), (plain, False)):
        look = one.layers[0]
        assert torch.equal(look.to_key.weight, look.to_query.weight) == same
        assert look.to_key.weight is not look.to_query.weight
    nn.init.zeros_(model.layers[0].to_query.bias)
    nn.init.zeros_(model.layers[0].to_key.bias)
    inputs = torch.randn(1, 6, SEEN)
    inputs[0, 5] = inputs[0, 2]
    inputs /= inputs.norm(dim=-1, keepdim=True)
    with observe(model) as seen:
        model.episode(9 * inputs)
    [weights] = seen.joined().values()
    assert weights[0, 5, [0, 1, 3, 4]].max() < weights[0, 5, 2]


@pytest.mark.parametrize("block", ["TC", "TC(0)", "A(3)", "A(3, 0)", "B(2)", "TC(3) A(2, 2)", ""])
def test_a_block_that_is_none(block):
    with pytest.raises(ValueError, match=r"; write TC\(filters\) or A\(keys, values\)"):
        Snail(SEEN, SAID, STEPS, blocks=("TC(3)", block))


def test_bad_sizes(unchecked):
    with pytest.raises(ValueError, match="steps must be positive, not 0"):
        Snail(SEEN, SAID, 0)
    with pytest.raises(ValueError, match="dilation must be 1, or 2 as in the paper, not 3"):
        Snail(SEEN, SAID, 4, dilation=3)
    with pytest.raises(ValueError, match="inputs and feedback must be 3 wide, not 2"):
        made().episode(some()[..., :2])
