"""An attention map as one HTML page with its scripts; the page fetches nothing.

Long rows are sparse: the page has their greatest weights, and the mean mass of the others. Scripts
set tokens only as text, so that a token never becomes code.
"""

import base64
import html
import json
import zlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from string import Template

import numpy as np

from regard.errors import InputError
from regard.files import JsonObject
from regard.view.attention_map import AttentionMap, TokenSequence
from regard.view.sanitize import security_policy
from regard.view.structure import MIN_PEAK_RATIO, clearest_head

MAX_KEPT_WEIGHTS = 16  # weights of a row with more than MAX_DENSE_KEYS keys
MAX_DENSE_KEYS = 64
MAX_KEYS = 65_536  # an index has two bytes


def html_page(map_: AttentionMap) -> str:
    """Return the page as text."""
    keys = len(map_.keys.tokens)
    if keys > MAX_KEYS:
        raise InputError(f"a page shows at most {MAX_KEYS} keys, not {keys}; give a shorter input")
    weights_per_row = keys if keys <= MAX_DENSE_KEYS else MAX_KEPT_WEIGHTS
    packed, dropped = bytearray(), 0.0
    for layer in map_.layers:
        top_indices = np.argpartition(-layer.weights, weights_per_row - 1, -1)[
            ..., :weights_per_row
        ]
        values = np.take_along_axis(layer.weights, top_indices, -1)
        dropped += float((layer.weights.sum(-1) - values.sum(-1)).mean())
        packed += top_indices.astype("<u2").tobytes()
        packed += np.rint(255 * np.sqrt(values.clip(0, 1))).astype(np.uint8).tobytes()
    page_data: JsonObject = {
        "queries": token_data(map_.queries),
        "keys": token_data(map_.keys),
        "layers": [
            {"name": escape_invisible(item.label), "heads": item.heads} for item in map_.layers
        ],
        "clearest": clearest_head(map_)._asdict(),
        "reader": escape_invisible(map_.reader),
        "peak": MIN_PEAK_RATIO,
        "kind": map_.layers[0].kind,
        "image": None if map_.image is None else base64.b64encode(map_.image).decode(),
        "kept": weights_per_row,
        "dropped": dropped / len(map_.layers),
        "packed": base64.b64encode(zlib.compress(bytes(packed), 6)).decode(),
        "gold": gold_links(map_),
        "choices": [
            [(escape_invisible(item.token), item.probability) for item in row]
            for row in map_.annotations.choices
        ],
        "tree": [
            item._replace(token=escape_invisible(item.token)) for item in map_.annotations.tree
        ],
    }
    resources = files(__name__)
    return Template(resources.joinpath("page.html").read_text("utf-8")).substitute(
        title=html.escape(escape_invisible(map_.title or "attention")),
        style=resources.joinpath("page.css").read_text("utf-8"),
        data=json.dumps(page_data, ensure_ascii=True).replace("<", "\\u003c"),
        script=page_script(),
        policy=security_policy(page_script()),
    )


@cache
def page_script() -> str:
    """Return the script of the page, which is the same for all maps."""
    names = ("annotations.js", "page.js")
    return "".join(files(__name__).joinpath(name).read_text("utf-8") for name in names)


def html_frame(map_: AttentionMap, height: int = 560) -> str:
    """Return the page as a frame for another page, such as a notebook; only its script may run."""
    style = f"width:100%;height:{height}px;border:1px solid #ccc"
    inner = html.escape(html_page(map_), quote=True)
    permissions = "allow-scripts allow-downloads"
    return f'<iframe sandbox="{permissions}" style="{style}" srcdoc="{inner}"></iframe>'


def side_by_side_page(maps: Sequence[tuple[str, AttentionMap]]) -> str:
    """Return a page with several maps, each in a frame below its name."""
    frames = "\n".join(
        f"<section><h2>{html.escape(escape_invisible(name))}</h2>"
        f"{html_frame(map_, height=760)}</section>"
        for name, map_ in maps
    )
    policy = security_policy(page_script())  # the frames inherit it
    style = (
        ":root{color-scheme:light dark} body{font:14px system-ui,sans-serif;margin:1rem;"
        "display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(26rem,1fr))}"
        "h2{font-size:1rem;margin:.2rem 0;overflow-wrap:anywhere}"
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{policy}'
        '<meta name="viewport" content="width=device-width"><title>Side by side</title>'
        f"<style>{style}</style></head>\n<body>\n{frames}\n</body></html>\n"
    )


def gold_links(map_: AttentionMap) -> JsonObject | None:
    """Return gold links as (query word, key word), and the words that can have links."""
    gold = map_.annotations.gold
    if gold is None:
        return None
    queries, keys = map_.content_word_indices()
    sure, possible = (
        sorted((queries[query], keys[key]) for key, query in links)
        for links in (gold.sure, gold.possible - gold.sure)
    )
    return {"sure": sure, "possible": possible, "queries": queries, "keys": keys}


def token_data(sequence: TokenSequence) -> JsonObject:
    return {
        "tokens": [escape_invisible(token) for token in sequence.tokens],
        "words": [escape_invisible(word) for word in sequence.words()],
        "word": list(sequence.word_ids),
    }


def escape_invisible(text: str) -> str:
    """Replace control, direction and surrogate characters by their code points."""
    return "".join(
        character if character.isprintable() else f"\\u{ord(character):04x}" for character in text
    )
