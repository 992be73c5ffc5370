"""The Neural Turing Machine: against the paper's equations in plain loops, and what it shows."""

import gc
import math

import numpy as np
import pytest
import torch
from torch import nn

from regard.attention.observe import intervene, observe, replace, zero
from regard.models.ntm import INITIAL_VALUE, Ntm

ROWS, STEPS, SEEN, SAID, SLOTS, WIDE, DIM = 2, 5, 4, 3, 6, 3, 7
EVERY = pytest.mark.parametrize(
    ("controller", "read_heads", "write_heads", "shift"),
    [("feedforward", 1, 1, 1), ("lstm", 1, 1, 1), ("lstm", 2, 3, 2), ("feedforward", 3, 2, 1)],
)


def machine(controller="lstm", read_heads=1, write_heads=1, shift=1, **more) -> Ntm:
    """Weights are drawn wide: heads move, and write, in every direction."""
    sizes = {
        "dim": DIM,
        "slots": SLOTS,
        "slot_dim": WIDE,
        "max_shift": shift,
        "gradient_clip": 0.0,
    } | more
    model = Ntm(
        SEEN,
        SAID,
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


def addressed(key, strength, gate, shifts, sharpness, before, memory):
    """Eq. 5-9, slot by slot. `shifts` are of -s … s."""
    slots, reach = len(memory), len(shifts) // 2
    likeness = np.zeros(slots)
    for i in range(slots):
        # an almost empty slot is compared with as if it were 0.01 long
        likeness[i] = key @ memory[i] / (np.linalg.norm(key) * max(np.linalg.norm(memory[i]), 0.01))
    found = softmax(strength * likeness)
    mixed = gate * found + (1 - gate) * before
    moved = np.zeros(slots)
    for i in range(slots):
        for j in range(slots):
            for n, share in enumerate(shifts):
                if (i - j) % slots == (n - reach) % slots:
                    moved[i] += mixed[j] * share
    return moved**sharpness / (moved**sharpness).sum()


class Heads:
    """What the linear layer says of each head, read off by hand."""

    def __init__(self, model: Ntm, said):
        heads, writers = model.read_heads + model.write_heads, model.write_heads
        wide, moves = model.slot_dim, 2 * model.max_shift + 1
        cuts = np.cumsum([heads * (wide + 1), heads, heads, heads * moves, writers * wide])
        asked, gate, sharp, shifts, erase, add = np.split(said, cuts)
        asked = asked.reshape(heads, wide + 1)
        self.keys, self.strengths = asked[:, :-1], softplus(asked[:, -1])
        self.gates, self.sharpness = sigmoid(gate), 1 + softplus(sharp)
        self.shifts = [softmax(row) for row in shifts.reshape(heads, moves)]
        self.erase, self.add = (
            sigmoid(erase).reshape(writers, wide),
            np.tanh(add.reshape(writers, wide)),
        )


def reference(model: Ntm, inputs):
    """One row, in float64, straight from the equations; and every weighting."""
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    heads, readers = model.read_heads + model.write_heads, model.read_heads
    memory = np.full((model.slots, model.slot_dim), INITIAL_VALUE)
    before = np.zeros((heads, model.slots))
    before[:, 0] = 1
    read, h, c = np.zeros(readers * model.slot_dim), np.zeros(DIM), np.zeros(DIM)
    outputs, seen = [], []
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
        of = Heads(model, weights["of_heads.weight"] @ h + weights["of_heads.bias"])
        each = zip(of.keys, of.strengths, of.gates, of.shifts, of.sharpness, before, strict=True)
        before = np.stack([addressed(*one, memory) for one in each])
        read = np.concatenate([row @ memory for row in before[:readers]])
        for row, erase in zip(before[readers:], of.erase, strict=True):
            memory = memory * (1 - np.outer(row, erase))
        for row, add in zip(before[readers:], of.add, strict=True):
            memory = memory + np.outer(row, add)
        outputs.append(weights["out.weight"] @ np.concatenate([h, read]) + weights["out.bias"])
        seen.append(before)
    return np.stack(outputs), np.stack(seen, 1)


@EVERY
def test_it_is_the_paper_s(controller, read_heads, write_heads, shift):
    model = machine(controller, read_heads, write_heads, shift)
    inputs = torch.randn(ROWS, STEPS, SEEN, dtype=torch.float64)
    with observe(model) as seen:
        outputs = model.episode(inputs)
    whole = seen.joined()
    assert list(whole) == ["reader", "writer"]
    assert whole["reader"].shape == (ROWS, read_heads, STEPS, SLOTS)
    assert whole["writer"].shape == (ROWS, write_heads, STEPS, SLOTS)
    for row in range(ROWS):
        wanted, weightings = reference(model, inputs[row].numpy())
        np.testing.assert_allclose(outputs[row].detach(), wanted, rtol=1e-7, atol=1e-9)
        shown = torch.cat([whole["reader"][row], whole["writer"][row]])
        np.testing.assert_allclose(shown, weightings, rtol=1e-7, atol=1e-9)


@EVERY
def test_gradients_are_right(controller, read_heads, write_heads, shift):
    model = machine(controller, read_heads, write_heads, shift)
    inputs = torch.randn(1, 3, SEEN, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(model.episode, (inputs,), atol=1e-5)
    names = ["of_heads.weight", "controller.weight_ih"]
    weights = [dict(model.named_parameters())[name] for name in names]
    model.episode(inputs.detach()).square().sum().backward()
    for weight in weights:
        step, place = 1e-6, (0, 0)
        with torch.no_grad():
            found = []
            for sign in (1, -1):
                weight[place] += sign * step
                found.append(model.episode(inputs.detach()).square().sum().item())
                weight[place] -= sign * step
        assert weight.grad is not None
        slope = (found[0] - found[1]) / (2 * step)
        assert weight.grad[place].item() == pytest.approx(slope, rel=1e-4, abs=1e-6)


def steered(model: Ntm, **biases: list[float]) -> Ntm:
    """Every head does as told, whatever is shown: of `gate`, `sharp` and `moves` (-1, 0, 1)."""
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


def test_a_head_that_moves_goes_on_one_by_one_and_around():
    """From slot 0 to higher ones: `copy` needs nothing more of a head."""
    model = steered(machine(), gate=[-50.0], sharp=[0.0], moves=[-50.0, -50.0, 50.0])
    with observe(model) as seen:
        model.episode(torch.zeros(1, SLOTS + 2, SEEN, dtype=torch.float64))
    slots = [*range(1, SLOTS), 0, 1, 2]
    for weights in seen.joined().values():
        assert weights[0, 0].argmax(-1).tolist() == slots
        torch.testing.assert_close(weights[0, 0].amax(-1), torch.ones(len(slots)).double())


def test_sharpening_leaves_one_slot():
    """With c = 1 a shift of thirds goes on spreading; with a large c the middle stays."""
    flat, sharp = (
        steered(machine(), gate=[-50.0], sharp=[c], moves=[0.0, 0.2, 0.0]) for c in (-50.0, 50.0)
    )
    with observe(flat) as blurred, observe(sharp) as kept:
        flat.episode(torch.zeros(1, 4, SEEN, dtype=torch.float64))
        sharp.episode(torch.zeros(1, 4, SEEN, dtype=torch.float64))
    assert kept["reader"][-1][0, 0, 0, 0] > 0.99
    assert blurred["reader"][-1].amax() < 0.3


def test_where_weights_are_zero_gradients_are_finite():
    """Heads start with all on one slot: log 0 is met at the first step, in single precision too."""
    model = Ntm(SEEN, SAID, dim=8, slots=5, slot_dim=4)
    with torch.no_grad():
        model.of_heads.bias.fill_(-200.0)  # nothing is found by content, and nothing moves
    model.episode(torch.randn(3, 6, SEEN)).sum().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name


def test_what_is_written_with_can_be_changed():
    """Zeroed, nothing is ever written, and nothing but the first value can be read."""
    model, inputs = machine(), torch.randn(1, 4, SEEN, dtype=torch.float64)
    before = model.episode(inputs)
    with intervene(model, {"writer": zero()}), observe(model) as seen:
        after = model.episode(inputs)
    assert not torch.allclose(before, after)
    assert seen.joined()["writer"].count_nonzero() == 0
    only = torch.zeros(SLOTS, dtype=torch.float64)
    only[2] = 1.0
    with intervene(model, {"writer": zero(), "reader": replace(only)}):
        same = model.episode(inputs)
    torch.testing.assert_close(same, after)  # every slot holds the same


def test_feedback_stands_beside_the_inputs():
    model, inputs = machine(), torch.randn(1, 4, SEEN, dtype=torch.float64)
    split = model.episode(inputs[..., :3], inputs[..., 3:])
    torch.testing.assert_close(split, model.episode(inputs))
    with pytest.raises(ValueError, match="inputs and feedback must be 4 wide, not 5"):
        model.episode(inputs, inputs[..., :1])


def test_the_size_of_the_paper_s_machine():
    """17,162 weights with 100 units, feed-forward; its biases are not told, ours comes near."""
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


@EVERY
def test_the_quick_turn_is_the_plain_one(controller, read_heads, write_heads, shift):
    """Who wants the gradient of what is seen gets the plain one; outputs are the same bits."""
    model = machine(controller, read_heads, write_heads, shift)
    inputs = torch.randn(ROWS, STEPS, SEEN, dtype=torch.float64)
    found = []
    for detach in (True, False):
        with observe(model, detach=detach):
            outputs = model.episode(inputs)
        model.zero_grad()
        outputs.square().sum().backward()
        found.append((outputs, [weight.grad for weight in model.parameters()]))
    (quick, fast), (plain, slow) = found
    assert torch.equal(quick, plain)
    for one, other in zip(fast, slow, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


def test_what_flows_back_is_cut(monkeypatch):
    """With a cut at nothing, gradients are as if each step began where the last one happened to be;
    with one that is never met, nothing is cut."""
    inputs = torch.randn(ROWS, STEPS, SEEN, dtype=torch.float64)
    model = machine()

    def gradient(clip: float) -> torch.Tensor:
        model.gradient_clip = clip
        model.zero_grad()
        model.episode(inputs).square().sum().backward()
        assert model.of_heads.bias.grad is not None
        return model.of_heads.bias.grad.clone()

    whole, never, cut = gradient(0.0), gradient(1e9), gradient(1e-12)
    torch.testing.assert_close(whole, never)
    assert not torch.allclose(whole, cut)
    plain = model.step_heads
    monkeypatch.setattr(model, "step_heads", lambda h, before, m: plain(h, before.detach(), m))
    torch.testing.assert_close(cut, gradient(0.0), rtol=1e-6, atol=1e-8)


def test_nothing_is_left_of_a_step(unchecked):
    """What was saved for the way back is gone after it: a training's memory does not grow."""
    model, inputs = machine("feedforward"), torch.randn(ROWS, STEPS, SEEN).double()

    def step() -> int:
        model.episode(inputs).sum().backward()
        gc.collect()
        return sum(type(one) is torch.Tensor for one in gc.get_objects())

    before = [step() for _ in range(2)][-1]
    assert [step() for _ in range(3)][-1] == before
