"""Show and tell; show, attend and tell: against loops from the equations, and their laws."""

import math

import pytest
import torch
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.attention.reinforce import sample_attention
from regard.models.caption import ShowAttend, ShowTell, doubly_stochastic_penalty
from regard.models.catalogue import build_model

SIZE, WORDS = (12, 16), 9
SMALL = {"dim": 6, "hidden_dim": 5, "image_dim": 4, "image_layers": 2, "pooling_layers": 2}
VARIANTS = [
    ("show_tell", {}),
    ("show_attend", {}),
    ("show_attend", {"score": "general", "normalize": "sparsemax", "align_dim": 3}),
    ("show_attend", {"normalize": "reinforce"}),
]
every_model = pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: f"{v[0]} {v[1]}")


def small_model(variant, dtype=torch.float64, **more):
    """Build a small model with large weights, so that errors are not hidden by small ones."""
    kind, settings = variant
    arguments = {"target_size": WORDS, "size": SIZE, "channels": 2, **SMALL, **settings, **more}
    model = build_model(kind, arguments)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.4)
    images = torch.randn(4, 2, *SIZE, dtype=dtype)
    target = torch.randint(3, WORDS, (4, 6))
    return model.to(dtype).eval(), images, target


def step_log_probs(model, memory, target: Tensor) -> Tensor:
    state, log_probs = model.start(memory), []
    for tokens in target.unbind(1):
        scores, state = model.step(state, tokens)
        log_probs.append(scores)
    return torch.stack(log_probs, 1)


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-10)


def lstm(cell, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Run one step for one row, gate by gate."""
    wide = len(c)
    raw = cell.weight_ih @ x + cell.bias_ih + cell.weight_hh @ h + cell.bias_hh
    i, f, g, o = (raw[n * wide : (n + 1) * wide] for n in range(4))
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def test_show_tell_is_its_equations():
    """The image is the first input only, and has no output."""
    model, images, target = small_model(("show_tell", {}))
    logits = model.logits(model.teacher_forced(model.remember(images), target))
    assert logits.shape == (4, 6, WORDS)
    [cell] = model.decoder.stack
    for row in range(4):
        places = model.picture(images[row : row + 1])[0]
        x = model.of_picture.weight @ places.flatten() + model.of_picture.bias
        h, c = lstm(cell, x, torch.zeros(5).double(), torch.zeros(5).double())
        for t, word in enumerate(target[row].tolist()):
            h, c = lstm(cell, model.target_words.weight[word], h, c)
            close(logits[row, t], model.output.weight @ h + model.output.bias)


@torch.no_grad()
def test_show_attend_is_its_equations():
    model, images, target = small_model(("show_attend", {"align_dim": 3}))
    with observe(model) as recorded:
        logits = model.logits(model.teacher_forced(model.remember(images), target))
    weights = recorded.joined()["attention"]
    score = model.attention.score
    for row in range(4):
        places = model.picture(images[row : row + 1])[0].clone()
        for at in range(12):  # 3 x 4 positions, in reading order
            places[at] += model.rows.weight[at // 4] + model.columns.weight[at % 4]
        start = torch.tanh(model.of_mean.weight @ places.mean(0) + model.of_mean.bias)
        h, c = start[:5], start[5:]
        for t, word in enumerate(target[row].tolist()):
            energies = [
                float(score.energy @ torch.tanh(score.of_query(h) + score.of_key(place)))
                for place in places
            ]
            total = sum(math.exp(e) for e in energies)
            alpha = [math.exp(e) / total for e in energies]
            beta = torch.sigmoid(model.gate.weight[0] @ h + model.gate.bias[0])
            z = beta * sum(a * place for a, place in zip(alpha, places, strict=True))
            word_vector = model.target_words.weight[word]
            h, c = lstm(model.cell, torch.cat([word_vector, z]), h, c)
            deep = word_vector + model.of_state.weight @ h + model.of_state.bias
            deep = deep + model.of_context.weight @ z
            close(logits[row, t], model.output.weight @ deep + model.output.bias)
            close(weights[row, t], torch.tensor(alpha, dtype=torch.float64))


@every_model
def test_stepping_is_teacher_forcing(variant):
    model, images, target = small_model(variant)
    memory = model.remember(images)
    forced = model.logits(model.teacher_forced(memory, target)).log_softmax(-1)
    close(step_log_probs(model, memory, target), forced)
    with torch.no_grad():
        for rows in ([2, 0, 0], [3, 3, 1, 1], [0, 1, 2, 3]):
            state = model.select(model.start(memory), torch.tensor(rows))
            for t in range(3):
                scores, state = model.step(state, target[rows, t])
                close(scores, forced[rows, t])
            selected_rows = torch.tensor([len(rows) - 1, 0])
            scores, _ = model.step(
                model.select(state, selected_rows), target[rows][selected_rows, 3]
            )
            close(scores, forced[rows][selected_rows, 3])


@every_model
def test_future_and_other_rows_change_nothing(variant, unchecked):
    model, images, target = small_model(variant)
    expected = model.teacher_forced(model.remember(images), target)
    alone = model.teacher_forced(model.remember(images[1:2]), target[1:2])
    close(alone, expected[1:2])
    target[:, 3:] = (target[:, 3:] + 1) % WORDS
    changed = model.teacher_forced(model.remember(images), target)
    close(changed[:, :3], expected[:, :3])
    assert not torch.allclose(changed[:, 3], expected[:, 3])
    flipped = model.teacher_forced(model.remember(images.flip(3)), target)
    assert not torch.allclose(flipped, changed)


@every_model
def test_attention_of_a_search_is_that_of_teacher_forcing(variant, unchecked):
    model, images, target = small_model(variant)
    if not model.cross_attentions:
        with pytest.raises(ValueError, match="no attention"), observe(model):
            pass
        return
    plain = model.teacher_forced(model.remember(images), target)
    with observe(model, model.cross_attentions) as forced:
        assert torch.equal(model.teacher_forced(model.remember(images), target), plain)
    with torch.no_grad(), observe(model, model.cross_attentions) as searched:
        step_log_probs(model, model.remember(images), target)
    weights = forced.joined()["attention"]
    assert weights.shape == (4, 6, 12)
    close(weights.sum(-1), torch.ones(4, 6, dtype=torch.float64))
    close(searched.joined()["attention"], weights)


@every_model
def test_gradients_reach_every_parameter(variant, unchecked):
    model, images, target = small_model(variant)
    model.train()
    if getattr(model, "reinforce", None) is None:
        states = model.teacher_forced(model.remember(images), target)
        extra = 0.0
    else:
        with sample_attention(model, 0.5) as episode:
            states = model.teacher_forced(model.remember(images), target)
        extra = model.reinforce(torch.full((4,), -1.0).double(), episode).sum()
    loss = nn.functional.cross_entropy(model.logits(states).flatten(0, 1), target.flatten())
    (loss + extra).backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name
        assert weight.grad.any(), name


def test_dropout_drops_in_training_only(unchecked):
    for kind in ("show_tell", "show_attend"):
        model, images, target = small_model((kind, {"dropout": 0.5}))
        memory = model.remember(images)
        assert torch.equal(
            model.teacher_forced(memory, target), model.teacher_forced(memory, target)
        )
        model.train()
        assert not torch.equal(
            model.teacher_forced(memory, target), model.teacher_forced(memory, target)
        )


@pytest.mark.parametrize("kind", ["show_tell", "show_attend"])
def test_an_image_does_not_depend_on_its_batch(kind):
    """The captions of a batch have one length; an image must not depend on the others."""
    model, images, _ = small_model((kind, {}))
    model.train()
    close(model.picture(images)[:1], model.picture(images[:1]))
    assert not list(model.buffers())


def test_hard_attention_has_one_hot_weights():
    model, images, target = small_model(("show_attend", {"normalize": "reinforce"}))
    with observe(model) as recorded:
        model.teacher_forced(model.remember(images), target)
    assert set(recorded.joined()["attention"].flatten().tolist()) == {0.0, 1.0}
    assert "reinforce.baseline" in model.state_dict()
    model.train()
    with pytest.raises(RuntimeError, match="inside `with sample_attention"):
        model.teacher_forced(model.remember(images), target)


def test_doubly_stochastic_counts_real_words_only():
    weights = torch.tensor([[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]])
    valid = torch.tensor([[True, True, False]])
    # sums of the positions: 1.5, 0.5 and 0; penalties 0.25 + 0.25 + 1
    assert doubly_stochastic_penalty(weights, valid).tolist() == [1.5]
    assert doubly_stochastic_penalty(weights, valid | True).tolist() == [0.5]


def test_wrong_sizes_are_rejected(unchecked):
    with pytest.raises(
        ValueError, match=r"size = \[3, 8\] is too small for pooling_layers = 2; each side"
    ):
        ShowTell(5, (3, 8))
    model = ShowAttend(5, 8, channels=1, dim=4)
    with pytest.raises(ValueError, match="images have 8 x 9 pixels, but the model is for 8 x 8"):
        model.remember(torch.rand(1, 1, 8, 9))
    with pytest.raises(ValueError, match=r"images must have shape \[batch, 1, height, width\]"):
        model.remember(torch.rand(1, 3, 8, 8))
