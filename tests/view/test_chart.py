"""Pictures in files: they are pictures, whatever the labels hold."""

import struct
from io import BytesIO

import numpy as np
import pytest
from matplotlib.image import imread

from regard.view.chart import MAX_CELLS, heatmap_png, line_chart_png
from regard.view.curve import COLORS, ChartLabels
from regard.view.loss_curves import MAX_POINTS, loss_lines

WORDS = ChartLabels("title", "steps", "loss")
STRANGE = ["$x^{", "日本", "\x1b[31mred", "a\nb", "_" * 99]


def size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", png[16:24])


def pixels(png: bytes) -> set[tuple[int, int, int]]:
    table = (imread(BytesIO(png))[..., :3] * 255).round().astype(int)
    return set(map(tuple, np.unique(table.reshape(-1, 3), axis=0).tolist()))


def test_every_line_is_drawn_in_a_colour_of_its_own():
    x = [1, 2, 3]
    seen = pixels(line_chart_png({"a": (x, [3.0, 2.0, 1.0]), "b": (x, [1.0, 1.0, 2.0])}, WORDS))
    wanted = [tuple(bytes.fromhex(colour[1:])) for colour in COLORS]
    assert wanted[0] in seen
    assert wanted[1] in seen
    assert wanted[2] not in seen


def test_more_lines_than_colours_and_strange_names():
    many = {f"{name} {n}": ([0, 1], [n, n + 1]) for n, name in enumerate(STRANGE * 3)}
    assert min(size(line_chart_png(many, WORDS, ["1-10", "$11+"]))) > 300
    with pytest.raises(ValueError, match="lines is empty; give at least one"):
        line_chart_png({}, WORDS)


def test_a_map_has_its_weights():
    black, white = (0, 0, 0), (255, 255, 255)
    full = heatmap_png([[1.0, 0.0], [0.0, 1.0]], ["a", "b"], ["c", "d"], "t")
    empty = heatmap_png([[0.0, 0.0], [0.0, 0.0]], ["a", "b"], ["c", "d"], "t")
    assert full != empty
    assert {black, white} <= pixels(full)
    larger = heatmap_png([[0.5] * 9] * 5, list("abcde"), list("fghijklmn"), "t")
    assert size(larger)[0] > size(full)[0]
    assert heatmap_png([[0.1] * 5] * 5, STRANGE, STRANGE, "$ 日本").startswith(b"\x89PNG")


def test_labels_are_not_cut_off():
    """Nothing but white touches the edge of the picture."""
    names = ["uzug"] * 9
    table = imread(BytesIO(heatmap_png([[0.5] * 9] * 9, names, names, "t")))[..., :3]
    assert all((edge == 1).all() for edge in (table[0], table[-1], table[:, 0], table[:, -1]))


def test_bad_maps():
    with pytest.raises(ValueError, match="weights must have 2 rows of 1 numbers"):
        heatmap_png([[1.0]], ["a", "b"], ["c"], "t")
    with pytest.raises(ValueError, match="weights must have 0 rows"):
        heatmap_png([], [], [], "t")
    long = ["a"] * (MAX_CELLS + 1)
    with pytest.raises(ValueError, match="at most 120 per side, not 1 x 121"):
        heatmap_png([[0.0] * len(long)], ["a"], long, "t")


def entry(step: int, loss: float, kind: str = "step") -> dict[str, object]:
    return {"kind": kind, "number" if kind == "step" else "step": step, "loss": loss}


def test_losses_by_hand():
    log = [entry(1, 4.0), entry(2, 2.0), entry(2, 3.0, "dev"), entry(3, 1.0)]
    assert loss_lines(log) == {"train": ([1, 2, 3], [4.0, 2.0, 1.0]), "dev": ([2], [3.0])}
    assert loss_lines([]) == {}


def test_many_steps_become_few_points():
    lines = loss_lines([entry(n, float(n)) for n in range(1, 3 * MAX_POINTS + 2)])
    x, y = lines["train"]
    assert len(x) == len(y) <= MAX_POINTS
    assert (x[0], y[0]) == (4, 2.5)
    assert x[-1] == 3 * MAX_POINTS + 1
    assert (x[-1], y[-1]) == (1201, 1201.0)
