"""An attention map as one HTML page with its scripts; the page fetches nothing.

Long rows are sparse: the page has their greatest weights, and the mean mass of the others. Scripts
set tokens only as text, so that a token never becomes code.
"""

import base64
import html
import json
import re
import zlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from string import Template

import numpy as np

from regard.errors import InputError
from regard.files import JsonObject
from regard.view.attention_map import (
    AttentionLayer,
    AttentionMap,
    TokenSequence,
    attention_rows,
    is_special,
)
from regard.view.head_roles import head_roles
from regard.view.sanitize import security_policy
from regard.view.structure import clearest_head, scale_top

MAX_PACKED_BYTES = 3_600_000  # before compression; the rows of a larger map are sparse
MIN_KEPT_WEIGHTS = 16  # of a sparse row
BYTES_PER_WEIGHT = 3
MAX_KEYS = 65_536  # an index has two bytes
VIEWER_PARTS = (
    "elements",
    "theme",
    "scale",
    "weights",
    "sentences",
    "matrix",
    "lines",
    "overview",
    "text",
    "search_tree",
    "picture",
    "gold",
    "details",
    "export",
    "controls",
    "viewer",
)
"""Scripts of the viewer, in src/regard/view/page."""


def viewer_data(map_: AttentionMap) -> JsonObject:
    """Return what `createViewer` of the viewer's script draws, as JSON."""
    keys = len(map_.keys.tokens)
    if keys > MAX_KEYS:
        raise InputError(f"a page shows at most {MAX_KEYS} keys, not {keys}; give a shorter input")
    weights_per_row = kept_weights(map_)
    packed, dropped = pack_weights(map_, weights_per_row)
    return {
        "title": one_line(map_.title),
        "queries": token_data(map_.queries),
        "keys": token_data(map_.keys),
        "layers": layer_data(map_),
        "layers_are_words": layers_are_words(map_),
        "clearest": clearest_head(map_)._asdict(),
        "reader": escape_invisible(map_.reader),
        "top": [scale_maximum(map_), scale_maximum(map_.merge_subwords())],
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


def layer_data(map_: AttentionMap) -> list[JsonObject]:
    """Return the name, the number of heads, and the entropy and the role of each head."""
    return [
        {
            "name": escape_invisible(layer_name(map_, layer)),
            "heads": layer.heads,
            "entropy": [round(float(bits), 3) for bits in entropies],
            "roles": roles,
        }
        for layer, entropies, roles in zip(
            map_.layers, map_.entropy(), head_roles(map_), strict=True
        )
    ]


def layers_are_words(map_: AttentionMap) -> bool:
    """Return whether each layer is the look of one word of a caption at a picture."""
    return map_.layers[0].kind == "grid" and not map_.reader


def layer_name(map_: AttentionMap, layer: AttentionLayer) -> str:
    """Return a readable name; the word alone for a word of a caption, as in `2 red`."""
    if layers_are_words(map_):
        return re.sub(r"^\d+ ", "", layer.name)
    return layer.label[:1].upper() + layer.label[1:]


def scale_maximum(map_: AttentionMap) -> float:
    """Return the weight of the strongest color, which is the same for all heads of a map."""
    rows = [attention_rows(layer) for layer in map_.layers]
    max_weight = max((float(layer.max()) for layer in rows if layer.size), default=0.0)
    return round(scale_top(max_weight, 1 / max(1, rows[0].shape[-1])), 6)


def kept_weights(map_: AttentionMap) -> int:
    """Return how many weights of each row a page holds: all, or as many as the limit allows."""
    rows = sum(layer.heads for layer in map_.layers) * max(1, len(map_.queries.tokens))
    affordable = MAX_PACKED_BYTES // (BYTES_PER_WEIGHT * rows)
    return min(len(map_.keys.tokens), max(MIN_KEPT_WEIGHTS, affordable))


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
    """Return the script that defines `createViewer(container, data, options)` and nothing else."""
    parts = join_files(*(f"{name}.js" for name in VIEWER_PARTS))
    return f'"use strict";\n(() => {{\n{parts}globalThis.createViewer = createViewer;\n}})();\n'


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
    return page_text("Side by side", side_by_side(maps))


def side_by_side(maps: Sequence[tuple[str, AttentionMap]]) -> str:
    """Return the elements of several maps, each below its name."""
    sections = (
        f"<section><h2>{html.escape(one_line(name))}</h2>\n{map_element(map_)}</section>"
        for name, map_ in maps
    )
    return '<div class="side-by-side">\n' + "\n".join(sections) + "\n</div>"


def page_text(title: str, content: str, style: str = "", script: str = "") -> str:
    """Return a page with this content; `style` and `script` are files that it needs as well."""
    scripts = page_script() + (join_files(script) if script else "")
    return Template(join_files("page.html")).substitute(
        title=html.escape(one_line(title)),
        style=viewer_style() + join_files("page.css", *([style] if style else [])),
        content=content,
        script=scripts,
        policy=security_policy(scripts),
    )


def map_element(map_: AttentionMap) -> str:
    """Return the element that the page's script turns into a viewer."""
    data = json.dumps(viewer_data(map_), ensure_ascii=True).replace("<", "\\u003c")
    return f'<div class="map"><script type="application/json">{data}</script></div>'


@cache
def page_script() -> str:
    """Return the script of a page, which is the same for all maps."""
    return viewer_script() + join_files("page.js")


def html_frame(map_: AttentionMap, height: int = 680) -> str:
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
    """Return tokens, their labels, words, and the word of each token."""
    return {
        "tokens": [escape_invisible(token) for token in sequence.tokens],
        "labels": [escape_invisible(label) for label in piece_labels(sequence)],
        "words": [escape_invisible(word) for word in sequence.words()],
        "word": list(sequence.word_ids),
    }


def piece_labels(sequence: TokenSequence) -> list[str]:
    """Return tokens without the marks of their tokenizer; a dot means: the word goes on.

    Single characters have no dot.

    >>> piece_labels(TokenSequence(("▁play", "ing", "▁"), (0, 0, 1)))
    ['play', '·ing', '␣']
    """
    word_ids = sequence.word_ids
    pieces = [
        (token.removeprefix("##").lstrip("▁Ġ"), index > 0 and word == word_ids[index - 1])
        for index, (token, word) in enumerate(zip(sequence.tokens, word_ids, strict=True))
    ]
    has_dots = any(len(text) > 1 and not is_special(text) for text, _ in pieces)
    return [
        f"·{text}" if goes_on and has_dots and text.strip() else text if text.strip() else "␣"
        for text, goes_on in pieces
    ]


def one_line(text: str) -> str:
    return escape_invisible(" ".join(text.split()))


def escape_invisible(text: str) -> str:
    """Replace control, direction and surrogate characters by their code points."""
    return "".join(
        character if character.isprintable() else f"\\u{ord(character):04x}" for character in text
    )
