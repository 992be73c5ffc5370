"""Random strings of all of Unicode, and attacks among them: text everywhere, never code."""

import json
import random
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
from matplotlib import rc_context

from regard.view.attention_map import AttentionMap
from regard.view.page import escape_invisible, html_page
from regard.view.picture import picture_bytes
from regard.view.terminal import LEFT_TO_RIGHT, Surface, label, render_heatmap

ATTACKS = [
    "</script><script>",
    "\x1b[31m",
    "\x1b]0;taken\x07",
    "\u202e",
    "\u2066",
    "<!--",
    "]]>",
    "&lt;",
]
SIDE = 100  # strings of a picture
DRAWN = 400  # of the strings: all 10,000 take 100 s
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def strings(count: int) -> list[str]:
    """Half of the letters from the first pages, where most scripts are; then anywhere."""
    chance = random.Random(1)
    found = []
    for _ in range(count):
        tops = (0x300, 0x3000, 0x110000)
        letters = [chr(chance.randrange(chance.choice(tops))) for _ in range(chance.randint(1, 8))]
        if chance.random() < 0.1:
            letters.insert(chance.randrange(len(letters)), chance.choice(ATTACKS))
        found.append("".join(letters))
    return found


class Tags(HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):  # noqa: ARG002
        self.tags.append(tag)


def test_on_a_page():
    tokens = strings(10_000)
    row = np.full((1, 1, len(tokens)), 1 / len(tokens), np.float32)
    text = html_page(AttentionMap(row, ["all"], tokens, kind="pool", title=tokens[0]))
    plain = html_page(AttentionMap(row[..., :1] * 0, ["all"], ["a"], kind="pool", title="t"))
    assert Tags(text).tags == Tags(plain).tags
    told = re.search(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    assert told is not None
    assert json.loads(told[1])["keys"]["tokens"] == [escape_invisible(token) for token in tokens]
    assert not STEERING.search(text.replace("\n", ""))


def test_in_a_terminal():
    tokens = strings(10_000)
    for start in range(0, len(tokens), 100):
        some = tokens[start : start + 100]
        shown = render_heatmap([[0.5]] * 100, some, ["key"], Surface(80, "shades"))
        assert not STEERING.search(shown.replace(f"{LEFT_TO_RIGHT} ", " "))  # our own
        assert not any(STEERING.search(label(token, 16)) for token in some)
        assert shown.count("\n") == 100  # the head, and a line for each


def test_in_an_svg():
    """Letters as text, which is where they could do harm; as paths, they are tried elsewhere."""
    tokens = strings(DRAWN)
    for start in range(0, len(tokens), SIDE):
        row, some = np.full((1, SIDE), 1 / SIDE), tokens[start : start + SIDE]
        with rc_context({"svg.fonttype": "none"}):
            drawn = picture_bytes(
                AttentionMap(row, ["all"], some, kind="pool", title=some[0]), "svg"
            )
        tree = ET.fromstring(drawn)  # noqa: S314
        tags = {one.tag.rpartition("}")[2] for one in tree.iter()}
        assert not tags & {"script", "foreignObject", "a", "animate", "set"}
        assert sum(one.tag.endswith("}text") for one in tree.iter()) >= SIDE
