"""ELMo against loops in float64 from its equations, torch's LSTM, and its laws."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.layers.character_cnn import CharacterCNN, Highway
from regard.layers.scalar_mix import ScalarMix
from regard.models.elmo import Elmo
from regard.tasks.loss import cross_entropy

SMALL = {"characters": 9, "character_dim": 3, "filters": ((1, 2), (3, 4)), "highway_layers": 2}
LENGTHS = [6, 3, 2]
VALID = torch.arange(6) < torch.tensor(LENGTHS)[:, None]


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-12)


def with_random_weights(model: nn.Module) -> Any:
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.6)
    return model.double().eval()


def elmo(**settings: Any) -> Elmo:
    return with_random_weights(
        Elmo(7, **{**SMALL, "dim": 4, "hidden_dim": 5, "state_clip": 0.4, **settings})
    )


def random_words() -> Tensor:
    """Return words of 4 characters; 0 at padding."""
    return torch.randint(1, 9, (3, 6, 4)) * VALID[..., None]


def vector(p: dict[str, Tensor], word: Tensor) -> Tensor:
    """Compute the character CNN for one word."""
    letters, features = p["words.characters.weight"][word], []
    for index in range(2):
        W, b = p[f"words.windows.{index}.weight"], p[f"words.windows.{index}.bias"]
        width = W.shape[2]
        for w, bias in zip(W, b, strict=True):
            places = range(len(word) - width + 1)
            at = [sum(w[:, j] @ letters[i + j] for j in range(width)) + bias for i in places]
            features.append(torch.clamp(max(at), min=0))
    x = torch.stack(features)
    for index in range(2):
        W, b = p[f"words.highways.{index}.change.weight"], p[f"words.highways.{index}.change.bias"]
        V, c = p[f"words.highways.{index}.carry.weight"], p[f"words.highways.{index}.carry.bias"]
        gate = torch.sigmoid(V @ x + c)
        x = gate * x + (1 - gate) * torch.clamp(W @ x + b, min=0)
    return p["words.project.weight"] @ x + p["words.project.bias"]


def layers_by_equation(
    p: dict[str, Tensor], side: str, x: list[Tensor], clip: float
) -> list[list[Tensor]]:
    """Compute the LSTM layers over one sentence."""
    layers = []
    for depth in range(2):
        W, U, b, d, P = (
            p[f"{side}.{depth}.cells.0.{name}"]
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        )
        h, c, outputs = torch.zeros(P.shape[0]).double(), torch.zeros(P.shape[1]).double(), []
        for below in x:
            i, f, g, o = (W @ below + U @ h + b + d).chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            c = torch.clamp(c, -clip, clip)
            h = torch.clamp(P @ (o.sigmoid() * c.tanh()), -clip, clip)
            outputs.append(h + below if depth else h)
        layers.append(outputs)
        x = outputs
    return layers


def test_it_is_its_equations():
    model, words = elmo(), random_words()
    with torch.no_grad():
        model.mix.s.copy_(torch.tensor([0.3, -1.0, 0.8]))
        model.mix.gamma.fill_(1.7)
    p = {name: weight.detach() for name, weight in model.named_parameters()}
    weights = torch.tensor([0.3, -1.0, 0.8]).double().exp()
    encoded, forced = model.encode(words, VALID), model.teacher_forced(words, VALID)
    layers = model.all_layers(words, VALID)
    assert layers.shape == (3, 3, 4, 8)
    assert model.width == encoded.states.shape[-1] == 8
    assert encoded.valid.sum(1).tolist() == [4, 1, 0]
    for row, length in enumerate(LENGTHS):
        x = [vector(p, words[row, k]) for k in range(length)]
        ahead = layers_by_equation(p, "ahead", x, 0.4)
        back = [shown[::-1] for shown in layers_by_equation(p, "back", x[::-1], 0.4)]
        for k in range(1, length - 1):
            h = [torch.cat([x[k], x[k]])]
            h += [torch.cat([ahead[j][k], back[j][k]]) for j in range(2)]
            close(layers[row, :, k - 1], torch.stack(h))
            mixed = (
                sum(w * layer_state for w, layer_state in zip(weights, h, strict=True))
                / weights.sum()
                * 1.7
            )
            close(encoded.states[row, k - 1], mixed)
        for k in range(length - 1):
            close(forced.ahead[row, k], ahead[-1][k])
            close(forced.back[row, k], back[-1][k + 1])


def test_a_direction_is_torchs_lstm_where_nothing_is_clipped():
    model, words = elmo(state_clip=None, layers=1), random_words()[:1]
    torch_lstm = nn.LSTM(4, 5, batch_first=True, proj_size=4).double()
    for side in (model.ahead, model.back):
        side[0].load_torch_weights(torch_lstm)
    valid = VALID[:1]
    x = model.words(words[0])[None]
    forced = model.teacher_forced(words, valid)
    close(forced.ahead, torch_lstm(x)[0][:, :-1])
    close(forced.back, torch_lstm(x.flip(1))[0].flip(1)[:, 1:])


def test_no_direction_reads_the_word_it_predicts():
    """Word k changes neither the forward nor the backward state that predicts it."""
    model, words = elmo(), random_words()
    before = model.teacher_forced(words, VALID)
    for k in range(6):
        changed = words.clone()
        changed[0, k] = 1 + changed[0, k] % 8
        after = model.teacher_forced(changed, VALID)
        seen_ahead = (after.ahead[0] != before.ahead[0]).any(-1)  # index i predicts word i + 1
        seen_back = (after.back[0] != before.back[0]).any(-1)  # index i predicts word i
        assert seen_ahead.tolist() == [i + 1 > k for i in range(5)]
        assert seen_back.tolist() == [i < k for i in range(5)]


def test_the_loss_of_both_sides():
    model, words = elmo().train(), random_words()
    model.dropout = 0.0
    ids = torch.randint(7, (3, 6))
    ahead, back = model.teacher_forced(words, VALID)
    losses = [
        cross_entropy(model.output, ahead, ids[:, 1:], VALID[:, 1:]),
        cross_entropy(model.output, back, ids[:, :-1], VALID[:, 1:]),
    ]
    assert [loss.count for loss in losses] == [8, 8]
    expected = 0.0
    for row, length in enumerate(LENGTHS):
        for k in range(length - 1):
            expected -= model.logits(ahead[row, k]).log_softmax(0)[ids[row, k + 1]].item()
            expected -= model.logits(back[row, k]).log_softmax(0)[ids[row, k]].item()
    total = losses[0].total + losses[1].total
    assert total.item() == pytest.approx(expected)
    total.backward()
    for name, weight in model.named_parameters():
        if name.startswith("mix."):
            assert weight.grad is None
        else:
            assert weight.grad.isfinite().all(), name
            assert weight.grad.any(), name


@pytest.mark.parametrize("norm", [False, True])
def test_padding_and_other_rows_do_not_matter(norm, unchecked):
    model, words = elmo(layer_norm=norm), random_words()
    states, valid, _ = model.encode(words, VALID)
    longer = torch.cat([torch.where(VALID[..., None], words, 8), torch.full((3, 2, 4), 5)], 1)
    more = torch.cat([VALID, torch.zeros(3, 2, dtype=torch.bool)], 1)
    close(model.encode(longer, more).states[:, :4][valid], states[valid])
    for row, length in enumerate(LENGTHS):
        alone = model.encode(words[row : row + 1, :length], VALID[row : row + 1, :length])
        close(alone.states[0], states[row, : length - 2])


def test_an_even_mix_is_the_mean():
    layers = torch.randn(2, 3, 4, 5).double()
    mix = ScalarMix(3).double()
    close(mix(layers), layers.mean(1))
    normed = torch.stack([(h - h.mean(-1, keepdim=True)) for h in layers.unbind(1)], 1)
    normed = normed / (layers.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    close(ScalarMix(3, layer_norm=True).double()(layers), normed.mean(1))
    with pytest.raises(ValueError, match="layers must have 3 layers, not 2"):
        mix(layers[:, :2])


def test_gradients(unchecked):
    model = elmo(dim=2, hidden_dim=3)
    mix, rest = [model.mix.s, model.mix.gamma], model.back[1].stack[0].weight_hr
    words = random_words()[:2, :4]
    names = ("mix.s", "mix.gamma", "back.1.cells.0.weight_hr")

    def run(*tensors: Tensor) -> Tensor:
        named = {f"model.{n}": w for n, w in zip(names, tensors, strict=True)}
        return torch.func.functional_call(Encoding(model), named, (words, VALID[:2, :4]))

    tensors = [weight.detach().requires_grad_() for weight in (*mix, rest)]
    assert torch.autograd.gradcheck(run, tensors, fast_mode=True)


class Encoding(nn.Module):
    def __init__(self, model: Elmo):
        super().__init__()
        self.model = model

    def forward(self, words: Tensor, valid: Tensor) -> Tensor:
        return self.model.encode(words, valid).states


def test_size_is_the_published_one():
    """The paper: 93.6 million weights below the softmax, without torch's second LSTM bias."""
    with torch.device("meta"):
        model = Elmo(800_000)
    parts = {
        name: sum(p.numel() for p in part.parameters()) for name, part in model.named_children()
    }
    assert parts["mix"] == 4
    assert parts["output"] == 800_000 * 513
    total = parts["words"] + parts["ahead"] + parts["back"] - 4 * 4 * 4096
    assert total / 1e6 == pytest.approx(93.6, abs=0.05)


def test_highways_start_by_carrying():
    highway, x = Highway(64), torch.randn(50, 64)
    gate = highway.carry(0 * x).sigmoid()
    assert gate.mean().item() == pytest.approx(0.88, abs=0.01)
    open_ = Highway(64, carry_bias=40.0)
    torch.testing.assert_close(open_(x), x)


def test_dropout_drops_in_training_only(unchecked):
    model, words = elmo(dropout=0.5), random_words()
    assert torch.equal(model.encode(words, VALID).states, model.encode(words, VALID).states)
    model.train()
    first, second = model.teacher_forced(words, VALID), model.teacher_forced(words, VALID)
    assert not torch.equal(first.ahead, second.ahead)
    assert not torch.equal(first.back, second.back)


def test_wrong_settings_are_refused(unchecked):
    make = partial(Elmo, 5, **SMALL)
    with pytest.raises(ValueError, match=r"hidden_dim must be at least dim \(8\), not 4"):
        make(dim=8, hidden_dim=4)
    with pytest.raises(ValueError, match="layers must be positive, not 0"):
        make(dim=4, hidden_dim=8, layers=0)
    with pytest.raises(ValueError, match="filters is empty"):
        CharacterCNN(9, 4, filters=())
    with pytest.raises(ValueError, match="filters: width must be positive, not 0"):
        CharacterCNN(9, 4, filters=((0, 3),))
    with pytest.raises(ValueError, match="words have 2 characters, but the widest filter has 3"):
        CharacterCNN(9, 4, filters=((3, 2),))(torch.ones(1, 2, dtype=torch.long))
    with pytest.raises(ValueError, match=r"valid has shape \(3, 5\), which does not fit"):
        elmo().encode(random_words(), VALID[:, :5])
    assert make(dim=4, hidden_dim=4).ahead[0].stack[0].weight_hr is None
