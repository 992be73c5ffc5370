"""HAN against a loop written from section 2 of the paper."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from regard.attention.observe import observe
from regard.models.han import Han, scatter_rows

DOCUMENTS = [[[5, 3, 6], [4]], [[6, 6], [3, 4, 5, 6], [5]], [[4]]]
SIZE = 7


def with_random_weights(model: Han) -> Han:
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


def small(**more) -> Han:
    return with_random_weights(Han(SIZE, **{"dim": 3, "hidden_dim": 4, "align_dim": 5, **more}))


def padded(documents: list[list[list[int]]], sentences: int = 0, words: int = 0):
    """Return padded ids and a mask, with a minimum number of sentences and words."""
    sentences = max(sentences, *(len(document) for document in documents))
    words = max(words, *(len(sentence) for document in documents for sentence in document))
    ids = torch.full((len(documents), sentences, words), SIZE - 1)
    valid = torch.zeros_like(ids, dtype=torch.bool)
    for row, document in enumerate(documents):
        for place, sentence in enumerate(document):
            ids[row, place, : len(sentence)] = torch.tensor(sentence)
            valid[row, place, : len(sentence)] = True
    return ids, valid


def gru(p: dict[str, Tensor], x: Tensor, h: Tensor) -> Tensor:
    """Compute eq. 1-4, with the gate that keeps, 1 - z, instead of z, and torch's second bias."""
    W_r, W_z, W_h = p["weight_ih"].chunk(3)
    U_r, U_z, U_h = p["weight_hh"].chunk(3)
    (b_r, b_z, b_h), (d_r, d_z, d_h) = p["bias_ih"].chunk(3), p["bias_hh"].chunk(3)
    z = 1 - torch.sigmoid(W_z @ x + U_z @ h + b_z + d_z)
    r = torch.sigmoid(W_r @ x + U_r @ h + b_r + d_r)
    new = torch.tanh(W_h @ x + r * (U_h @ h + d_h) + b_h)
    return (1 - z) * h + z * new


def level(p: dict[str, Tensor], name: str, vectors: list[Tensor]) -> tuple[list[Tensor], Tensor]:
    """Return the states of one level, and the weights of its attention."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    sides = []
    for side, order in ((0, 1), (1, -1)):
        cell = {n: p[f"{name}_recurrent.cells.{side}.{n}"] for n in names}
        h, outputs = torch.zeros(4, dtype=torch.float64), []
        for x in vectors[::order]:
            h = gru(cell, x, h)
            outputs.append(h)
        sides.append(outputs[::order])
    states = [torch.cat(pair) for pair in zip(*sides, strict=True)]
    W, b = (p[f"{name}_attention.attention.score.of_key.{n}"] for n in ("weight", "bias"))
    u = p[f"{name}_attention.query"][0]
    energy = torch.stack([torch.tanh(W @ h + b) @ u for h in states])
    return states, energy.exp() / energy.exp().sum()


def by_the_equations(model: Han, document: list[list[int]]):
    """Return sentence states, document vector, weights of sentences, and weights of words."""
    p = {name: weight.detach() for name, weight in model.named_parameters()}
    vectors, word_weights = [], []
    for sentence in document:
        states, alpha = level(p, "word", [p["words.weight"][word] for word in sentence])
        vectors.append(sum(a * h for a, h in zip(alpha, states, strict=True)))
        word_weights.append(alpha)
    states, alpha = level(p, "sentence", vectors)
    return states, sum(a * h for a, h in zip(alpha, states, strict=True)), alpha, word_weights


def test_it_is_its_equations():
    """Compare a batch of documents of unequal shapes, and both levels of attention."""
    model = small()
    ids, valid = padded(DOCUMENTS)
    with observe(model) as recorded:
        encoded = model.encode(ids, valid)
    assert set(recorded) == {"word_attention", "sentence_attention"}
    there = valid.any(-1)
    of_words = scatter_rows(recorded.joined()["word_attention"], there)[:, :, 0]
    of_sentences = recorded.joined()["sentence_attention"][:, 0]
    for row, document in enumerate(DOCUMENTS):
        states, vector, alpha, word_weights = by_the_equations(model, document)
        close = {"rtol": 1e-10, "atol": 1e-12}
        torch.testing.assert_close(
            encoded.states[row, : len(document)], torch.stack(states), **close
        )
        torch.testing.assert_close(encoded.pooled[row], vector, **close)
        torch.testing.assert_close(of_sentences[row, : len(document)], alpha, **close)
        for place, weights in enumerate(word_weights):
            torch.testing.assert_close(of_words[row, place, : len(weights)], weights, **close)
    assert not of_words[~valid].any()
    assert not of_sentences[~there].any()
    assert torch.equal(encoded.valid, there)
    assert model.width == model.pooled_width == encoded.states.shape[-1] == 8


def test_the_ablation_has_means():
    """HN-AVE: means instead of attention at both levels."""
    model = small(pooling="mean")
    ids, valid = padded(DOCUMENTS)
    encoded = model.encode(ids, valid)
    for row, document in enumerate(DOCUMENTS):
        words = [model.word_recurrent(model.words(torch.tensor([s])))[0].mean(1) for s in document]
        states, _ = model.sentence_recurrent(torch.stack(words, 1))
        torch.testing.assert_close(encoded.pooled[row], states[0].mean(0))
    with pytest.raises(ValueError, match="model Han has no attention to observe"), observe(model):
        pass


documents = st.lists(
    st.lists(st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=3), min_size=1, max_size=3),
    min_size=1,
    max_size=3,
)


@settings(max_examples=10)
@given(documents, st.integers(0, 5), st.integers(0, 5), st.sampled_from(["attention", "mean"]))
def test_padding_and_other_documents_do_not_matter(batch, sentences, words, pooling):
    """A document gives the same result alone and in any padded batch."""
    model = small(pooling=pooling)
    together = model.encode(*padded(batch, sentences, words))
    for row, document in enumerate(batch):
        alone = model.encode(*padded([document]))
        close = {"rtol": 1e-10, "atol": 1e-12}
        torch.testing.assert_close(together.pooled[row], alone.pooled[0], **close)
        torch.testing.assert_close(together.states[row, : len(document)], alone.states[0], **close)
        assert not together.states[row, len(document) :].any()


@pytest.mark.parametrize("training", [False, True])
def test_an_empty_sentence_is_skipped(training):
    model = small().train(training)
    first, second = [5, 3, 6], [4, 4]
    full = model.encode(*padded([[first, second]]))
    gaps = model.encode(*padded([[[], first, [], second, []]]))
    torch.testing.assert_close(gaps.pooled, full.pooled, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(gaps.states[:, [1, 3]], full.states, rtol=1e-10, atol=1e-12)
    assert not gaps.states[:, [0, 2, 4]].any()
    assert gaps.valid.tolist() == [[False, True, False, True, False]]


@pytest.mark.parametrize("pooling", ["attention", "mean"])
@pytest.mark.parametrize("batch", [[[[]], [[5, 3], [4]]], [[[]], [[], []]]])
def test_an_empty_document_reads_zeros_with_finite_gradients(pooling, batch):
    model = Han(SIZE, dim=3, hidden_dim=4, pooling=pooling)
    ids, valid = padded(batch, sentences=2, words=2)
    encoded = model.encode(ids, valid)
    assert not encoded.pooled[0].any()
    head = nn.Linear(8, 2)
    head(encoded.pooled).square().sum().backward()
    for weight in model.parameters():
        assert weight.grad is None or weight.grad.isfinite().all()


def test_empty_sentences_are_not_computed(monkeypatch):
    """Only sentences with words are computed."""
    model, batch_sizes = small(), []
    read = model.word_recurrent.forward
    monkeypatch.setattr(
        model.word_recurrent,
        "forward",
        lambda x, valid: batch_sizes.append(len(x)) or read(x, valid),
    )
    model.encode(*padded(DOCUMENTS, sentences=50))
    assert batch_sizes == [6]


def test_the_sizes_of_the_paper():
    model = Han(10)
    shapes = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    assert shapes["words.weight"] == (10, 200)
    assert shapes["word_recurrent.cells.0.weight_hh"] == (150, 50)
    assert shapes["sentence_recurrent.cells.1.weight_ih"] == (150, 100)
    assert shapes["word_attention.query"] == shapes["sentence_attention.query"] == (1, 100)


def test_wrong_settings_are_refused(unchecked):
    with pytest.raises(ValueError, match="pooling must be 'attention' or 'mean', not 'max'"):
        Han(5, pooling="max")
    with pytest.raises(ValueError, match="dropout must be in"):
        Han(5, dropout=1.0)
