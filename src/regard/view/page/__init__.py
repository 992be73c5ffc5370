"""One page that holds a map of attention and all that shows it; it fetches nothing.

Rows are kept sparse: the `KEPT` greatest weights of each, and how much mass the others have. What a
token says is only ever set as text, so that none is run.
"""

import base64
import html
import json
import zlib
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from regard.view.map import AttentionMap, Words

KEPT = 16  # weights of a row, where there are more than DENSE
DENSE = 64
MOST = 65_536  # keys that a place of two bytes can name


def page(map_: AttentionMap) -> str:
    """The whole page as text."""
    keys = len(map_.keys.tokens)
    if keys > MOST:
        raise ValueError(f"{keys} keys: a page shows at most {MOST}")
    kept = keys if keys <= DENSE else KEPT
    packed, lost = bytearray(), 0.0
    for layer in map_.layers:
        order = np.argpartition(-layer.weights, kept - 1, -1)[..., :kept]
        values = np.take_along_axis(layer.weights, order, -1)
        lost += float((layer.weights.sum(-1) - values.sum(-1)).mean())
        packed += order.astype("<u2").tobytes()
        packed += np.rint(255 * np.sqrt(values.clip(0, 1))).astype(np.uint8).tobytes()
    told: dict[str, Any] = {
        "queries": side(map_.queries),
        "keys": side(map_.keys),
        "layers": [{"name": one.name, "heads": one.heads} for one in map_.layers],
        "kind": map_.layers[0].kind,
        "picture": None if map_.picture is None else base64.b64encode(map_.picture).decode(),
        "kept": kept,
        "dropped": lost / len(map_.layers),
        "packed": base64.b64encode(zlib.compress(bytes(packed), 6)).decode(),
        "gold": gold_of(map_),
        "choices": [[(visible(one.token), one.share) for one in row] for row in map_.more.choices],
        "tree": [one._replace(token=visible(one.token)) for one in map_.more.tree],
    }
    here = files(__name__)
    return Template(here.joinpath("page.html").read_text("utf-8")).substitute(
        title=html.escape(visible(map_.title or "attention")),
        style=here.joinpath("page.css").read_text("utf-8"),
        data=json.dumps(told, ensure_ascii=True).replace("<", "\\u003c"),
        script="".join(here.joinpath(name).read_text("utf-8") for name in ("more.js", "page.js")),
    )


def framed(map_: AttentionMap, height: int = 560) -> str:
    """The page within another one, such as a notebook: it may run its own script, and no more."""
    style = f"width:100%;height:{height}px;border:1px solid #ccc"
    inner = html.escape(page(map_), quote=True)
    may = "allow-scripts allow-downloads"
    return f'<iframe sandbox="{may}" style="{style}" srcdoc="{inner}"></iframe>'


def side_by_side(maps: Sequence[tuple[str, AttentionMap]]) -> str:
    """Maps under their names, each a page of its own in a frame."""
    frames = "\n".join(
        f"<section><h2>{html.escape(visible(name))}</h2>{framed(one, height=760)}</section>"
        for name, one in maps
    )
    style = (
        ":root{color-scheme:light dark} body{font:14px system-ui,sans-serif;margin:1rem;"
        "display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(26rem,1fr))}"
        "h2{font-size:1rem;margin:.2rem 0;overflow-wrap:anywhere}"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Side by side</title>'
        f"<style>{style}</style></head>\n<body>\n{frames}\n</body></html>\n"
    )


def gold_of(map_: AttentionMap) -> dict[str, Any] | None:
    """Links of people as pairs of words, the one that looks first; and what can have links."""
    gold = map_.more.gold
    if gold is None:
        return None
    queries, keys = map_.plain_words()
    sure, possible = (
        sorted((queries[query], keys[key]) for key, query in links)
        for links in (gold.sure, gold.possible - gold.sure)
    )
    return {"sure": sure, "possible": possible, "queries": queries, "keys": keys}


def side(words: Words) -> dict[str, Any]:
    return {
        "tokens": [visible(token) for token in words.tokens],
        "words": [visible(word) for word in words.merged()],
        "word": list(words.word),
    }


def visible(text: str) -> str:
    """Characters that steer (controls, turns of direction, half characters) by their number."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
