"""Structure of heads, readable names of layers, and scales without false peaks."""

import numpy as np
import pytest

from regard.view.attention_map import AttentionMap
from regard.view.layer_names import layer_label
from regard.view.picture import picture_bytes
from regard.view.structure import clearest_head, scale_top, structure_bits

TOKENS = ["a", "b", "c", "d"]
EVEN = np.full((4, 4), 0.25)
SAME_KEY = np.tile([[0.0, 0.0, 0.0, 1.0]], (4, 1))  # sharp, and equal in all rows
PAIRS = np.kron(np.eye(2), np.full((2, 2), 0.5))


def test_structure_is_the_information_between_queries_and_keys():
    heads = AttentionMap(np.stack([EVEN, SAME_KEY, PAIRS, np.eye(4)]), TOKENS).layers[0]
    np.testing.assert_allclose(structure_bits(heads), [0, 0, 1, 2], atol=1e-6)


def test_structure_of_one_row_is_its_distance_from_equal_weights():
    pooled = np.array([[[0.25] * 4], [[1.0, 0, 0, 0]]])
    layer = AttentionMap(pooled, ["(the text)"], TOKENS, kind="pool").layers[0]
    np.testing.assert_allclose(structure_bits(layer), [0, 2], atol=1e-6)
    grid = np.stack([EVEN / 4, np.eye(4) / 4])
    layer = AttentionMap(grid, TOKENS, TOKENS, kind="grid").layers[0]
    np.testing.assert_allclose(structure_bits(layer), [0, 2], atol=1e-6)


def test_the_clearest_head():
    layers = {"x": np.stack([EVEN, SAME_KEY]), "y": np.stack([PAIRS, np.eye(4), np.eye(4)])}
    assert clearest_head(AttentionMap(layers, TOKENS)) == (1, 1, pytest.approx(2))
    assert clearest_head(AttentionMap(np.zeros((1, 0, 0)), [])) == (0, 0, 0)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("decoder.layers.0.cross_attention", "Decoder 1, cross-attention"),
        ("encoder.encoder.layers.11.self_attention", "Encoder 12, self-attention"),
        ("decoder.0.cross", "Decoder 1, cross-attention"),
        ("encoder.0", "Encoder 1"),
        ("layers.0", "Layer 1"),
        ("learner.layers.4", "Layer 5"),
        ("encoder.blocks.1.edges.0.look", "Encoder 2, edges 1"),
        ("encoder.word_attention", "Encoder, word attention"),
        ("encoder.c2q", "Encoder, context to question"),
        ("attention", "Attention"),
        ("0.attention", "0.attention"),
        ("layer 2", "layer 2"),
        ("3 ring", "3 ring"),
    ],
)
def test_labels_of_layers(name, label):
    assert layer_label(name) == label


def test_nearly_equal_weights_are_no_peak():
    assert scale_top(0.07, even_weight=1 / 16) == 0.25
    assert scale_top(0.9, even_weight=1 / 16) == 0.9
    assert scale_top(0.6, even_weight=1 / 2) == 1.0
    assert scale_top(0.0, even_weight=0.0) == 1.0


def test_a_plot_of_equal_patches_is_paler_than_one_of_a_peak():
    even, peak = np.full((1, 4, 4), 1 / 16), np.zeros((1, 4, 4))
    peak[0, 0, 0] = 1.0
    pictures = [
        picture_bytes(AttentionMap(table, TOKENS, TOKENS, kind="grid"), style="heads")
        for table in (even, peak)
    ]
    assert darkest_shades(pictures[0]) > darkest_shades(pictures[1]) + 50


def darkest_shades(png: bytes) -> float:
    """Return the shade below which a hundredth of the pixels lie."""
    from io import BytesIO

    from PIL import Image

    return float(np.quantile(np.asarray(Image.open(BytesIO(png)).convert("L")), 0.01))
