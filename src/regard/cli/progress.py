"""Progress bars for what takes more than a moment; on standard error, apart from output."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class ProgressBar(NamedTuple):
    progress: Progress
    task_id: TaskID

    def advance(self, count: int) -> None:
        self.progress.advance(self.task_id, count)

    def update(self, done: int, text: str) -> None:
        self.progress.update(self.task_id, completed=done, text=text)

    def log(self, line: str) -> None:
        """A line above the bar, which stays."""
        self.progress.console.print(line, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def progress_bar(name: str, total: int | None) -> Generator[ProgressBar]:
    columns = [
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed}/{task.total}" if total else "{task.completed}"),
        TextColumn("{task.fields[text]}"),
        TimeRemainingColumn(),
    ]
    console = Console(stderr=True)
    # In a file or a pipe a bar would be one line, at the end, among those that say something.
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        yield ProgressBar(progress, progress.add_task(name, total=total, text=""))
