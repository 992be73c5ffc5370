"""Files of attention maps; the suffix of the file decides the format.

.html  a page with every layer and head        .png .svg .pdf  a plot
.npz .json  the complete map, for `load`       .csv  a row for each weight
.tex  TikZ, one matrix                         .pharaoh  links i-j:weight, key-query, by words
"""

import base64
import csv
import io
import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.errors import InputError
from regard.files import JsonObject, write_atomic
from regard.parsing import decode_utf8, one_line, parse_json_object, read_json_object
from regard.view.annotations import annotations_from_dict
from regard.view.attention_map import AttentionMap
from regard.view.page import html_page
from regard.view.picture import PictureFormat, PictureStyle, picture_bytes
from regard.view.sanitize import csv_cell
from regard.view.terminal import label

FORMAT_VERSION = 1
MIN_CSV_WEIGHT = 1e-5  # smaller weights have no row
TIKZ_CELL_CM = 0.45
MAX_ARRAY_BYTES = 1 << 30  # of a map that is loaded


def save(map_: AttentionMap, path: Path) -> None:
    write_atomic(path, build_serializer(path)(map_))


def build_serializer(
    path: Path, style: PictureStyle | None = None
) -> Callable[[AttentionMap], bytes]:
    """Return the function that converts a map to this format; raise an error for unknown ones."""
    if path.suffix not in SERIALIZERS:
        raise InputError(f"{path}: a map must end in one of {', '.join(SERIALIZERS)}")
    if style is None:
        return SERIALIZERS[path.suffix]
    if path.suffix not in PICTURE_FORMATS:
        raise InputError(f"{path}: a style is for plots; end in {', '.join(PICTURE_FORMATS)}")
    file_format = PICTURE_FORMATS[path.suffix]
    return lambda map_: picture_bytes(map_, file_format, style)


def load(path: Path) -> AttentionMap:
    """Read a map from .npz or .json."""
    try:
        if path.suffix == ".json":
            header = read_json_object(path)
            with np.errstate(over="raise"):
                layers = [np.asarray(weights, np.float32) for weights in header["weights"]]
        else:
            with zipfile.ZipFile(path) as archive:
                text = decode_utf8(read_array(archive, "head").tobytes(), str(path))
                header = parse_json_object(text, str(path))
                names = [f"layer{number}" for number in range(len(header["layers"]))]
                layers = [read_array(archive, name).astype(np.float32) for name in names]
        if header["version"] != FORMAT_VERSION:
            raise InputError(f"version {header['version']}, not {FORMAT_VERSION}")
        names, kinds = (
            [name for name, _ in header["layers"]],
            {kind for _, kind in header["layers"]},
        )
        (queries, query_word_ids), (keys, key_word_ids) = header["queries"], header["keys"]
        return AttentionMap(
            dict(zip(names, layers, strict=True)),
            queries,
            keys,
            kind=kinds.pop(),
            word_ids=(query_word_ids, key_word_ids),
            title=header["title"],
            image=base64.b64decode(header["image"]) if header.get("image") else None,
            reader=header.get("reader", ""),
            annotations=annotations_from_dict(header.get("more")),
        )
    except (
        *(ValueError, LookupError, TypeError, ArithmeticError, MemoryError, RuntimeError),
        *(zipfile.BadZipFile, zlib.error, EOFError),
    ) as error:
        raise InputError(f"{path}: not an attention map ({one_line(error)})") from None


def read_array(archive: zipfile.ZipFile, name: str) -> NDArray[np.generic]:
    """Read an array of an .npz; raise an error for pickled objects."""
    if archive.getinfo(f"{name}.npy").file_size > MAX_ARRAY_BYTES:
        raise InputError(f"{name}: more than {MAX_ARRAY_BYTES:,} bytes")
    with archive.open(f"{name}.npy") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def map_header(map_: AttentionMap) -> JsonObject:
    return {
        "version": FORMAT_VERSION,
        "title": map_.title,
        "queries": [list(map_.queries.tokens), list(map_.queries.word_ids)],
        "keys": [list(map_.keys.tokens), list(map_.keys.word_ids)],
        "layers": [[layer.name, layer.kind] for layer in map_.layers],
        "labels": [layer.label for layer in map_.layers],
        "reader": map_.reader,
        "image": None if map_.image is None else base64.b64encode(map_.image).decode(),
        "more": map_.annotations.as_dict(),
    }


def as_npz(map_: AttentionMap) -> bytes:
    """Return weights in half precision, and a header as JSON bytes, which need no pickle."""
    buffer = io.BytesIO()
    arrays = {f"layer{n}": layer.weights.astype(np.float16) for n, layer in enumerate(map_.layers)}
    header = np.frombuffer(json.dumps(map_header(map_)).encode(), dtype=np.uint8)
    np.savez_compressed(buffer, allow_pickle=False, head=header, **arrays)
    return buffer.getvalue()


def as_json(map_: AttentionMap) -> bytes:
    weights = [np.round(layer.weights.astype(np.float64), 6).tolist() for layer in map_.layers]
    return json.dumps({**map_header(map_), "weights": weights}).encode()


def as_csv(map_: AttentionMap) -> bytes:
    """Return a row for each weight; positions count from 0, heads from 1.

    Tokens are for a spreadsheet, see `csv_cell`; .json and .npz have them unchanged.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(
        ["layer", "head", "query", "query_token", "key", "key_token", "weight", "label"]
    )
    queries, keys = map_.queries.tokens, map_.keys.tokens
    for layer in map_.layers:
        for head, q, k in np.argwhere(layer.weights > MIN_CSV_WEIGHT).tolist():
            weight = f"{layer.weights[head, q, k]:.6g}"
            query, key = csv_cell(queries[q]), csv_cell(keys[k])
            names = csv_cell(layer.name), csv_cell(layer.label)
            writer.writerow([names[0], head + 1, q, query, k, key, weight, names[1]])
    return buffer.getvalue().encode()


def as_pharaoh(map_: AttentionMap) -> bytes:
    """Return one line with the strongest link of each query word, by the mean of all heads."""
    mean_weights = map_.merge_subwords().mean().layers[0].weights[0]
    links = [(int(row.argmax()), q, row.max()) for q, row in enumerate(mean_weights) if row.any()]
    return (" ".join(f"{k}-{q}:{weight:.4f}" for k, q, weight in links) + "\n").encode()


def as_tikz(map_: AttentionMap) -> bytes:
    """Return a TikZ picture to \\input, with the mean of all heads."""
    mean_weights = map_.mean().layers[0].weights[0]
    lines = [
        f"\\begin{{tikzpicture}}[x={TIKZ_CELL_CM}cm, y=-{TIKZ_CELL_CM}cm, font=\\footnotesize]"
    ]
    for q, token in enumerate(map_.queries.tokens):
        lines.append(f"\\node[left] at (0, {q + 0.5}) {{{escape_tex(token)}}};")
    for k, token in enumerate(map_.keys.tokens):
        lines.append(f"\\node[right, rotate=60] at ({k + 0.5}, 0) {{{escape_tex(token)}}};")
    for q, k in np.argwhere(mean_weights > 0.005).tolist():
        fill = f"\\fill[black!{round(100 * float(mean_weights[q, k]))}]"
        lines.append(f"{fill} ({k}, {q}) rectangle +(1, 1);")
    lines.append(f"\\draw (0, 0) rectangle ({mean_weights.shape[1]}, {mean_weights.shape[0]});")
    return "\n".join([*lines, "\\end{tikzpicture}", ""]).encode()


def escape_tex(token: str) -> str:
    """Escape the special characters of TeX."""
    special = {character: f"\\{character}" for character in "#$%&_{}"}
    special |= {
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "<": "\\textless{}",
        ">": "\\textgreater{}",
    }
    return "".join(special.get(character, character) for character in label(token, 24))


PICTURE_FORMATS: dict[str, PictureFormat] = {".png": "png", ".svg": "svg", ".pdf": "pdf"}
SERIALIZERS: dict[str, Callable[[AttentionMap], bytes]] = {
    ".html": lambda map_: html_page(map_).encode(),
    ".png": lambda map_: picture_bytes(map_, "png"),
    ".svg": lambda map_: picture_bytes(map_, "svg"),
    ".pdf": lambda map_: picture_bytes(map_, "pdf"),
    ".npz": as_npz,
    ".json": as_json,
    ".csv": as_csv,
    ".tex": as_tikz,
    ".pharaoh": as_pharaoh,
}
