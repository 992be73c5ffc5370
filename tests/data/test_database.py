"""Tests of the database of dialogues: search by slot values, placeholders, and files."""

import json
import sqlite3

import pytest

from regard.data.database import Database

ROWS = [
    {"name": "The Copper Pot", "food": "thai", "area": "south", "phone": "01 23"},
    {"name": "Pot", "food": "thai", "area": "north", "phone": "04 56"},
    {"name": "Elm South", "food": "greek", "area": "south", "phone": ""},
]
SLOT_COLUMNS = ["food", "area"]


@pytest.fixture
def database():
    return Database(ROWS, SLOT_COLUMNS)


def test_rows_match_all_slot_values(database):
    assert [row["name"] for row in database.find_rows({"food": "Thai"})] == [
        "The Copper Pot",
        "Pot",
    ]
    assert [row["name"] for row in database.find_rows({"food": "any", "area": "south"})] == [
        "The Copper Pot",
        "Elm South",
    ]
    assert database.find_rows({"food": "thai", "area": "west"}) == []
    assert database.find_rows({}) == ROWS
    assert database.find_rows({"phone": "nothing"}) == ROWS  # not a slot column


def test_delexicalize_replaces_longer_values_first(database):
    assert database.delexicalize("the copper pot is a Thai place; call 01 23.") == (
        "[name] is a [food] place; call [phone]."
    )
    assert database.delexicalize("Elm South is in the south") == "[name] is in the [area]"
    assert database.delexicalize("southern pottery") == "southern pottery"  # only complete words


def test_lexicalize_uses_the_row_then_the_belief(database):
    belief = {"food": "thai", "area": "any"}
    text = "[name]: [food], [area], [phone], [what]"
    assert (
        database.lexicalize(text, ROWS[0], belief) == "The Copper Pot: thai, south, 01 23, [what]"
    )
    assert database.lexicalize(text, None, belief) == "[name]: thai, [area], [phone], [what]"
    assert database.lexicalize("[phone]", ROWS[2], {}) == "[phone]"  # no value


def test_save_and_load(database, tmp_path):
    database.save(tmp_path / "database.json")
    loaded = Database.load(tmp_path / "database.json")
    assert (loaded.rows, loaded.slot_columns, loaded.columns) == (
        database.rows,
        database.slot_columns,
        database.columns,
    )
    assert database
    assert not Database([], [])


def test_csv_json_and_sqlite(database, tmp_path):
    lines = [",".join(ROWS[0]), *(",".join(row.values()) for row in ROWS)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "a.json").write_text(json.dumps(ROWS))
    with sqlite3.connect(tmp_path / "a.sqlite") as connection:
        connection.execute("CREATE TABLE places (name, food, area, phone)")
        rows = [tuple(row.values()) for row in ROWS]
        connection.executemany("INSERT INTO places VALUES (?, ?, ?, ?)", rows)
    for name in ("a.csv", "a.json", "a.sqlite"):
        assert Database.read(tmp_path / name, SLOT_COLUMNS).rows == database.rows, name


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "name,food\nPot,thai,south\n", "a.csv:2: 3 cells, but 2 columns"),
        ("a.csv", "name,food\nPot,thai\n", "no column 'area'; choose from name, food"),
        ("a.csv", "name,food\n", "no rows; add at least one"),
        ("a.json", '{"name": "Pot"}', "must be a list of objects, one for each row"),
        ("a.json", "[{", "not JSON"),
        ("a.sqlite", "no base", "not an SQLite database"),
        ("a.xml", "<a/>", "unknown suffix '.xml'; a database is .csv, .json or .sqlite"),
    ],
)
def test_bad_files(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=name) as error:
        Database.read(tmp_path / name, SLOT_COLUMNS)
    assert message in str(error.value)
