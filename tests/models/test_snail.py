"""SNAIL: against the paper's equations in plain loops; its state, its reach, and its attention."""

import numpy as np
import pytest
import torch
from torch import nn

from regard.attention.observe import intervene, observe, zero
from regard.models.snail import AttentionBlock, DenseBlock, Snail

ROWS, STEPS, INPUTS, OUTPUTS = 2, 9, 3, 4
MIXED = ("A(4, 3)", "TC(5)", "A(6, 2)", "TC(3)", "A(2, 7)")
EVERY_SETTING = pytest.mark.parametrize(
    "settings",
    [{"dim": 8}, {"blocks": MIXED}, {"dilation": 2, "blocks": ("TC(4)", "A(3,5)")}],
    ids=str,
)


def small_model(**settings) -> Snail:
    """Build a model with large weights, so that attention is sharp."""
    model = Snail(INPUTS, OUTPUTS, STEPS, **settings).double()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model


def random_inputs(steps=STEPS) -> torch.Tensor:
    return torch.randn(ROWS, steps, INPUTS, dtype=torch.float64)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def linear_by_hand(linear, x):
    return linear.weight.detach().numpy() @ x + linear.bias.detach().numpy()


def dense_by_loop(layer, states, dilation):
    """Compute algorithm 1 step by step, with zeros before the first step."""
    linear = layer.gated.both.of_window
    filters = linear.out_features // 2
    outputs = []
    for t, now in enumerate(states):
        earlier = states[t - dilation] if t >= dilation else np.zeros_like(now)
        mixed = linear_by_hand(linear, np.concatenate([earlier, now]))
        activation = np.tanh(mixed[:filters]) * sigmoid(mixed[filters:])
        outputs.append(np.concatenate([now, activation]))
    return outputs


def attention_by_loop(layer, states):
    """Compute algorithm 2 query by query: a softmax over the keys up to the query."""
    keys, values = (
        [linear_by_hand(part, x) for x in states] for part in (layer.to_key, layer.to_value)
    )
    outputs = []
    for t, now in enumerate(states):
        query = linear_by_hand(layer.to_query, now)
        energies = np.array([query @ keys[s] for s in range(t + 1)]) / np.sqrt(len(query))
        weights = np.exp(energies - energies.max())
        weights /= weights.sum()
        read = sum(weight * value for weight, value in zip(weights, values[: t + 1], strict=True))
        outputs.append(np.concatenate([now, read]))
    return outputs


def reference(model, row, blocks, first):
    states = [x if model.inner is None else linear_by_hand(model.inner, x) for x in row]
    layers = iter(model.layers)
    for block in blocks:
        if block.startswith("A"):
            states = attention_by_loop(next(layers), states)
        else:
            for power in range(4):  # ceil(log2 9)
                states = dense_by_loop(next(layers), states, first * 2**power)
    assert next(layers, None) is None
    return np.stack([linear_by_hand(model.out, x) for x in states])


@EVERY_SETTING
def test_it_is_the_paper_s_in_loops(settings):
    model, inputs = small_model(**settings), random_inputs()
    outputs = model.episode(inputs)
    assert outputs.shape == (ROWS, STEPS, OUTPUTS)
    blocks = settings.get("blocks", ("TC(32)", "TC(32)", "A(32, 32)"))
    for row, actual in zip(inputs.numpy(), outputs.detach().numpy(), strict=True):
        expected = reference(model, row, blocks, settings.get("dilation", 1))
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-11)


@EVERY_SETTING
def test_the_future_changes_nothing(settings):
    model, inputs = small_model(**settings), random_inputs()
    plain = model.episode(inputs)
    for step in range(1, STEPS):
        changed_inputs = inputs.clone()
        changed_inputs[:, step:] = torch.randn_like(changed_inputs[:, step:])
        changed = model.episode(changed_inputs)
        torch.testing.assert_close(changed[:, :step], plain[:, :step], rtol=1e-9, atol=1e-11)
        assert not torch.allclose(changed[:, step:], plain[:, step:])


@EVERY_SETTING
@pytest.mark.parametrize("with_gradients", [False, True])
def test_an_episode_can_be_read_piece_by_piece(settings, with_gradients):
    """Without gradients, memories are appended in place; with gradients they are concatenated."""
    model, inputs = small_model(**settings), random_inputs()
    full, state, outputs = model.episode(inputs), model.begin(ROWS), []
    with torch.set_grad_enabled(with_gradients):
        for piece in inputs.split([1, 1, 4, 2, 1], 1):
            output, state = model.read(state, piece)
            outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, 1), full, rtol=1e-9, atol=1e-11)


def test_weights_sum_to_one_over_the_keys():
    """Weights sum to 1 over the keys, not over the queries."""
    model, inputs = small_model(blocks=MIXED), random_inputs()
    with observe(model.eval()) as recorded:
        outputs = model.episode(inputs)
    assert torch.equal(outputs, model.episode(inputs))
    assert len(recorded) == 3
    for weights in recorded.joined().values():
        assert weights.shape == (ROWS, STEPS, STEPS)
        torch.testing.assert_close(weights.sum(-1), torch.ones(ROWS, STEPS).double())
        assert torch.equal(weights, weights.tril())
        assert (weights[:, 0, 0] == 1).all()
        assert not torch.allclose(weights.sum(-2), torch.ones(ROWS, STEPS).double(), atol=0.1)


def test_attention_changes_the_output():
    model, inputs = small_model(), random_inputs()
    plain = model.episode(inputs)
    with intervene(model, {name: zero() for name in attention_names(model)}):
        assert not torch.allclose(model.episode(inputs), plain)


def attention_names(model):
    with observe(model) as recorded:
        return list(recorded)


@pytest.mark.parametrize(
    ("steps", "dilation", "expected"),
    [
        (10, 1, [1, 2, 4, 8]),
        (10, 2, [2, 4, 8, 16]),
        (8, 1, [1, 2, 4]),
        (2, 1, [1]),
        (1, 1, [1]),
        (26, 1, [1, 2, 4, 8, 16]),
    ],
)
def test_dilations(steps, dilation, expected):
    model = Snail(INPUTS, OUTPUTS, steps, blocks=("TC(3)",), dilation=dilation)
    assert [layer.gated.both.dilation for layer in model.layers] == expected


def influence(dilation):
    """Return which of 8 steps affect the last one, with convolutions only."""
    model = Snail(INPUTS, OUTPUTS, 8, dim=None, blocks=("TC(4)",), dilation=dilation).double()
    inputs = torch.randn(1, 8, INPUTS, dtype=torch.float64, requires_grad=True)
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


def test_tied_initialization_attends_to_similar_steps():
    model = Snail(INPUTS, OUTPUTS, STEPS, dim=None, blocks=("A(8, 2)",), tie_query_key_init=True)
    plain = Snail(INPUTS, OUTPUTS, STEPS, dim=None, blocks=("A(8, 2)",))
    for snail, same in ((model, True), (plain, False)):
        block = snail.layers[0]
        assert torch.equal(block.to_key.weight, block.to_query.weight) == same
        assert block.to_key.weight is not block.to_query.weight
    nn.init.zeros_(model.layers[0].to_query.bias)
    nn.init.zeros_(model.layers[0].to_key.bias)
    scales = torch.tensor([-1.0, -0.5, 1.0, -0.2, -0.8, 1.0])  # step 5 is like step 2 only
    inputs = scales[:, None] * nn.functional.normalize(torch.randn(1, 1, INPUTS), dim=-1)
    with observe(model) as recorded:
        model.episode(9 * inputs)
    [weights] = recorded.joined().values()
    assert weights[0, 5, [0, 1, 3, 4]].max() < weights[0, 5, 2]


@pytest.mark.parametrize("block", ["TC", "TC(0)", "A(3)", "A(3, 0)", "B(2)", "TC(3) A(2, 2)", ""])
def test_unknown_blocks_are_rejected(block):
    with pytest.raises(ValueError, match=r"; write TC\(filters\) or A\(keys, values\)"):
        Snail(INPUTS, OUTPUTS, STEPS, blocks=("TC(3)", block))


def test_bad_sizes(unchecked):
    with pytest.raises(ValueError, match="steps must be positive, not 0"):
        Snail(INPUTS, OUTPUTS, 0)
    with pytest.raises(ValueError, match="dilation must be 1, or 2 as in the paper, not 3"):
        Snail(INPUTS, OUTPUTS, 4, dilation=3)
    with pytest.raises(ValueError, match="inputs and feedback must be 3 wide, not 2"):
        small_model().episode(random_inputs()[..., :2])
