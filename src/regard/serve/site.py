"""The page at /: one HTML file with its styles and scripts, which asks no other host."""

import base64
from functools import cache
from hashlib import sha256
from importlib.resources import files

from regard.view.page import viewer_script, viewer_style

STYLE, VIEWER, SCRIPT = "/* style */", "/* viewer */", "/* script */"
SCRIPT_FILES = (
    "dom",
    "client",
    "links",
    "drawing",
    "notes",
    "form",
    "grids",
    "results",
    "words",
    "edits",
    "picture",
    "pane",
    "app",
)


def page_file(name: str) -> str:
    return (files("regard.serve") / "page" / name).read_text("utf-8")


@cache
def page_script() -> str:
    """Return the scripts of the page as one, whose names do not clash with the viewer's."""
    parts = "\n".join(page_file(f"{name}.js") for name in SCRIPT_FILES)
    return f'(() => {{\n"use strict";\n{parts}\n}})();'


@cache
def page_html() -> str:
    """Return the page, with its styles and scripts inside."""
    page = page_file("page.html").replace(STYLE, viewer_style() + page_file("page.css"))
    return page.replace(VIEWER, viewer_script()).replace(SCRIPT, page_script())


@cache
def page_policy() -> str:
    """Return the Content-Security-Policy: only the scripts of the page itself run."""
    hashes = [
        f"'sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}'"
        for script in (viewer_script(), page_script())
    ]
    return (
        f"default-src 'none'; script-src {' '.join(hashes)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; media-src data: blob:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'self'"
    )
