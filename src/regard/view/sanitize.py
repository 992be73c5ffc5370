"""Text of unknown origin, made harmless for a terminal.

Control characters could move the cursor, rewrite earlier lines, change the title of the window or
reverse the order of letters. They are shown as escapes, such as \x1b, so that nothing is hidden.
"""

import io
import re
import sys
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


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "surrogatepass").decode("ascii")
