"""Print long texts through a pager."""

import os
import pydoc
import sys

from rich.console import Console


def print_paged(text: str, console: Console) -> None:
    """Print a text; if the terminal has too few lines for it, through `PAGER` or less."""
    fits = text.count("\n") + 1 < console.height
    if fits or not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(text)
        return
    os.environ.setdefault("LESS", "FRX")  # keep colors; quit at once if the text fits
    pydoc.pager(text + "\n")
