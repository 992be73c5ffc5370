"""The encoders of words that are to be named, against loops from the equations."""

import pytest
import torch
from torch import nn

from regard.attention.observe import observe
from regard.models.bilstm_crf import BilstmCrf
from regard.models.birnn_attention import BiRnnAttention
from regard.text.spelling import spell

IDS = torch.tensor([[5, 3, 6, 4], [4, 6, 0, 0], [3, 0, 0, 0]])
VALID = IDS != 0
WORDS = [["ab", "c", "abc", "b"], ["b", "abc", "", ""], ["c", "", "", ""]]
LETTERS = torch.tensor([[spell(word, 9) for word in row] for row in WORDS])


def wide(model):
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


def test_words_look_at_each_other():
    """Liu & Lane 2016, 3.2: h_i asks all h_j, and both are shown."""
    model = wide(BiRnnAttention(7, dim=3, hidden_dim=4))
    theirs = nn.LSTM(3, 4, batch_first=True, bidirectional=True).double()
    model.recurrent.load_torch_weights(theirs)
    p = {name: weight.detach() for name, weight in model.attention.score.named_parameters()}
    with observe(model) as seen:
        found = model.encode(IDS, VALID)
    assert set(seen) == {"attention", "pooling"}
    assert (model.width, model.pooled_width) == (16, 8)
    for row, length in enumerate(VALID.sum(1).tolist()):
        h, _ = theirs(model.words.weight[IDS[row : row + 1, :length]])
        for i in range(length):
            asked = p["of_query.weight"] @ h[0, i]
            energy = torch.stack(
                [
                    p["energy"] @ torch.tanh(asked + p["of_key.weight"] @ h[0, j])
                    for j in range(length)
                ]
            )
            a = energy.softmax(0)
            torch.testing.assert_close(seen.joined()["attention"][row, i, :length], a)
            context = sum(a[j] * h[0, j] for j in range(length))
            shown = torch.cat([h[0, i], context])
            torch.testing.assert_close(found.states[row, i], shown, rtol=1e-10, atol=1e-12)


def test_words_and_letters():
    """Ma & Hovy 2016: the greatest of each convolution beside the word's vector."""
    sizes = {
        "dim": 3,
        "hidden_dim": 4,
        "character_dim": 2,
        "filters": ((3, 5),),
        "character_output_dim": 2,
    }
    model = wide(BilstmCrf(7, **sizes))
    theirs = nn.LSTM(5, 4, batch_first=True, bidirectional=True).double()
    model.recurrent.load_torch_weights(theirs)
    found = model.encode(IDS, LETTERS, VALID)
    cnn = model.letters
    window = cnn.windows[0]
    for row, length in enumerate(VALID.sum(1).tolist()):
        read = []
        for i in range(length):
            letters = cnn.characters.weight[LETTERS[row, i]]  # [9, 2]
            places = torch.stack(
                [(window.weight * letters[k : k + 3].T).sum((1, 2)) + window.bias for k in range(7)]
            )
            greatest = places.amax(0).relu()
            letter = cnn.project.weight @ greatest + cnn.project.bias
            read.append(torch.cat([model.words.weight[IDS[row, i]], letter]))
        alone, _ = theirs(torch.stack(read)[None])
        torch.testing.assert_close(found.states[row, :length], alone[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["birnn_attention", "bilstm_crf"])
def test_padding_and_company_never_matter(kind):
    model = wide(BiRnnAttention(7, dim=3) if kind == "birnn_attention" else BilstmCrf(7, dim=3))
    more = [LETTERS] if kind == "bilstm_crf" else []
    together = model.encode(IDS, *more, VALID)
    for row, length in enumerate(VALID.sum(1).tolist()):
        some = slice(row, row + 1), slice(0, length)
        alone = model.encode(IDS[some], *(one[some] for one in more), VALID[some])
        torch.testing.assert_close(together.states[row, :length], alone.states[0])
