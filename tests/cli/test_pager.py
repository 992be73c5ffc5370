"""Paging, in a terminal that is one."""

import os
import pty
import subprocess
import sys

import pytest

SHOW = """
from rich.console import Console
from regard.cli.pager import print_paged
print_paged("\\n".join(map(str, range({lines}))), Console())
"""


def shown(lines: int, **settings: str) -> str:
    """What a terminal of ten lines gets to see."""
    terminal, other = pty.openpty()
    environ = {**os.environ, "LINES": "10", "COLUMNS": "40", "TERM": "xterm", **settings}
    words = [sys.executable, "-c", SHOW.format(lines=lines)]
    child = subprocess.Popen(words, stdin=other, stdout=other, env=environ)
    os.close(other)
    found = b""
    try:
        while some := os.read(terminal, 4096):
            found += some
    except OSError:  # how a terminal says that its last writer is gone
        pass
    os.close(terminal)
    assert child.wait() == 0
    return found.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(("lines", "paged"), [(9, False), (10, True)])
def test_what_is_taller_than_the_window_goes_through_the_pager(lines, paged):
    numbers = [f"page {n}" if paged else str(n) for n in range(lines)]
    assert shown(lines, PAGER="sed s/^/page\\ /").splitlines() == numbers


def test_colours_reach_less():
    assert shown(30, PAGER='echo "$LESS"; cat >/dev/null').strip() == "FRX"
    assert shown(30, PAGER='echo "$LESS"; cat >/dev/null', LESS="S").strip() == "S"


def test_a_file_is_never_paged(capsys, monkeypatch):
    from rich.console import Console

    from regard.cli.pager import print_paged

    monkeypatch.setenv("PAGER", "false")
    print_paged("\n" * 100, Console(height=10))
    assert capsys.readouterr().out == "\n" * 101
