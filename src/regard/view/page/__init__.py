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


def viewer_data(map_: AttentionMap) -> JsonObject:
    """Return what `createViewer` of the viewer's script draws, as JSON."""
    keys = len(map_.keys.tokens)
    if keys > MAX_KEYS:
        raise InputError(f"a page shows at most {MAX_KEYS} keys, not {keys}; give a shorter input")
    weights_per_row = keys if keys <= MAX_DENSE_KEYS else MAX_KEPT_WEIGHTS
    packed, dropped = pack_weights(map_, weights_per_row)
    return {
        "title": escape_invisible(map_.title),
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
        "dropped": dropped,
        "packed": base64.b64encode(zlib.compress(packed, 6)).decode(),
        "gold": gold_links(map_),
        "choices": [
            [(escape_invisible(item.token), item.probability) for item in row]
            for row in map_.annotations.choices
        ],
        "output_start": map_.annotations.output_start,
        "tree": [
            item._replace(token=escape_invisible(item.token)) for item in map_.annotations.tree
        ],
    }


def pack_weights(map_: AttentionMap, weights_per_row: int) -> tuple[bytes, float]:
    """Return the greatest weights of each row, and the mean weight of a row that is left out.

    Each layer has the indices of its keys in two bytes, then square roots of weights in one.
    """
    packed, dropped = bytearray(), 0.0
    for layer in map_.layers:
        top_indices = np.argpartition(-layer.weights, weights_per_row - 1, -1)[
            ..., :weights_per_row
        ]
        values = np.take_along_axis(layer.weights, top_indices, -1)
        dropped += float((layer.weights.sum(-1) - values.sum(-1)).mean())
        packed += top_indices.astype("<u2").tobytes()
        packed += np.rint(255 * np.sqrt(values.clip(0, 1))).astype(np.uint8).tobytes()
    return bytes(packed), dropped / len(map_.layers)


@cache
def viewer_script() -> str:
    """Return the script that defines `createViewer(container, data, options)`."""
    return join_files("viewer.js")


@cache
def viewer_style() -> str:
    """Return the colors and type of all pages, and the style of the viewer."""
    return join_files("theme.css", "viewer.css")


def join_files(*names: str) -> str:
    return "".join(files(__name__).joinpath(name).read_text("utf-8") for name in names)


def html_page(map_: AttentionMap) -> str:
    """Return a page that shows one map."""
    return page_text(map_.title or "attention", map_element(map_))


def side_by_side_page(maps: Sequence[tuple[str, AttentionMap]]) -> str:
    """Return a page that shows several maps, each below its name."""
    sections = (
        f"<section><h2>{html.escape(escape_invisible(name))}</h2>\n{map_element(map_)}</section>"
        for name, map_ in maps
    )
    return page_text("Side by side", "\n".join(sections))


def page_text(title: str, maps: str) -> str:
    return Template(join_files("page.html")).substitute(
        title=html.escape(escape_invisible(title)),
        style=viewer_style() + join_files("page.css"),
        maps=maps,
        script=page_script(),
        policy=security_policy(page_script()),
    )


def map_element(map_: AttentionMap) -> str:
    """Return the element that the page's script turns into a viewer."""
    data = json.dumps(viewer_data(map_), ensure_ascii=True).replace("<", "\\u003c")
    return f'<div class="map"><script type="application/json">{data}</script></div>'


@cache
def page_script() -> str:
    """Return the script of a page, which is the same for all maps."""
    return viewer_script() + join_files("page.js")


def html_frame(map_: AttentionMap, height: int = 560) -> str:
    """Return the page as a frame for another page, such as a notebook; only its script may run."""
    style = f"width:100%;height:{height}px;border:1px solid #ccc"
    inner = html.escape(html_page(map_), quote=True)
    permissions = "allow-scripts allow-downloads"
    return f'<iframe sandbox="{permissions}" style="{style}" srcdoc="{inner}"></iframe>'


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
