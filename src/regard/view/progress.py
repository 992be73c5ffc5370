"""Progress bars: on standard error of a terminal, as HTML in a notebook, or as lines of a file."""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from html import escape
from typing import Protocol, runtime_checkable

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

SECONDS_BETWEEN_UPDATES = 0.2  # of a bar in a notebook
SECONDS_BETWEEN_LINES = 10.0  # in a file or a pipe


@runtime_checkable
class ProgressBar(Protocol):
    """A bar that counts steps, with a short text, and prints lines above itself."""

    def advance(self, count: int) -> None: ...

    def update(self, done: int, text: str) -> None: ...

    def log(self, line: str) -> None: ...

    def set_total(self, total: int | None) -> None: ...


class TerminalBar:
    """A bar at the bottom of a terminal."""

    def __init__(self, progress: Progress, task_id: TaskID):
        self.progress, self.task_id = progress, task_id

    def advance(self, count: int) -> None:
        self.progress.advance(self.task_id, count)

    def update(self, done: int, text: str) -> None:
        self.progress.update(self.task_id, completed=done, text=text)

    def log(self, line: str) -> None:
        """Print a line above the bar."""
        self.progress.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def set_total(self, total: int | None) -> None:
        self.progress.update(self.task_id, total=total)


class LineLog:
    """Lines in a file or a pipe: messages, and every ten seconds how far the work is."""

    def __init__(self, name: str, total: int | None, console: Console, *, is_quiet: bool = False):
        self.name, self.total, self.console, self.is_quiet = name, total, console, is_quiet
        self.done, self.next_line = 0, time.monotonic() + SECONDS_BETWEEN_LINES

    def advance(self, count: int) -> None:
        self.update(self.done + count, "")

    def update(self, done: int, text: str) -> None:
        self.done = done
        if not self.is_quiet and time.monotonic() >= self.next_line:
            self.next_line = time.monotonic() + SECONDS_BETWEEN_LINES
            count = f"{done}/{self.total}" if self.total else f"{done}"
            self.log(f"{self.name} {count}  {text}".rstrip())

    def log(self, line: str) -> None:
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def set_total(self, total: int | None) -> None:
        self.total = total


class HiddenBar:
    """No bar and no lines: for a process beside the one that shows them."""

    def advance(self, count: int) -> None: ...

    def update(self, done: int, text: str) -> None: ...

    def log(self, line: str) -> None: ...

    def set_total(self, total: int | None) -> None: ...


class NotebookBar:
    """A bar below the cell of a notebook; it needs no widgets."""

    def __init__(self, name: str, total: int | None):
        from IPython.display import HTML, display

        self.name, self.total, self.done, self.text = name, total, 0, ""
        self.html, self.start = HTML, time.monotonic()
        self.next_update = self.start + SECONDS_BETWEEN_UPDATES
        self.handle = display(HTML(self.render()), display_id=True)

    def advance(self, count: int) -> None:
        self.update(self.done + count, self.text)

    def update(self, done: int, text: str) -> None:
        self.done, self.text = done, text
        if time.monotonic() >= self.next_update:
            self.draw()

    def log(self, line: str) -> None:
        print(line)

    def set_total(self, total: int | None) -> None:
        self.total = total

    def draw(self) -> None:
        self.next_update = time.monotonic() + SECONDS_BETWEEN_UPDATES
        if self.handle is not None:
            self.handle.update(self.html(self.render()))

    def render(self) -> str:
        """Return the bar as HTML: name, bar, count, text, and the time that is left."""
        count = f"{self.done}/{self.total}" if self.total else f"{self.done}"
        attributes = f' max="{self.total}" value="{self.done}"' if self.total else ""
        left = ""
        if self.total and self.done:
            seconds = (time.monotonic() - self.start) * (self.total - self.done) / self.done
            left = f"{int(seconds) // 60}:{int(seconds) % 60:02} left"
        bar, text = f"<progress{attributes}></progress>", escape(self.text)
        parts = [escape(self.name), bar, count, text, left]
        return f"<code>{' '.join(part for part in parts if part)}</code>"


@contextmanager
def progress_bar(
    name: str, total: int | None, *, enabled: bool = True, hidden: bool = False
) -> Generator[ProgressBar]:
    """Show a bar while the block runs.

    A bar that is not `enabled` prints its lines only; a `hidden` one prints nothing.
    """
    if hidden:
        yield HiddenBar()
        return
    console = Console(stderr=True)
    if enabled and console.is_jupyter:
        bar = NotebookBar(name, total)
        try:
            yield bar
        finally:
            bar.draw()
            sys.stdout.flush()
        return
    if not enabled or not console.is_terminal:
        yield LineLog(name, total, console, is_quiet=not enabled)
        return
    columns = [
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[text]}"),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, console=console) as progress:
        yield TerminalBar(progress, progress.add_task(name, total=total, text=""))
