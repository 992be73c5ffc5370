"""Text of unknown origin, made harmless for a terminal.

Control characters could move the cursor, rewrite earlier lines, change the title of the window or
reverse the order of letters. They are shown as escapes, such as \x1b, so that nothing is hidden.
"""

import base64
import io
import re
import sys
from hashlib import sha256
from typing import TextIO

# C0 except tab and line feed, DEL, C1, line separators, directions, halves of surrogate pairs
CONTROLS = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
# Colors, weight and underline; not 8, which conceals text
STYLE = r"(?:[34]8;5;\d{1,3}|[34]8;2;\d{1,3};\d{1,3};\d{1,3}|[0-79]|[1-9]\d|10[0-7])"
COLOR_CODES = rf"\x1b\[(?:{STYLE}(?:;{STYLE})*)?m"
# For progress bars: go to the start of the line, hide or show the cursor, go up, erase the line
CURSOR_CODES = r"\r|\x1b\[(?:\?25[hl]|\d*A|[0-2]?K)"


def sanitize_text(text: str) -> str:
    """Replace every control character by a visible escape; tabs and line feeds stay.

    >>> sanitize_text("a\\x1b[2Jb\\u202ec")
    'a\\\\x1b[2Jb\\\\u202ec'
    """
    return re.sub(CONTROLS, _escape, text)


class SanitizedTerminal(io.TextIOWrapper):
    """A terminal that shows control characters as escapes, except codes that regard writes itself.

    These are colors on standard output, and also moves of the cursor on standard error.
    """

    def __init__(self, stream: TextIO, allowed_codes: str) -> None:
        super().__init__(
            stream.buffer, stream.encoding, stream.errors, line_buffering=True, write_through=True
        )
        self.pattern = re.compile(f"({allowed_codes})|{CONTROLS}")

    def write(self, text: str, /) -> int:
        super().write(self.pattern.sub(lambda match: match[1] or _escape(match), text))
        return len(text)


def sanitize_terminals() -> None:
    """Let standard output and error, where they are terminals, show no control characters.

    A pipe or a file gets the exact text.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.isatty():
        sys.stdout = SanitizedTerminal(sys.stdout, COLOR_CODES)
    if isinstance(sys.stderr, io.TextIOWrapper) and sys.stderr.isatty():
        sys.stderr = SanitizedTerminal(sys.stderr, f"{COLOR_CODES}|{CURSOR_CODES}")


def terminal_text(text: str) -> str:
    """Return a text of unknown origin for standard output: sanitized if that is a terminal."""
    return sanitize_text(text) if sys.stdout.isatty() else text


def escape_line(text: str) -> str:
    """Return a text as one line: backslash, line feed and carriage return become two characters.

    >>> escape_line("one\ntwo"), escape_line("one\\ntwo")
    ('one\\ntwo', 'one\\\\ntwo')
    """
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def csv_cell(text: str) -> str:
    """Return a text that a spreadsheet shows and does not run.

    A text that begins like a formula gets an apostrophe in front, and control characters, such as
    a carriage return, become escapes.

    >>> csv_cell("=1+2"), csv_cell("=")
    ("'=1+2", '=')
    """
    cell = sanitize_text(text)
    is_formula = len(cell) > 1 and cell.startswith(("=", "+", "-", "@", "\t"))
    return f"'{cell}" if is_formula else cell


def security_policy(*scripts: str) -> str:
    """Return the tag of an HTML page that allows these inline scripts and images, and no network.

    Each script is allowed by its SHA-256, so that no other script can run.
    """
    digests = (base64.b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
    sources = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    policy = (
        f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{policy}">'


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "surrogatepass").decode("ascii")
