"""The page: whole in itself, small, and nothing that a token says is run."""

import base64
import html.parser
import json
import re
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.view.attention_map import AttentionMap, TokenSequence
from regard.view.page import html_page, piece_labels, viewer_data, viewer_script


def softmax(*shape, seed=0):
    draws = np.exp(3 * np.random.default_rng(seed).normal(size=shape))
    return (draws / draws.sum(-1, keepdims=True)).astype(np.float32)


class Scripts(html.parser.HTMLParser):
    """What a browser would take for scripts, and what a page would fetch."""

    def __init__(self, text):
        super().__init__()
        self.found, self.fetched = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "script":
            self.found.append(dict(attrs).get("type", "run"))
        self.fetched += [value for name, value in attrs if name in ("src", "href")]


def told(text):
    start = text.index('type="application/json">') + len('type="application/json">')
    return json.loads(text[start : text.index("</script>", start)])


def unpacked(facts):
    """The weights again, dense."""
    data = zlib.decompress(base64.b64decode(facts["packed"]))
    rows, columns, at, found = len(facts["queries"]["tokens"]), len(facts["keys"]["tokens"]), 0, []
    for layer in facts["layers"]:
        shape = (layer["heads"], rows, facts["kept"])
        count = int(np.prod(shape))
        places = np.frombuffer(data, "<u2", count, at).reshape(shape)
        values = np.frombuffer(data, np.uint8, count, at + 2 * count).reshape(shape)
        whole = np.zeros((layer["heads"], rows, columns))
        np.put_along_axis(whole, places.astype(np.int64), (values / 255) ** 2, -1)
        found.append(whole)
        at += 3 * count
    assert at == len(data)
    return found


def test_the_weights_are_in_it():
    weights = softmax(2, 3, 5, 7)
    facts = told(html_page(AttentionMap(weights, list("abcde"), list("tuvwxyz"))))
    assert facts["kept"] == 7
    for mine, true in zip(unpacked(facts), weights, strict=True):
        np.testing.assert_allclose(mine, true, atol=0.005)


def test_long_rows_are_sparse_and_say_so(monkeypatch):
    monkeypatch.setattr("regard.view.page.MAX_PACKED_BYTES", 1000)
    weights = softmax(1, 2, 100, 100)
    facts = told(html_page(AttentionMap(weights, [f"t{n}" for n in range(100)])))
    assert facts["kept"] == 16
    best = np.sort(weights, -1)[..., -16:].sum(-1)
    assert facts["dropped"] == pytest.approx(1 - best.mean(), abs=1e-5)
    kept = unpacked(facts)[0]
    assert (kept > 0).sum(-1).max() == 16
    assert (kept.argmax(-1) == weights[0].argmax(-1)).mean() > 0.98  # but for rounding


@given(st.lists(st.text(max_size=8), min_size=1, max_size=4), st.text(max_size=10))
@settings(max_examples=60, deadline=None)
def test_no_token_is_code(tokens, title):
    text = html_page(AttentionMap(softmax(1, 1, len(tokens), len(tokens)), tokens, title=title))
    scripts = Scripts(text)
    assert scripts.found == ["application/json", "run"]
    assert scripts.fetched == []
    shown = told(text)["queries"]["tokens"]
    assert all(letter.isprintable() for token in shown for letter in token)


def test_an_attack_is_text():
    attack = "</script><script>document.title='taken'</script><img src=x onerror=alert(1)>"
    text = html_page(AttentionMap(softmax(1, 1, 1, 1), [attack], title=attack))
    assert Scripts(text).found == ["application/json", "run"]
    assert told(text)["queries"]["tokens"] == [attack]
    assert "http" not in re.sub("http(://www.w3.org/2000/svg|-equiv)", "", text)


def test_a_grid_over_its_picture():
    weights = softmax(2, 3, 12).reshape(2, 3, 3, 4)
    shown = AttentionMap(weights, ["1", "2", "3"], list("abcd"), kind="grid", image=b"PNG")
    facts = told(html_page(shown))
    assert (facts["kind"], base64.b64decode(facts["image"])) == ("grid", b"PNG")
    assert told(html_page(AttentionMap(softmax(1, 2, 2), ["a", "b"])))["image"] is None
    wanted = -(weights * np.log2(weights)).sum((-1, -2))  # one look over all of the grid
    np.testing.assert_allclose(shown.entropy(), wanted, rtol=1e-4)


@pytest.mark.parametrize(
    ("tokens", "word_ids", "labels"),
    [
        (("[CLS]", "play", "##ing"), (0, 1, 1), ["[CLS]", "play", "·ing"]),
        (("Ġa", "Ġlot", "s", "Ġ"), (0, 1, 1, 2), ["a", "lot", "·s", "␣"]),
        (("▁2", "0", " ", "6"), (0, 0, 0, 0), ["2", "0", "␣", "6"]),
    ],
)
def test_labels_have_no_marks_of_a_tokenizer(tokens, word_ids, labels):
    assert piece_labels(TokenSequence(tokens, word_ids)) == labels


def test_nearly_equal_weights_stay_far_from_the_end_of_the_scale():
    even = viewer_data(AttentionMap(np.full((1, 10, 10), 0.1), list("abcdefghij")))
    assert even["top"] == [pytest.approx(0.4)] * 2
    sharp = viewer_data(AttentionMap(np.eye(10), list("abcdefghij")))
    assert sharp["top"] == [1, 1]


def test_layers_of_a_caption_are_words_and_others_have_readable_names():
    grid = softmax(1, 4).reshape(1, 2, 2)
    sides = ["row 1", "row 2"], ["column 1", "column 2"]
    caption = viewer_data(AttentionMap({"1 a": grid, "2 ring": grid}, *sides, kind="grid"))
    assert caption["layers_are_words"]
    assert [layer["name"] for layer in caption["layers"]] == ["a", "ring"]
    layers = {"decoder.layers.0.cross_attention": softmax(1, 2, 2)}
    plain = viewer_data(AttentionMap(layers, ["a", "b"], ["c", "d"]))
    assert not plain["layers_are_words"]
    assert plain["layers"][0]["name"] == "Decoder 1, cross-attention"


def test_the_viewer_defines_one_name():
    """A page that embeds it may use any other name."""
    script = viewer_script()
    assert script.startswith('"use strict";\n(() => {')
    assert re.findall(r"^(?:const|let|function|class) ", script.split("(() => {")[0], re.M) == []
    assert script.rstrip().endswith("globalThis.createViewer = createViewer;\n})();")
