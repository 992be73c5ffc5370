"""Progress bars: on standard error of a terminal, or as HTML in a notebook."""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from html import escape
from typing import Protocol, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

SECONDS_BETWEEN_UPDATES = 0.2  # of a bar in a notebook


@runtime_checkable
class ProgressBar(Protocol):
    """A bar that counts steps, with a short text, and prints lines above itself."""

    def advance(self, count: int) -> None: ...

    def update(self, done: int, text: str) -> None: ...

    def log(self, line: str) -> None: ...


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
def progress_bar(name: str, total: int | None, *, enabled: bool = True) -> Generator[ProgressBar]:
    """Show a bar while the block runs; a bar that is not `enabled` prints its lines only."""
    console = Console(stderr=True)
    if enabled and console.is_jupyter:
        bar = NotebookBar(name, total)
        try:
            yield bar
        finally:
            bar.draw()
            sys.stdout.flush()
        return
    columns = [
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed}/{task.total}" if total else "{task.completed}"),
        TextColumn("{task.fields[text]}"),
        TimeRemainingColumn(),
    ]
    # In a file or a pipe, rich would print the finished bar as a line among the messages.
    is_shown = enabled and console.is_terminal
    with Progress(*columns, console=console, disable=not is_shown) as progress:
        yield TerminalBar(progress, progress.add_task(name, total=total, text=""))
