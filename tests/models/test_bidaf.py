"""BiDAF against a loop in float64 that follows the equations of its paper."""

import pytest
import torch
from torch import nn

from regard.attention.observe import observe
from regard.attention.scores import Trilinear
from regard.models.bidaf import Bidaf
from regard.text.spelling import spell

IDS = torch.tensor([[5, 3, 6, 4, 5], [4, 6, 0, 0, 0], [3, 5, 4, 0, 0]])
QUESTIONS = torch.tensor([[3, 0, 0], [6, 4, 5], [5, 3, 0]])
NAMES = {0: "", 3: "c", 4: "b", 5: "ab", 6: "abc"}
SIZES = {
    "dim": 3,
    "hidden_dim": 4,
    "character_dim": 2,
    "filters": ((3, 5),),
    "character_output_dim": 2,
}


def letters(ids):
    return torch.tensor([[spell(NAMES[n], 9) for n in row] for row in ids.tolist()])


def inputs():
    sides = {"": IDS, "question_": QUESTIONS}
    return {
        f"{name}{part}": convert(ids)
        for name, ids in sides.items()
        for part, convert in {
            "ids": lambda ids: ids,
            "characters": letters,
            "valid": lambda ids: ids != 0,
        }.items()
    }


def random_model(**more):
    model = Bidaf(7, **SIZES, **more)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


def lstm(layer, width: int, layers: int = 1):
    torch_lstm = nn.LSTM(width, 4, layers, batch_first=True, bidirectional=True).double()
    layer.load_torch_weights(torch_lstm)
    return lambda rows: torch_lstm(torch.stack(rows)[None])[0][0]


def sigmoid(x):
    return 1 / (1 + torch.exp(-x))


def vector(model, number: int):
    """Return the vector of a word: characters, embedding, and two highway layers."""
    parts = []
    if model.letters is not None:
        cnn, window = model.letters, model.letters.windows[0]
        spelled = cnn.characters.weight[torch.tensor(spell(NAMES[number], 9))]
        places = [
            (window.weight * spelled[k : k + 3].T).sum((1, 2)) + window.bias for k in range(7)
        ]
        greatest = torch.stack(places).amax(0).clamp(min=0)
        parts.append(cnn.project.weight @ greatest + cnn.project.bias)
    if model.words is not None:
        parts.append(model.words.weight[number])
    x = torch.cat(parts)
    for highway in model.highways:
        gate = sigmoid(highway.carry.weight @ x + highway.carry.bias)
        change = (highway.change.weight @ x + highway.change.bias).clamp(min=0)
        x = gate * x + (1 - gate) * change
    return x


def softmax(energies):
    e = [torch.exp(energy - max(energies)) for energy in energies]
    return [energy / sum(e) for energy in e]


@pytest.mark.parametrize("without", [None, "use_words", "use_characters", "c2q", "q2c"])
@torch.no_grad()
def test_the_equations_of_the_paper(without):
    model = random_model(**({} if without is None else {without: False}))
    read = lstm(model.recurrent, {"use_words": 2, "use_characters": 3}.get(without, 5))
    modeling = lstm(model.modeling, 24 if without == "q2c" else 32, 2)
    ending = lstm(model.ending, 8)
    w = model.c2q.score.weight.flatten()
    with observe(model) as recorded:
        encoded = model.encode(**inputs())
    recorded = recorded.joined()
    assert set(recorded) == {"c2q", "q2c"} - {without}
    for row, (ids, question) in enumerate(zip(IDS.tolist(), QUESTIONS.tolist(), strict=True)):
        h = read([vector(model, n) for n in ids if n])
        u = read([vector(model, n) for n in question if n])
        s = [[w @ torch.cat([one, other, one * other]) for other in u] for one in h]
        b = softmax([max(energies) for energies in s])
        summary = sum(b[t] * h[t] for t in range(len(h)))
        g = []
        for t in range(len(h)):
            a = softmax(s[t])
            ours = sum(a[j] * u[j] for j in range(len(u)))
            if without == "c2q":
                ours = sum(u) / len(u)
            else:
                torch.testing.assert_close(recorded["c2q"][row, t, : len(u)], torch.stack(a))
                assert not recorded["c2q"][row, t, len(u) :].any()
            last = [] if without == "q2c" else [h[t] * summary]
            g.append(torch.cat([h[t], ours, h[t] * ours, *last]))
        if without != "q2c":
            torch.testing.assert_close(recorded["q2c"][row, 0, : len(h)], torch.stack(b))
        m = modeling(g)
        m2 = ending(list(m))
        for states, one in ((encoded.states, m), (encoded.ends, m2)):
            true = torch.cat([torch.stack(g), one], -1)
            torch.testing.assert_close(states[row, : len(h)], true, rtol=1e-9, atol=1e-11)


def test_trilinear_is_one_product():
    score = Trilinear(4).double()
    query, states = torch.randn(2, 3, 4).double(), torch.randn(2, 5, 4).double()
    keys = score.prepare(states)
    energies = score(query, keys)
    w = score.weight.flatten()
    for b in range(2):
        for i in range(3):
            for j in range(5):
                pair = query[b, i], states[b, j]
                torch.testing.assert_close(
                    energies[b, i, j], w @ torch.cat([*pair, pair[0] * pair[1]])
                )


def test_padding_and_other_rows_do_not_matter():
    model = random_model()
    batch = inputs()
    together = model.encode(**batch)
    for row in range(3):
        length, question_length = (int((tensor[row] != 0).sum()) for tensor in (IDS, QUESTIONS))
        alone = model.encode(
            **{
                name: tensor[
                    row : row + 1, : question_length if name.startswith("question") else length
                ]
                for name, tensor in batch.items()
            }
        )
        torch.testing.assert_close(together.states[row, :length], alone.states[0])
        torch.testing.assert_close(together.ends[row, :length], alone.ends[0])


def test_gradients_reach_every_weight():
    model = Bidaf(7, **SIZES)
    encoded = model.encode(**inputs())
    (encoded.states.sum() + encoded.ends.sum()).backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name


def test_invalid_arguments_are_rejected():
    with pytest.raises(ValueError, match="the model needs one of them"):
        Bidaf(7, use_words=False, use_characters=False)
    batch = inputs()
    batch["question_valid"] = batch["question_valid"] & (torch.arange(3)[:, None] > 0)
    with pytest.raises(ValueError, match="question_valid has a row without a real word"):
        Bidaf(7, **SIZES).encode(**batch)
