"""The record of attention: from any arrays, by words, rolled out, kept in a file."""

import numpy as np
import pytest
import torch

import regard
from regard.view.attention_map import AttentionMap


def softmax(*shape, seed=0):
    draws = np.exp(np.random.default_rng(seed).normal(size=shape))
    return (draws / draws.sum(-1, keepdims=True)).astype(np.float32)


def test_from_anywhere():
    """One matrix, heads, layers, tensors of one example, a mapping by name."""
    words, whole = ["a", "b", "c"], softmax(2, 4, 3, 3)
    assert [len(AttentionMap(w, words).layers) for w in (whole[0, 0], whole[0], whole)] == [1, 1, 2]
    tensors = tuple(torch.from_numpy(layer)[None].requires_grad_() for layer in whole)
    found = regard.AttentionMap(tensors, words)
    assert [one.name for one in found.layers] == ["layer 1", "layer 2"]
    assert [one.heads for one in found.layers] == [4, 4]
    assert found.layers[1].kind == "self"
    np.testing.assert_array_equal(found.layers[1].weights, whole[1])
    named = AttentionMap({"encoder.0": whole[0]}, words, ["x", "y", "z"])
    assert named.layers[0].name == "encoder.0"
    assert named.layers[0].kind == "cross"


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (softmax(2, 2), "weights are 2 x 2, but there are 3 queries and 3 keys"),
        (softmax(3, 3) * 2, "a row sums to 2.000, more than 1"),
        (softmax(3, 3) * np.nan, "weights must be finite, and 0 or more"),
        (softmax(2, 2, 4, 3, 3), "must have the shape"),
        ([], "weights"),
    ],
)
def test_what_is_no_attention(weights, message):
    with pytest.raises(ValueError, match=message):
        AttentionMap(weights, ["a", "b", "c"])


def test_an_unknown_kind(unchecked):
    with pytest.raises(ValueError, match="kind must be one of self"):
        AttentionMap(softmax(1, 1), ["a"], kind="other")


def test_words_sum_to_one():
    """Against a loop: a word's row is the mean of its pieces', its column their sum."""
    weights, word = softmax(2, 3, 5, 5), (0, 0, 1, 2, 2)
    tokens = ["un", "##do", "it", "Ġnow", "!"]
    found = AttentionMap(weights, tokens, word_ids=(word, word)).merge_subwords()
    assert found.queries.tokens == ("undo", "it", "now!")
    for layer, plain in zip(found.layers, weights, strict=True):
        for q in range(3):
            for k in range(3):
                rows = [n for n in range(5) if word[n] == q]
                columns = [n for n in range(5) if word[n] == k]
                wanted = np.mean([plain[:, r, columns].sum(-1) for r in rows], 0)
                np.testing.assert_allclose(layer.weights[:, q, k], wanted, rtol=1e-5)
        np.testing.assert_allclose(layer.weights.sum(-1), 1, rtol=1e-5)
    for wrong in ((0, 2, 3, 4, 5), (0, 0, 1), (1, 0, 1, 2, 2)):
        with pytest.raises(ValueError, match=r"word_ids (must be equal or rise|has 3 numbers)"):
            AttentionMap(weights, tokens, word_ids=(wrong, word))


def test_rollout():
    weights = softmax(2, 3, 4, 4).astype(np.float64)
    found = AttentionMap(weights, list("abcd")).rollout()
    first = (weights[0].mean(0) + np.eye(4)) / 2
    second = (weights[1].mean(0) + np.eye(4)) / 2
    np.testing.assert_allclose(found.layers[1].weights[0], second @ first, rtol=1e-5)
    np.testing.assert_allclose(found.layers[1].weights.sum(-1), 1, rtol=1e-5)
    with pytest.raises(ValueError, match="rollout needs self-attention"):
        AttentionMap(softmax(2, 3), ["a", "b"], ["x", "y", "z"]).rollout()


def test_mean_entropy_and_distance():
    even, sharp = np.full((3, 3), 1 / 3), np.eye(3)[[2, 2, 2]]
    found = AttentionMap(np.stack([even, sharp])[None], list("abc"))
    np.testing.assert_allclose(found.mean().layers[0].weights[0], (even + sharp) / 2, rtol=1e-6)
    [bits] = found.entropy()
    np.testing.assert_allclose(bits, [np.log2(3), 0], atol=1e-6)
    [tokens] = found.distance()
    np.testing.assert_allclose(tokens, [8 / 9, 1], rtol=1e-6)


def test_kept(tmp_path):
    words = ["</script>", "\x1b[31m", "日本"]
    saved = AttentionMap(softmax(2, 2, 3, 3), words, word_ids=((0, 0, 1), (0, 1, 2)), title="t")
    saved.save(tmp_path / "map.npz")
    found = AttentionMap.load(tmp_path / "map.npz")
    assert (found.queries, found.keys, found.title) == (saved.queries, saved.keys, "t")
    for mine, theirs in zip(found.layers, saved.layers, strict=True):
        assert (mine.name, mine.kind) == (theirs.name, theirs.kind)
        np.testing.assert_allclose(mine.weights, theirs.weights, atol=1e-3)
    (tmp_path / "other.npz").write_bytes(b"no map")
    with pytest.raises(ValueError, match=r"other\.npz: not an attention map"):
        AttentionMap.load(tmp_path / "other.npz")
