"""Rows from files, found by wishes; replies with blanks, and filled in."""

import json
import sqlite3

import pytest

from regard.data.database import Database

ROWS = [
    {"name": "The Copper Pot", "food": "thai", "area": "south", "phone": "01 23"},
    {"name": "Pot", "food": "thai", "area": "north", "phone": "04 56"},
    {"name": "Elm South", "food": "greek", "area": "south", "phone": ""},
]
ASKED = ["food", "area"]


@pytest.fixture
def base():
    return Database(ROWS, ASKED)


def test_wishes_are_all_met(base):
    assert [row["name"] for row in base.find_rows({"food": "Thai"})] == ["The Copper Pot", "Pot"]
    assert [row["name"] for row in base.find_rows({"food": "any", "area": "south"})] == [
        "The Copper Pot",
        "Elm South",
    ]
    assert base.find_rows({"food": "thai", "area": "west"}) == []
    assert base.find_rows({}) == ROWS
    assert base.find_rows({"phone": "nothing"}) == ROWS  # nobody has wishes about it


def test_values_become_blanks_the_longest_first(base):
    assert base.delexicalize("the copper pot is a Thai place; call 01 23.") == (
        "[name] is a [food] place; call [phone]."
    )
    assert base.delexicalize("Elm South is in the south") == "[name] is in the [area]"
    assert base.delexicalize("southern pottery") == "southern pottery"  # words, not parts of them


def test_blanks_are_filled_from_the_row_or_the_wishes(base):
    wishes = {"food": "thai", "area": "any"}
    text = "[name]: [food], [area], [phone], [what]"
    assert base.lexicalize(text, ROWS[0], wishes) == "The Copper Pot: thai, south, 01 23, [what]"
    assert base.lexicalize(text, None, wishes) == "[name]: thai, [area], [phone], [what]"
    assert base.lexicalize("[phone]", ROWS[2], {}) == "[phone]"  # nothing is known of it


def test_kept(base, tmp_path):
    base.save(tmp_path / "database.json")
    again = Database.load(tmp_path / "database.json")
    assert (again.rows, again.slot_columns, again.columns) == (
        base.rows,
        base.slot_columns,
        base.columns,
    )
    assert base
    assert not Database([], [])


def test_three_kinds_of_file(base, tmp_path):
    lines = [",".join(ROWS[0]), *(",".join(row.values()) for row in ROWS)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "a.json").write_text(json.dumps(ROWS))
    with sqlite3.connect(tmp_path / "a.sqlite") as made:
        made.execute("CREATE TABLE places (name, food, area, phone)")
        rows = [tuple(row.values()) for row in ROWS]
        made.executemany("INSERT INTO places VALUES (?, ?, ?, ?)", rows)
    for name in ("a.csv", "a.json", "a.sqlite"):
        assert Database.read(tmp_path / name, ASKED).rows == base.rows, name


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "name,food\nPot,thai,south\n", "a.csv:2: 3 cells under 2 columns"),
        ("a.csv", "name,food\nPot,thai\n", "there is no column 'area'; there are name, food"),
        ("a.csv", "name,food\n", "there is no row in it"),
        ("a.json", '{"name": "Pot"}', "must be a list of objects, one for each row"),
        ("a.json", "[{", "not JSON"),
        ("a.sqlite", "no base", "not a database of SQLite"),
        ("a.xml", "<a/>", "a database is .csv, .json or .sqlite, not '.xml'"),
    ],
)
def test_bad_files(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=name) as error:
        Database.read(tmp_path / name, ASKED)
    assert message in str(error.value)
