"""Maps in files: what is written is what was seen, and no token is obeyed."""

import csv
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import rc_context

from regard.view.attention_map import AttentionMap, infer_word_ids
from regard.view.export import as_csv, as_pharaoh, as_tikz, build_serializer, escape_tex
from regard.view.picture import default_style, picture_bytes

PAIR = AttentionMap(
    np.array([[[0.75, 0.25, 0.0], [0.0, 0.5, 0.5]], [[0.25, 0.75, 0.0], [0.0, 0.0, 1.0]]]),
    ["a", "dog"],
    ["ein", "Hund", "."],
    title="ein Hund. -> a dog",
)


@pytest.mark.parametrize("ending", [".npz", ".json"])
def test_what_is_saved_comes_back(ending, tmp_path):
    PAIR.save(tmp_path / f"map{ending}")
    found = AttentionMap.load(tmp_path / f"map{ending}")
    assert (found.queries, found.keys, found.title) == (PAIR.queries, PAIR.keys, PAIR.title)
    np.testing.assert_array_equal(found.layers[0].weights, PAIR.layers[0].weights)


@pytest.mark.parametrize("ending", [".npz", ".json"])
def test_what_is_no_map_is_told(ending, tmp_path):
    (tmp_path / f"map{ending}").write_text('{"version": 7, "layers": []}')
    with pytest.raises(ValueError, match="not an attention map"):
        AttentionMap.load(tmp_path / f"map{ending}")


def test_an_unknown_ending_names_those_that_there_are(tmp_path):
    with pytest.raises(ValueError, match=r"map.gif: a map must end in one of .html, .png"):
        build_serializer(tmp_path / "map.gif")


def test_a_sheet_has_every_weight_that_is_not_zero():
    rows = list(csv.DictReader(as_csv(PAIR).decode().splitlines()))
    assert len(rows) == 7
    whole = np.zeros((2, 2, 3))
    for row in rows:
        whole[int(row["head"]) - 1, int(row["query"]), int(row["key"])] = float(row["weight"])
        assert row["key_token"] == PAIR.keys.tokens[int(row["key"])]
    np.testing.assert_array_equal(whole, PAIR.layers[0].weights)


def test_links_are_source_first_and_of_the_mean():
    assert as_pharaoh(PAIR) == b"0-0:0.5000 2-1:0.7500\n"


def test_links_are_between_words():
    pieces = AttentionMap(np.eye(3), ["play", "##ing", "now"], ["▁spi", "elen", "▁nun"])
    assert as_pharaoh(pieces) == b"0-0:1.0000 1-1:1.0000\n"


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["[CLS]", "play", "##ing", "[SEP]"], [0, 1, 1, 2]),
        (["▁der", "▁laut", "e", "</s>"], [0, 1, 1, 2]),
        (["<s>", "der", "Ġlaut", "e"], [0, 1, 2, 2]),
        (["a", "b"], [0, 1]),
        ([], []),
    ],
)
def test_marks_tell_words(tokens, words):
    assert infer_word_ids(tokens) == words


@pytest.mark.parametrize("form", ["png", "svg", "pdf"])
@pytest.mark.parametrize("shape", ["matrix", "heads", "bars", "arcs", "text", "strip"])
def test_every_picture_in_every_form(form, shape):
    tokens = ["a", "$x_1$", "\u4e2d\u6587", "</svg><script>"]
    weights = np.full((2, 2, 4, 4), 0.25, np.float32)
    data = picture_bytes(AttentionMap(weights, tokens, title="$\\frac$"), form, shape)
    assert data == picture_bytes(AttentionMap(weights, tokens, title="$\\frac$"), form, shape)
    if form == "svg":
        tree = ET.fromstring(data)  # noqa: S314
        assert not [one for one in tree.iter() if one.tag.endswith("script")]


def test_what_suits_a_map():
    one, two = np.full((1, 2, 2), 0.5, np.float32), np.full((2, 2, 2), 0.5, np.float32)
    tokens = ["a", "b"]
    assert default_style(AttentionMap(one, tokens)) == "matrix"
    assert default_style(AttentionMap(two, tokens)) == "heads"
    assert default_style(AttentionMap(one[:, :1], ["whole"], tokens, kind="pool")) == "bars"
    assert default_style(AttentionMap(one, ["s1", "s2"], tokens, kind="pool")) == "text"
    places = one / 2
    assert (
        default_style(AttentionMap({"the": places, "dog": places}, tokens, kind="grid")) == "strip"
    )
    assert default_style(AttentionMap({"layer": two / 2}, tokens, kind="grid")) == "heads"


def test_a_document_has_its_words_and_shares():
    words = np.array([[[0.9, 0.1, 0, 0], [0, 0, 0.5, 0.5]]], np.float32)
    seen = AttentionMap(
        {"words": words, "words times sentence": words * np.array([[[0.75], [0.25]]])},
        ["sentence 1", "sentence 2"],
        ["good", "film", "it", "is"],
        kind="pool",
    )
    with rc_context({"svg.fonttype": "none"}):  # letters as letters
        drawn = picture_bytes(seen, "svg").decode()
    for told in ("good", "film", "it", "is", " 75%", " 25%"):
        assert f">{told}<" in drawn


def test_a_picture_too_fine_to_see_says_what_to_do():
    with pytest.raises(ValueError, match=r"not 121 x 121; save a page"):
        picture_bytes(AttentionMap(np.eye(121), [str(n) for n in range(121)]), "png")
    with pytest.raises(ValueError, match="arcs need self-attention"):
        picture_bytes(PAIR, "png", "arcs")


@given(st.lists(st.text(max_size=6), min_size=1, max_size=3))
@settings(max_examples=12, deadline=None)
def test_any_text_is_text_in_an_svg(tokens):
    data = picture_bytes(AttentionMap(np.eye(len(tokens)), tokens), "svg", "matrix")
    tree = ET.fromstring(data)  # noqa: S314
    assert not [one for one in tree.iter() if one.tag.endswith(("script", "foreignObject"))]
    assert not [name for one in tree.iter() for name in one.attrib if name.startswith("on")]


def test_tex_is_not_obeyed():
    assert escape_tex("\\input{x} 5%") == "\\textbackslash{}input\\{x\\} 5\\%"
    text = as_tikz(PAIR).decode()
    assert "\\fill[black!50] (0, 0) rectangle +(1, 1);" in text
    assert text.count("\\node") == 5


def test_one_head_of_one_layer():
    two = AttentionMap(np.stack([np.eye(2), 1 - np.eye(2)])[None], ["a", "b"])
    np.testing.assert_array_equal(two.pick(1, 2).layers[0].weights[0], 1 - np.eye(2))
    with pytest.raises(ValueError, match="head must be from 1 to 2, not 3"):
        two.pick(head=3)
    with pytest.raises(ValueError, match="layer must be from 1 to 1, not 0"):
        two.pick(layer=0)


def test_a_notebook_shows_it_in_a_frame():
    text = AttentionMap(np.eye(1), ["</iframe><script>"])._repr_html_()
    assert text.startswith('<iframe sandbox="allow-scripts')
    assert text.count("<iframe") == 1
    assert "<script" not in text
