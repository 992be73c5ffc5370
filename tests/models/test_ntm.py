"""The Neural Turing Machine: against the paper's equations in plain loops, and its attention."""

import gc
import math

import numpy as np
import pytest
import torch
from torch import nn

from regard.attention.observe import intervene, observe, replace, zero
from regard.models.ntm import INITIAL_VALUE, Ntm

ROWS, STEPS, INPUTS, OUTPUTS, SLOTS, WIDE, DIM = 2, 5, 4, 3, 6, 3, 7
EVERY_MACHINE = pytest.mark.parametrize(
    ("controller", "read_heads", "write_heads", "shift"),
    [("feedforward", 1, 1, 1), ("lstm", 1, 1, 1), ("lstm", 2, 3, 2), ("feedforward", 3, 2, 1)],
)


def machine(controller="lstm", read_heads=1, write_heads=1, shift=1, **more) -> Ntm:
    """Build a machine with large weights, so that heads move and write."""
    sizes = {
        "dim": DIM,
        "slots": SLOTS,
        "slot_dim": WIDE,
        "max_shift": shift,
        "gradient_clip": 0.0,
    } | more
    model = Ntm(
        INPUTS,
        OUTPUTS,
        controller=controller,
        read_heads=read_heads,
        write_heads=write_heads,
        **sizes,
    ).double()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.8)
    return model


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(x))


def softmax(x):
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


def address_slots(key, strength, gate, shifts, sharpness, before, memory):
    """Compute eq. 5-9, slot by slot; `shifts` go from -s to s."""
    slots, reach = len(memory), len(shifts) // 2
    similarity = np.zeros(slots)
    for i in range(slots):
        # a slot with a norm below 0.01 is treated as if its norm were 0.01
        similarity[i] = (
            key @ memory[i] / (np.linalg.norm(key) * max(np.linalg.norm(memory[i]), 0.01))
        )
    content_weights = softmax(strength * similarity)
    gated = gate * content_weights + (1 - gate) * before
    shifted = np.zeros(slots)
    for i in range(slots):
        for j in range(slots):
            for n, share in enumerate(shifts):
                if (i - j) % slots == (n - reach) % slots:
                    shifted[i] += gated[j] * share
    return shifted**sharpness / (shifted**sharpness).sum()


class Heads:
    """The parameters of each head, split by hand."""

    def __init__(self, model: Ntm, controls):
        heads, writers = model.read_heads + model.write_heads, model.write_heads
        wide, moves = model.slot_dim, 2 * model.max_shift + 1
        cuts = np.cumsum([heads * (wide + 1), heads, heads, heads * moves, writers * wide])
        queries, gate, sharp, shifts, erase, add = np.split(controls, cuts)
        queries = queries.reshape(heads, wide + 1)
        self.keys, self.strengths = queries[:, :-1], softplus(queries[:, -1])
        self.gates, self.sharpness = sigmoid(gate), 1 + softplus(sharp)
        self.shifts = [softmax(row) for row in shifts.reshape(heads, moves)]
        self.erase, self.add = (
            sigmoid(erase).reshape(writers, wide),
            np.tanh(add.reshape(writers, wide)),
        )


def reference(model: Ntm, inputs):
    """Compute one row in float64 from the equations; return outputs and all weights."""
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    heads, readers = model.read_heads + model.write_heads, model.read_heads
    memory = np.full((model.slots, model.slot_dim), INITIAL_VALUE)
    before = np.zeros((heads, model.slots))
    before[:, 0] = 1
    read, h, c = np.zeros(readers * model.slot_dim), np.zeros(DIM), np.zeros(DIM)
    outputs, all_weights = [], []
    for x in inputs:
        raw = weights["controller.weight_ih"] @ np.concatenate([x, read])
        if "controller.weight_hh" in weights:
            raw = raw + weights["controller.weight_hh"] @ h
            raw = raw + weights["controller.bias_ih"] + weights["controller.bias_hh"]
            i, f, g, o = np.split(raw, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        else:
            h = np.tanh(raw + weights["controller.bias"])
        head_controls = Heads(model, weights["of_heads.weight"] @ h + weights["of_heads.bias"])
        heads_and_weights = zip(
            head_controls.keys,
            head_controls.strengths,
            head_controls.gates,
            head_controls.shifts,
            head_controls.sharpness,
            before,
            strict=True,
        )
        before = np.stack([address_slots(*parameters, memory) for parameters in heads_and_weights])
        read = np.concatenate([row @ memory for row in before[:readers]])
        for row, erase in zip(before[readers:], head_controls.erase, strict=True):
            memory = memory * (1 - np.outer(row, erase))
        for row, add in zip(before[readers:], head_controls.add, strict=True):
            memory = memory + np.outer(row, add)
        outputs.append(weights["out.weight"] @ np.concatenate([h, read]) + weights["out.bias"])
        all_weights.append(before)
    return np.stack(outputs), np.stack(all_weights, 1)


@EVERY_MACHINE
def test_it_is_the_paper_s(controller, read_heads, write_heads, shift):
    model = machine(controller, read_heads, write_heads, shift)
    inputs = torch.randn(ROWS, STEPS, INPUTS, dtype=torch.float64)
    with observe(model) as recorded:
        outputs = model.episode(inputs)
    joined = recorded.joined()
    assert list(joined) == ["reader", "writer"]
    assert joined["reader"].shape == (ROWS, read_heads, STEPS, SLOTS)
    assert joined["writer"].shape == (ROWS, write_heads, STEPS, SLOTS)
    for row in range(ROWS):
        expected, weightings = reference(model, inputs[row].numpy())
        np.testing.assert_allclose(outputs[row].detach(), expected, rtol=1e-7, atol=1e-9)
        weights = torch.cat([joined["reader"][row], joined["writer"][row]])
        np.testing.assert_allclose(weights, weightings, rtol=1e-7, atol=1e-9)


@EVERY_MACHINE
def test_gradients_are_right(controller, read_heads, write_heads, shift):
    model = machine(controller, read_heads, write_heads, shift)
    inputs = torch.randn(1, 3, INPUTS, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(model.episode, (inputs,), atol=1e-5)
    names = ["of_heads.weight", "controller.weight_ih"]
    weights = [dict(model.named_parameters())[name] for name in names]
    model.episode(inputs.detach()).square().sum().backward()
    for weight in weights:
        step, place = 1e-6, (0, 0)
        with torch.no_grad():
            losses = []
            for sign in (1, -1):
                weight[place] += sign * step
                losses.append(model.episode(inputs.detach()).square().sum().item())
                weight[place] -= sign * step
        assert weight.grad is not None
        slope = (losses[0] - losses[1]) / (2 * step)
        assert weight.grad[place].item() == pytest.approx(slope, rel=1e-4, abs=1e-6)


def steered(model: Ntm, **biases: list[float]) -> Ntm:
    """Set the parameters of all heads to constants; `moves` are for shifts -1, 0, 1."""
    heads = model.read_heads + model.write_heads
    with torch.no_grad():
        model.of_heads.weight.zero_()
        bias = dict(
            zip(
                ("asked", "gate", "sharp", "moves", "erase", "add"),
                model.of_heads.bias.split(model.sizes),
                strict=True,
            )
        )
        for name, value in biases.items():
            bias[name].copy_(torch.tensor(value).repeat(heads))
    return model


def test_a_shifting_head_moves_slot_by_slot_around_the_memory():
    """Heads move from slot 0 to higher slots, as the copy task needs."""
    model = steered(machine(), gate=[-50.0], sharp=[0.0], moves=[-50.0, -50.0, 50.0])
    with observe(model) as recorded:
        model.episode(torch.zeros(1, SLOTS + 2, INPUTS, dtype=torch.float64))
    slots = [*range(1, SLOTS), 0, 1, 2]
    for weights in recorded.joined().values():
        assert weights[0, 0].argmax(-1).tolist() == slots
        torch.testing.assert_close(weights[0, 0].amax(-1), torch.ones(len(slots)).double())


def test_sharpening_leaves_one_slot():
    """With c = 1 an even shift spreads the weights; with a large c the center stays."""
    flat, sharp = (
        steered(machine(), gate=[-50.0], sharp=[c], moves=[0.0, 0.2, 0.0]) for c in (-50.0, 50.0)
    )
    with observe(flat) as blurred, observe(sharp) as sharpened:
        flat.episode(torch.zeros(1, 4, INPUTS, dtype=torch.float64))
        sharp.episode(torch.zeros(1, 4, INPUTS, dtype=torch.float64))
    assert sharpened["reader"][-1][0, 0, 0, 0] > 0.99
    assert blurred["reader"][-1].amax() < 0.3


def test_where_weights_are_zero_gradients_are_finite():
    """Heads start at one slot, so that the first step has log 0, also in single precision."""
    model = Ntm(INPUTS, OUTPUTS, dim=8, slots=5, slot_dim=4)
    with torch.no_grad():
        model.of_heads.bias.fill_(-200.0)  # no head uses content or shifts
    model.episode(torch.randn(3, 6, INPUTS)).sum().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name


def test_write_weights_can_be_edited():
    """With zero weights nothing is written, and all slots keep the initial value."""
    model, inputs = machine(), torch.randn(1, 4, INPUTS, dtype=torch.float64)
    before = model.episode(inputs)
    with intervene(model, {"writer": zero()}), observe(model) as recorded:
        after = model.episode(inputs)
    assert not torch.allclose(before, after)
    assert recorded.joined()["writer"].count_nonzero() == 0
    only = torch.zeros(SLOTS, dtype=torch.float64)
    only[2] = 1.0
    with intervene(model, {"writer": zero(), "reader": replace(only)}):
        same = model.episode(inputs)
    torch.testing.assert_close(same, after)  # all slots are equal


def test_feedback_is_concatenated_to_the_inputs():
    model, inputs = machine(), torch.randn(1, 4, INPUTS, dtype=torch.float64)
    split = model.episode(inputs[..., :3], inputs[..., 3:])
    torch.testing.assert_close(split, model.episode(inputs))
    with pytest.raises(ValueError, match="inputs and feedback must be 4 wide, not 5"):
        model.episode(inputs, inputs[..., :1])


def test_the_size_of_the_paper_s_machine():
    """The paper: 17,162 weights with 100 units, feed-forward; its biases are unknown."""
    ours = sum(p.numel() for p in Ntm(9, 8, controller="feedforward").parameters())
    by_hand = 100 * (9 + 20) + 100 + 92 * 100 + 92 + 8 * (100 + 20) + 8
    assert ours == by_hand == 13_260
    assert math.isclose(ours, 17_162, rel_tol=0.25)


def test_settings_that_do_not_fit(unchecked):
    with pytest.raises(ValueError, match="read_heads must be positive, not 0"):
        Ntm(3, 3, read_heads=0)
    with pytest.raises(ValueError, match=r"max_shift \(2\) must be less than half of slots \(4\)"):
        Ntm(3, 3, slots=4, max_shift=2)
    with pytest.raises(ValueError, match="controller must be feedforward or lstm, not 'gru'"):
        Ntm(3, 3, controller="gru")  # pyright: ignore[reportArgumentType]


@EVERY_MACHINE
def test_fast_access_equals_plain_access(controller, read_heads, write_heads, shift):
    """Recording weights with gradients uses plain access; outputs are bit-identical."""
    model = machine(controller, read_heads, write_heads, shift)
    inputs = torch.randn(ROWS, STEPS, INPUTS, dtype=torch.float64)
    results = []
    for detach in (True, False):
        with observe(model, detach=detach):
            outputs = model.episode(inputs)
        model.zero_grad()
        outputs.square().sum().backward()
        results.append((outputs, [weight.grad for weight in model.parameters()]))
    (quick, fast), (plain, slow) = results
    assert torch.equal(quick, plain)
    for fast_gradient, plain_gradient in zip(fast, slow, strict=True):
        torch.testing.assert_close(fast_gradient, plain_gradient, rtol=1e-8, atol=1e-10)


def test_gradients_between_steps_are_clipped(monkeypatch):
    """A tiny clip equals detached weights between steps; a huge clip changes nothing."""
    inputs = torch.randn(ROWS, STEPS, INPUTS, dtype=torch.float64)
    model = machine()

    def gradient(clip: float) -> torch.Tensor:
        model.gradient_clip = clip
        model.zero_grad()
        model.episode(inputs).square().sum().backward()
        assert model.of_heads.bias.grad is not None
        return model.of_heads.bias.grad.clone()

    full, never, cut = gradient(0.0), gradient(1e9), gradient(1e-12)
    torch.testing.assert_close(full, never)
    assert not torch.allclose(full, cut)
    plain = model.step_heads
    monkeypatch.setattr(model, "step_heads", lambda h, before, m: plain(h, before.detach(), m))
    torch.testing.assert_close(cut, gradient(0.0), rtol=1e-6, atol=1e-8)


def test_no_tensor_is_left_after_a_step(unchecked):
    """Saved tensors are freed after backward, so that memory does not grow."""
    model, inputs = machine("feedforward"), torch.randn(ROWS, STEPS, INPUTS).double()

    def step() -> int:
        model.episode(inputs).sum().backward()
        gc.collect()
        return sum(type(tracked) is torch.Tensor for tracked in gc.get_objects())

    before = [step() for _ in range(2)][-1]
    assert [step() for _ in range(3)][-1] == before
