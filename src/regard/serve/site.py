"""The page at /: one HTML file with its styles and scripts, which asks no other host."""

import base64
import re
from functools import cache
from hashlib import sha256
from importlib.resources import files

STYLE, SCRIPT = "/* style */", "/* script */"


@cache
def page_html() -> str:
    """Return the page, with its styles and scripts inside."""
    folder = files("regard.serve") / "page"
    parts = {name: (folder / name).read_text("utf-8") for name in ("app.html", "app.css", "app.js")}
    page = parts["app.html"].replace(STYLE, parts["app.css"])
    return page.replace(SCRIPT, parts["app.js"])


@cache
def page_policy() -> str:
    """Return the Content-Security-Policy: only the scripts of the page itself run."""
    scripts = re.findall(r"<script>(.*?)</script>", page_html(), re.DOTALL)
    hashes = [
        f"'sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    ]
    return (
        f"default-src 'none'; script-src {' '.join(hashes)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; media-src data: blob:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'self'"
    )
