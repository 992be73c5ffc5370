"""Encoders for tagging against loops from the equations."""

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


def with_random_weights(model):
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


def test_attention_between_words():
    """Liu & Lane 2016, 3.2: h_i attends to all h_j, and states are [h_i; c_i]."""
    model = with_random_weights(BiRnnAttention(7, dim=3, hidden_dim=4))
    torch_lstm = nn.LSTM(3, 4, batch_first=True, bidirectional=True).double()
    model.recurrent.load_torch_weights(torch_lstm)
    p = {name: weight.detach() for name, weight in model.attention.score.named_parameters()}
    with observe(model) as recorded:
        encoded = model.encode(IDS, VALID)
    assert set(recorded) == {"attention", "pooling"}
    assert (model.width, model.pooled_width) == (16, 8)
    for row, length in enumerate(VALID.sum(1).tolist()):
        h, _ = torch_lstm(model.words.weight[IDS[row : row + 1, :length]])
        for i in range(length):
            query = p["of_query.weight"] @ h[0, i]
            energy = torch.stack(
                [
                    p["energy"] @ torch.tanh(query + p["of_key.weight"] @ h[0, j])
                    for j in range(length)
                ]
            )
            a = energy.softmax(0)
            torch.testing.assert_close(recorded.joined()["attention"][row, i, :length], a)
            context = sum(a[j] * h[0, j] for j in range(length))
            expected = torch.cat([h[0, i], context])
            torch.testing.assert_close(encoded.states[row, i], expected, rtol=1e-10, atol=1e-12)


def test_words_and_letters():
    """Ma & Hovy 2016: the maximum of each convolution, concatenated to the word vector."""
    sizes = {
        "dim": 3,
        "hidden_dim": 4,
        "character_dim": 2,
        "filters": ((3, 5),),
        "character_output_dim": 2,
    }
    model = with_random_weights(BilstmCrf(7, **sizes))
    torch_lstm = nn.LSTM(5, 4, batch_first=True, bidirectional=True).double()
    model.recurrent.load_torch_weights(torch_lstm)
    encoded = model.encode(IDS, LETTERS, VALID)
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
        alone, _ = torch_lstm(torch.stack(read)[None])
        torch.testing.assert_close(encoded.states[row, :length], alone[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["birnn_attention", "bilstm_crf"])
def test_padding_and_other_rows_do_not_matter(kind):
    model = with_random_weights(
        BiRnnAttention(7, dim=3) if kind == "birnn_attention" else BilstmCrf(7, dim=3)
    )
    more = [LETTERS] if kind == "bilstm_crf" else []
    together = model.encode(IDS, *more, VALID)
    for row, length in enumerate(VALID.sum(1).tolist()):
        real = slice(row, row + 1), slice(0, length)
        alone = model.encode(IDS[real], *(tensor[real] for tensor in more), VALID[real])
        torch.testing.assert_close(together.states[row, :length], alone.states[0])
