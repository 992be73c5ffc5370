"""The bidirectional encoder against torch.nn and loops."""

import pytest
import torch
from torch import nn

from regard.attention.observe import observe
from regard.models.birnn import BiRnn

IDS = torch.tensor([[5, 3, 6, 4], [4, 6, 0, 0], [3, 0, 0, 0]])
VALID = IDS != 0
TORCH_LAYERS = {"lstm": nn.LSTM, "gru": nn.GRU, "elman": nn.RNN}


def with_random_weights(model):
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


@pytest.mark.parametrize("cell", TORCH_LAYERS)
@pytest.mark.parametrize(("layers", "bidirectional"), [(1, True), (2, True), (2, False)])
def test_states_are_those_of_torch(cell, layers, bidirectional):
    model = with_random_weights(
        BiRnn(7, cell=cell, dim=3, hidden_dim=4, layers=layers, bidirectional=bidirectional)
    )
    torch_layer = TORCH_LAYERS[cell](
        3, 4, layers, batch_first=True, bidirectional=bidirectional
    ).double()
    model.recurrent.load_torch_weights(torch_layer)
    encoded = model.encode(IDS, VALID)
    assert model.width == encoded.states.shape[-1] == (8 if bidirectional else 4)
    for row, length in enumerate(VALID.sum(1).tolist()):
        alone, _ = torch_layer(model.words.weight[IDS[row : row + 1, :length]])
        torch.testing.assert_close(encoded.states[row, :length], alone[0], rtol=1e-10, atol=1e-12)
    assert torch.equal(encoded.valid, VALID)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_last_pooling_is_the_final_state_of_each_direction(cell, bidirectional):
    settings = {"cell": cell, "layers": 2, "bidirectional": bidirectional}
    model = with_random_weights(BiRnn(7, dim=3, hidden_dim=4, pooling="last", **settings))
    _, state = model.recurrent(model.words(IDS), VALID)
    ends = state[0][-2:] if bidirectional else state[0][-1:]
    torch.testing.assert_close(model.encode(IDS, VALID).pooled, torch.cat([*ends], -1))


def test_attention_is_that_of_the_paper():
    """Lin et al. 2017, eq. 5-7, with the bias of the score; `observe` records its weights."""
    model = with_random_weights(BiRnn(7, dim=3, hidden_dim=4, align_dim=5, hops=2))
    p = {name: weight.detach() for name, weight in model.pooling.named_parameters()}
    with observe(model) as recorded:
        encoded = model.encode(IDS, VALID)
    assert set(recorded) == {"pooling"}
    for row, length in enumerate(VALID.sum(1).tolist()):
        H = encoded.states[row, :length]
        hidden = torch.tanh(
            H @ p["attention.score.of_key.weight"].T + p["attention.score.of_key.bias"]
        )
        A = (hidden @ p["query"].T).softmax(0).T  # [hops, words]
        torch.testing.assert_close(encoded.pooled[row], (A @ H).flatten())
        torch.testing.assert_close(recorded.joined()["pooling"][row, :, :length], A)
        assert not recorded.joined()["pooling"][row, :, length:].any()
    assert model.pooled_width == encoded.pooled.shape[-1] == 16


@pytest.mark.parametrize("pooling", ["last", "mean", "max", "attention"])
@pytest.mark.parametrize("training", [False, True])
def test_padding_and_other_rows_do_not_matter(pooling, training):
    model = with_random_weights(BiRnn(7, dim=3, hidden_dim=4, layers=2, pooling=pooling)).train(
        training
    )
    together = model.encode(IDS, VALID)
    for row, length in enumerate(VALID.sum(1).tolist()):
        alone = model.encode(IDS[row : row + 1, :length], VALID[row : row + 1, :length])
        torch.testing.assert_close(together.pooled[row], alone.pooled[0], rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(together.states[row, :length], alone.states[0])
    changed = model.encode(IDS.masked_fill(~VALID, 6), VALID)
    torch.testing.assert_close(changed.pooled, together.pooled, rtol=0, atol=0)


@pytest.mark.parametrize("pooling", ["last", "mean", "max", "attention"])
def test_a_text_without_a_word(pooling):
    model = BiRnn(7, dim=3, hidden_dim=4, pooling=pooling)
    valid = torch.tensor([[True] * 4, [False] * 4, [True, False, False, False]])
    encoded = model.encode(IDS, valid)
    assert not encoded.pooled[1].any()
    (encoded.pooled**2).sum().backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())


def test_dropout_is_for_training():
    model = BiRnn(7, dim=8, hidden_dim=8, layers=2, dropout=0.5, state_dropout=0.3)
    first, second = (model.encode(IDS, VALID).pooled for _ in range(2))
    assert not torch.equal(first, second)
    model.eval()
    first, second = (model.encode(IDS, VALID).pooled for _ in range(2))
    assert torch.equal(first, second)


def test_wrong_settings_are_refused(unchecked):
    with pytest.raises(ValueError, match="cell must be one of lstm, gru, elman, not 'rnn'"):
        BiRnn(5, cell="rnn")
    with pytest.raises(ValueError, match=r"pooling must be one of last, mean, .*, not 'first'"):
        BiRnn(5, pooling="first")
    with pytest.raises(ValueError, match="hops 2 needs pooling='attention', not 'mean'"):
        BiRnn(5, pooling="mean", hops=2)
    with pytest.raises(ValueError, match="hops must be positive, not 0"):
        BiRnn(5, hops=0)
