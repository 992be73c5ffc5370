"""`regard list`."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

from regard.attention.catalogue import NORMALIZERS, SCORES

GROUPS = ["models", "tasks", "presets", "corpora", "scores", "normalizers"]
SOURCES = Path(__file__).parents[2] / "src"


def test_json_holds_every_catalogue(regard):
    done = regard("list", "--json")
    groups = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(groups) == GROUPS
    assert [entry["name"] for entry in groups["scores"]] == list(SCORES)
    assert [entry["name"] for entry in groups["normalizers"]] == list(NORMALIZERS)
    for entry in groups["models"]:
        assert list(entry) == ["name", "paper", "file", "tasks"]
    for entry in groups["scores"] + groups["normalizers"]:
        assert list(entry) == ["name", "equation", "paper", "file"]


def test_the_files_it_names_exist(regard):
    groups = json.loads(regard("list", "--json").stdout)
    entries = [entry for group in groups.values() for entry in group]
    files = {entry["file"] for entry in entries if "file" in entry}
    assert files
    assert [file for file in files if not (SOURCES / file).is_file()] == []


def test_a_pipe_gets_one_line_an_entry_without_colour(regard):
    lines = regard("list", COLUMNS="40").stdout.splitlines()
    for name, piece in (SCORES | NORMALIZERS).items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert piece.equation in line
        assert piece.paper in line
    assert not any("\x1b" in line for line in lines)
    assert not any(line != line.rstrip() for line in lines)


def test_every_group_is_there_or_said_to_be_empty(regard):
    out = regard("list").stdout
    assert all(group in out for group in GROUPS)


def test_a_terminal_of_80_columns_is_kept_to():
    """What a terminal shows, by a pseudo-terminal."""
    main, side = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "50"}
    command = [sys.executable, "-m", "regard", "list"]
    process = subprocess.Popen(
        command, stdout=side, stderr=side, env={**environment, "NO_COLOR": "1"}
    )
    os.close(side)
    shown = b""
    try:
        while part := os.read(main, 65536):
            shown += part
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(main)
    assert process.wait() == 0
    lines = [line for line in shown.decode().splitlines() if "\x1b" not in line]
    assert max(map(len, lines)) <= 80
    assert any(line.strip().startswith("scaled_dot") for line in lines)
