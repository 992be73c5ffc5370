"""Tests of points and distances: synthetic sets, files, and error messages."""

import json
import math

import pytest

from regard.config.data.proteins import DistancesDataConfig, PointsDataConfig
from regard.data.build import build_corpus
from regard.data.synthetic.points import BOND_LENGTH, Points, parse_distances


def test_records_depend_on_settings_and_index_alone():
    corpus, larger = Points(5, held_out=2), Points(9, held_out=2)
    assert [*corpus.read("train")] == [*larger.read("train")][:5]
    assert corpus.example("dev", 0) != corpus.example("test", 0)
    assert corpus.example("dev", 0) != Points(seed=1).example("dev", 0)
    assert len([*corpus.read("dev")]) == 2
    assert "points" in build_corpus(PointsDataConfig(size=3)).describe()


def test_clouds_are_in_their_cube():
    for record in Points(20, min_points=3, max_points=6).read("train"):
        points = json.loads(record["text"])["points"]
        assert 3 <= len(points) <= 6
        assert all(0 <= x <= 12 for point in points for x in point)
        assert record["visible_fraction"] == 0.35


def test_chains_have_bond_lengths_and_are_folded():
    for record in Points(4, shape="chain", min_points=40, max_points=40).read("train"):
        _, table = parse_distances(record["text"], "it")
        steps = [table[n][n + 1] for n in range(39)]
        assert max(abs(step - BOND_LENGTH) for step in steps) < 0.02
        assert max(map(max, table)) < 39 * BOND_LENGTH / 3  # folded, not straight


def test_points_and_distances_give_one_table(tmp_path):
    points = [[0, 0, 0], [3, 0, 0], [3, 4, 0]]
    _, table = parse_distances(json.dumps({"points": points}), "it")
    assert table == [[0, 3, 5], [3, 0, 4], [5, 4, 0]]
    path = tmp_path / "a.jsonl"
    data = {"sequence": "mkv", "distances": [[0, 3, None], [3, 0, 4], [None, 4, 9]]}
    path.write_text(json.dumps(data) + "\n")
    [record] = build_corpus(
        DistancesDataConfig(train=str(path), visible_fraction=0.5, held_out=0.0)
    ).read("train")
    assert record["visible_fraction"] == 0.5
    letters, table = parse_distances(record["text"], "it")
    assert letters == "MKV"
    assert table == [[0, 3, None], [3, 0, 4], [None, 4, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[0, 1]", "TEXT: not JSON"),
        ("[]", "TEXT: expected an object with either points or distances"),
        ('{"points": [], "distances": []}', "TEXT: expected an object with either"),
        ('{"points": [[0, 0, 0]]}', "TEXT: 'points' must be a list of at least two"),
        ('{"points": [[0, 0, 0], [1, 2]]}', "TEXT: point 2 must be three numbers, not [1, 2]"),
        ('{"points": [[0, 0, 0], [1, 2, true]]}', "TEXT: point 2 must be three numbers"),
        ('{"distances": 3}', "TEXT: 'distances' must be a table, as [[0, 3.8], [3.8, 0]]"),
        ('{"distances": [[0, 1], [1]]}', "TEXT: row 2 must have 2 distances"),
        ('{"distances": [[0, -1], [-1, 0]]}', "TEXT: row 1, column 2: -1 is no distance; write"),
        ('{"distances": [[0, 1], [2, 0]]}', "TEXT: row 2, column 1 is 2, but row 1, column 2 is 1"),
        ('{"distances": [[0, 1], [1, 0]], "sequence": "M"}', "TEXT: 1 residues, but 2 points"),
    ],
)
def test_error_messages(text, message):
    with pytest.raises(ValueError) as caught:
        parse_distances(text, "TEXT")
    assert str(caught.value).startswith(message)


def test_bad_settings():
    for settings, message in (
        ({"visible_fraction": 1.0}, "visible_fraction must be at least 0 and less than 1, not 1.0"),
        ({"min_points": 2}, "min_points must be from 3 to max_points"),
        ({"size": 0}, "size must be at least 1, not 0"),
    ):
        with pytest.raises(ValueError, match=message):
            Points(**settings)
    assert math.isclose(BOND_LENGTH, 3.8)
