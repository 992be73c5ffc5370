"""GPT-2 against its equations in float64, the laws of a language model, and its published sizes."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.models.gpt2 import SIZES, Gpt2

SIZE, DIM, HEADS, LAYERS, CONTEXT = 11, 8, 2, 2, 9
IDS = torch.tensor([[3, 5, 4, 6, 2, 10], [6, 7, 2, 0, 0, 1]])


def small_model() -> Any:
    """Build a small model in float64 with large weights."""
    model = Gpt2(SIZE, dim=DIM, heads=HEADS, layers=LAYERS, max_positions=CONTEXT)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


def normed(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    centered = x - x.mean(-1, keepdim=True)
    scaled = centered / (centered.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def affine(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def causal_self_attention(w: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    """Compute causal attention head by head, position by position."""
    q, k, v = (affine(w, f"{name}.to_{what}", x) for what in ("query", "key", "value"))
    wide, read = DIM // HEADS, torch.zeros_like(x)
    for head in range(HEADS):
        mine = slice(head * wide, (head + 1) * wide)
        for t in range(len(x)):
            p = (k[: t + 1, mine] @ q[t, mine] / math.sqrt(wide)).softmax(0)
            read[t, mine] = p @ v[: t + 1, mine]
    return affine(w, f"{name}.out", read)


def logits_by_equation(w: dict[str, Tensor], ids: Tensor) -> Tensor:
    """Return the logits of one row."""
    x = w["words.weight"][ids] + w["position.weight"][: len(ids)]
    for i in range(LAYERS):
        name = f"decoder.layers.{i}"
        x = x + causal_self_attention(
            w, f"{name}.self_attention", normed(w, f"{name}.self_norm", x)
        )
        inner = affine(w, f"{name}.feed.widen", normed(w, f"{name}.feed_norm", x))
        curve = (math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3)).tanh()
        x = x + affine(w, f"{name}.feed.narrow", 0.5 * inner * (1 + curve))
    return normed(w, "decoder.norm", x) @ w["words.weight"].T


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("grad", [True, False])
def test_it_is_its_equations(grad):
    model = small_model()
    with torch.set_grad_enabled(grad):
        ours = model.logits(model.teacher_forced(None, IDS))
    weights = {name: w.detach() for name, w in model.state_dict().items()}
    close(ours.detach(), torch.stack([logits_by_equation(weights, row) for row in IDS]))


@pytest.mark.parametrize(
    ("size", "count"),
    [
        ("small", 124_439_808),
        ("medium", 354_823_168),
        ("large", 774_030_080),
        ("xl", 1_557_611_200),
    ],
)
def test_sizes_are_the_published_ones(size, count):
    with torch.device("meta"):
        model = Gpt2(50_257, **SIZES[size])
    assert sum(weight.numel() for weight in model.parameters()) == count


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("cuts", [[6], [1] * 6, [2, 3, 1], [5, 1]])
def test_one_read_equals_several(cuts, grad):
    model = small_model()
    with torch.set_grad_enabled(grad):
        full = model.teacher_forced(None, IDS)
        state, outputs = model.begin(2), []
        for piece in IDS.split(cuts, 1):
            states, state = model.read(state, piece)
            outputs.append(states)
        close(torch.cat(outputs, 1), full)
        log_probs, _ = model.step(model.start(model.begin(2)), IDS[:, 0])
        close(log_probs, model.logits(full[:, 0]).log_softmax(-1))
        memory = model.read(model.begin(2), IDS[:, :2])[1]
        close(model.teacher_forced(memory, IDS[:, 2:]), full[:, 2:])


@torch.no_grad()
def test_select_and_step_do_not_change_a_state():
    model = small_model()
    _, state = model.read(model.begin(2), IDS[:, :3])
    once, after = model.step(state, IDS[:, 3])
    model.step(state, IDS[:, 3] + 1)
    repeated, _ = model.step(state, IDS[:, 3])
    close(once, repeated)
    rows = torch.tensor([1, 1, 0])
    chosen, _ = model.step(model.select(state, rows), IDS[rows, 3])
    close(chosen, once[rows])
    close(model.step(after, IDS[:, 4])[0], model.step(model.detach(after), IDS[:, 4])[0])
    assert model.step(model.select(model.begin(2), rows), IDS[rows, 0])[0].shape == (3, SIZE)


def test_no_gradient_goes_through_a_detached_state():
    model = small_model()
    _, state = model.read(model.begin(2), IDS[:, :3])
    states, _ = model.read(model.detach(state), IDS[:, 3:])
    states.sum().backward()
    used = model.words.weight.grad.abs().sum(-1) > 0
    assert used.nonzero()[:, 0].tolist() == sorted(set(IDS[:, 3:].flatten().tolist()))


def test_the_future_has_no_gradient():
    model = small_model()
    words = model.words(IDS).detach().requires_grad_()
    model.words.forward = lambda _: words
    model.teacher_forced(None, IDS)[:, 2].sum().backward()
    assert words.grad[:, :3].abs().sum(-1).min() > 0
    assert words.grad[:, 3:].abs().max() == 0


def test_it_starts_as_the_paper_says(seed):
    model = Gpt2(500, dim=64, heads=2, layers=8, max_positions=100)
    for name, weight in model.named_parameters():
        if name.endswith("norm.weight"):
            assert (weight == 1).all()
        elif name.endswith("bias"):
            assert (weight == 0).all()
        else:
            writes = name.endswith(("self_attention.out.weight", "feed.narrow.weight"))
            want = 0.02 / math.sqrt(16) if writes else 0.02
            assert weight.std().item() == pytest.approx(want, rel=0.1), f"{name}, seed {seed}"


def test_each_dropout_acts_where_it_should():
    model = Gpt2(SIZE, dim=64, heads=2, layers=1, max_positions=CONTEXT, dropout=0.0).train()
    quiet = model.teacher_forced(None, IDS)
    torch.testing.assert_close(model.teacher_forced(None, IDS), quiet)
    for name in ("dropout", "embedding_dropout", "attention_dropout"):
        rates = {"dropout": 0.0, "embedding_dropout": 0.0, "attention_dropout": 0.0, name: 0.5}
        model_with_dropout = Gpt2(
            SIZE, dim=64, heads=2, layers=1, max_positions=CONTEXT, **rates
        ).train()
        recorded: dict[str, Tensor] = {}
        model_with_dropout.decoder.register_forward_pre_hook(
            lambda _, x, s=recorded: s.update(words=x[0])
        )
        first, second = (
            model_with_dropout.teacher_forced(None, IDS),
            model_with_dropout.teacher_forced(None, IDS),
        )
        assert not torch.equal(first, second)
        assert ((recorded["words"] == 0).float().mean() > 0.3) == (name == "embedding_dropout")
        assert torch.equal(
            model_with_dropout.eval().teacher_forced(None, IDS),
            model_with_dropout.teacher_forced(None, IDS),
        )


def test_observe_records_every_attention():
    model = small_model()
    with observe(model) as recorded:
        model.teacher_forced(None, IDS)
    assert [weights.shape for weights in recorded.joined().values()] == [(2, HEADS, 6, 6)] * LAYERS
    assert model.cross_attentions == ()
    assert model.output is model.words


def test_invalid_arguments_are_rejected(unchecked):
    model = small_model()
    _, state = model.read(model.begin(2), IDS)
    with pytest.raises(ValueError, match="ids reach position 12, but max_positions is 9"):
        model.read(state, IDS)
    with pytest.raises(ValueError, match="ids have 1 rows, but the state has 2"):
        model.read(state, IDS[:1])
    with pytest.raises(ValueError, match="activation: unknown name 'mish'; choose from relu, gelu"):
        Gpt2(SIZE, activation="mish")
    with pytest.raises(ValueError, match="dim 8 is not a multiple of heads 3"):
        Gpt2(SIZE, dim=8, heads=3)
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\)"):
        Gpt2(SIZE, dim=8, heads=2, embedding_dropout=1.0)
