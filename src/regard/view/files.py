"""A map of attention in a file; what the file is called says which kind.

.html  a page with every layer and head        .png .svg .pdf  a picture
.npz .json  all of it, to be read again        .csv  a row for each weight
.tex  TikZ, one matrix                         .pharaoh  links i-j:weight, key-query, by words
"""

import base64
import csv
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.config.whole import write_whole
from regard.view.map import AttentionMap
from regard.view.more import more_of
from regard.view.page import page
from regard.view.picture import Form, Shape, picture
from regard.view.terminal import label

VERSION = 1
LEAST = 1e-5  # a weight below it is no row of a sheet
STEP = 0.45  # centimetres of a cell


def save(map_: AttentionMap, path: Path) -> None:
    write_whole(path, form_of(path)(map_))


def form_of(path: Path, shape: Shape | None = None) -> Callable[[AttentionMap], bytes]:
    """What makes the bytes of such a file; fails before the work where there is no such kind."""
    if path.suffix not in FORMS:
        raise ValueError(f"{path}: a map is written as one of {', '.join(FORMS)}")
    if shape is None:
        return FORMS[path.suffix]
    if path.suffix not in PICTURES:
        raise ValueError(f"{path}: a shape is for pictures: {', '.join(PICTURES)}")
    form = PICTURES[path.suffix]
    return lambda map_: picture(map_, form, shape)


def load(path: Path) -> AttentionMap:
    """From .npz or .json."""
    try:
        if path.suffix == ".json":
            head = json.loads(path.read_bytes())
            layers = [np.asarray(one, np.float32) for one in head["weights"]]
        else:
            with zipfile.ZipFile(path) as packed:
                head = json.loads(array_of(packed, "head").tobytes())
                names = [f"layer{number}" for number in range(len(head["layers"]))]
                layers = [array_of(packed, name).astype(np.float32) for name in names]
        if head["version"] != VERSION:
            raise ValueError(f"version {head['version']}; this reads {VERSION}")
        names, kinds = [name for name, _ in head["layers"]], {kind for _, kind in head["layers"]}
        (queries, of_queries), (keys, of_keys) = head["queries"], head["keys"]
        return AttentionMap(
            dict(zip(names, layers, strict=True)),
            queries,
            keys,
            kind=kinds.pop(),
            pieces=(of_queries, of_keys),
            title=head["title"],
            picture=base64.b64decode(head["picture"]) if head.get("picture") else None,
            more=more_of(head.get("more")),
        )
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: not a map of attention ({error})") from None


def array_of(packed: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """One array of an .npz; an object, which only pickle could read, is refused."""
    with packed.open(f"{name}.npy") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def head_of(map_: AttentionMap) -> dict[str, Any]:
    return {
        "version": VERSION,
        "title": map_.title,
        "queries": [list(map_.queries.tokens), list(map_.queries.word)],
        "keys": [list(map_.keys.tokens), list(map_.keys.word)],
        "layers": [[one.name, one.kind] for one in map_.layers],
        "picture": None if map_.picture is None else base64.b64encode(map_.picture).decode(),
        "more": map_.more.head(),
    }


def as_npz(map_: AttentionMap) -> bytes:
    """Arrays of half precision and names, which need no pickle."""
    packed = io.BytesIO()
    arrays = {f"layer{n}": one.weights.astype(np.float16) for n, one in enumerate(map_.layers)}
    text = np.frombuffer(json.dumps(head_of(map_)).encode(), dtype=np.uint8)
    np.savez_compressed(packed, allow_pickle=False, head=text, **arrays)
    return packed.getvalue()


def as_json(map_: AttentionMap) -> bytes:
    weights = [np.round(one.weights.astype(np.float64), 6).tolist() for one in map_.layers]
    return json.dumps({**head_of(map_), "weights": weights}).encode()


def as_csv(map_: AttentionMap) -> bytes:
    """Places are counted from 0, heads from 1."""
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(["layer", "head", "query", "query_token", "key", "key_token", "weight"])
    queries, keys = map_.queries.tokens, map_.keys.tokens
    for layer in map_.layers:
        for head, q, k in np.argwhere(layer.weights > LEAST).tolist():
            weight = f"{layer.weights[head, q, k]:.6g}"
            rows.writerow([layer.name, head + 1, q, queries[q], k, keys[k], weight])
    return written.getvalue().encode()


def as_pharaoh(map_: AttentionMap) -> bytes:
    """One line: for each word that looked, the one it looked at most, in the mean of all heads."""
    whole = map_.merged().mean().layers[0].weights[0]
    links = [(int(row.argmax()), q, row.max()) for q, row in enumerate(whole) if row.any()]
    return (" ".join(f"{k}-{q}:{weight:.4f}" for k, q, weight in links) + "\n").encode()


def as_tikz(map_: AttentionMap) -> bytes:
    """A picture to \\input; the mean of all heads."""
    whole = map_.mean().layers[0].weights[0]
    lines = [f"\\begin{{tikzpicture}}[x={STEP}cm, y=-{STEP}cm, font=\\footnotesize]"]
    for q, token in enumerate(map_.queries.tokens):
        lines.append(f"\\node[left] at (0, {q + 0.5}) {{{tex(token)}}};")
    for k, token in enumerate(map_.keys.tokens):
        lines.append(f"\\node[right, rotate=60] at ({k + 0.5}, 0) {{{tex(token)}}};")
    for q, k in np.argwhere(whole > 0.005).tolist():
        shade = f"\\fill[black!{round(100 * float(whole[q, k]))}]"
        lines.append(f"{shade} ({k}, {q}) rectangle +(1, 1);")
    lines.append(f"\\draw (0, 0) rectangle ({whole.shape[1]}, {whole.shape[0]});")
    return "\n".join([*lines, "\\end{tikzpicture}", ""]).encode()


def tex(token: str) -> str:
    """Text that TeX sets and does not obey."""
    special = {one: f"\\{one}" for one in "#$%&_{}"}
    special |= {
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "<": "\\textless{}",
        ">": "\\textgreater{}",
    }
    return "".join(special.get(one, one) for one in label(token, 24))


PICTURES: dict[str, Form] = {".png": "png", ".svg": "svg", ".pdf": "pdf"}
FORMS: dict[str, Callable[[AttentionMap], bytes]] = {
    ".html": lambda map_: page(map_).encode(),
    ".png": lambda map_: picture(map_, "png"),
    ".svg": lambda map_: picture(map_, "svg"),
    ".pdf": lambda map_: picture(map_, "pdf"),
    ".npz": as_npz,
    ".json": as_json,
    ".csv": as_csv,
    ".tex": as_tikz,
    ".pharaoh": as_pharaoh,
}
