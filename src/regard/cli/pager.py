"""What is taller than the window, a page at a time."""

import os
import pydoc
import sys

from rich.console import Console


def print_paged(text: str, console: Console) -> None:
    """Print it; in a terminal too low for it, with `PAGER`, or less. `PAGER=cat` never stops."""
    fits = text.count("\n") + 1 < console.height
    if fits or not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(text)
        return
    os.environ.setdefault("LESS", "FRX")  # colours, and no page of its own for what fits after all
    pydoc.pager(text + "\n")
