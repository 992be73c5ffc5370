"""Text of unknown origin at the borders: terminals, spreadsheets, HTML pages."""

import base64
import csv
import io
import os
import re
from hashlib import sha256

import numpy as np
import pytest

from regard.batch_prediction.line_stream import decode_lines
from regard.view.attention_map import AttentionMap
from regard.view.export import as_csv
from regard.view.page import html_page, page_script
from regard.view.sanitize import (
    COLOR_CODES,
    CURSOR_CODES,
    SanitizedTerminal,
    csv_cell,
    sanitize_text,
    security_policy,
)

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u2028-\u202e\u2066-\u2069]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcödé 日本 👩‍👩‍👧 עברית\t\n", "plain ünïcödé 日本 👩‍👩‍👧 עברית\t\n"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\x00b\rc\x9b2J", r"a\x00b\rc\x9b2J"),
        ("exe\u202egpj.\u2066", r"exe\u202egpj.\u2066"),
        ("\ud800", r"\ud800"),
    ],
)
def test_controls_become_escapes(text, shown):
    assert sanitize_text(text) == shown


def written(text: str, codes: str) -> str:
    """What a terminal receives."""
    parent, child = os.openpty()
    with open(child, "w", encoding="utf-8", newline="\n") as stream:  # noqa: PTH123
        terminal = SanitizedTerminal(stream, codes)
        terminal.write(text)
        terminal.flush()
        received = os.read(parent, 10_000).decode().replace("\r\n", "\n")
        terminal.detach()
    os.close(parent)
    return received


@pytest.mark.parametrize(
    ("text", "codes", "expected"),
    [
        ("\x1b[48;2;1;8;255;97ma\x1b[0m\x1b[1;31m\x1b[m", COLOR_CODES, None),  # our colors
        ("\x1b[48;5;8mb\x1b[0m", COLOR_CODES, None),
        ("\x1b[8mhidden", COLOR_CODES, r"\x1b[8mhidden"),
        ("\x1b[38;5;1;8mhidden", COLOR_CODES, r"\x1b[38;5;1;8mhidden"),
        ("\x1b[1A\x1b[2K\x1b[?25l", f"{COLOR_CODES}|{CURSOR_CODES}", None),  # a progress bar
        ("\x1b[1A\x1b[2K", COLOR_CODES, r"\x1b[1A\x1b[2K"),
        ("\x1b]8;;http://a\x07x\u202e\x00", COLOR_CODES, r"\x1b]8;;http://a\x07x\u202e\x00"),
    ],
)
def test_a_terminal_gets_only_codes_of_our_own(text, codes, expected):
    assert written(text, codes) == (expected or text)


def test_a_byte_order_mark_on_standard_input_is_dropped():
    lines = decode_lines([b"\xef\xbb\xbfone\r\n", b"two\n"], "line {}")
    assert list(lines) == ["one", "two"]


def test_a_spreadsheet_runs_no_token():
    tokens = ["=cmd|' /C calc'!A0", "@SUM(1)", "-", "a\rb", "+1", "x,y"]
    row = np.full((1, 1, len(tokens)), 1 / len(tokens), np.float32)
    text = as_csv(AttentionMap(row, ["all"], tokens, kind="pool")).decode()
    assert not STEERING.search(text)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [entry["key_token"] for entry in rows] == [csv_cell(token) for token in tokens]
    assert [csv_cell(token) for token in tokens[:3]] == ["'=cmd|' /C calc'!A0", "'@SUM(1)", "-"]


def test_a_page_allows_its_own_script_only():
    page = html_page(AttentionMap([[[1.0]]], ["a"], ["b"], title="t"))
    digest = base64.b64encode(sha256(page_script().encode()).digest()).decode()
    assert security_policy(page_script()) in page
    assert f"default-src 'none'; script-src 'sha256-{digest}'" in page
    assert f"<script>{page_script()}</script>" in page
