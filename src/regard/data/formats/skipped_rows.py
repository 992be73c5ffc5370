"""Rows that cannot be read: an error, or left out and counted."""

from collections.abc import Generator
from contextlib import contextmanager

from regard.errors import InputError


class SkippedRows:
    """Rows that cannot be read: an error, or with `is_allowed` counted and left out."""

    def __init__(self, is_allowed: bool = False) -> None:
        self.is_allowed = is_allowed
        self.messages: dict[str, str] = {}  # by location

    def add(self, location: str, problem: str) -> None:
        if not self.is_allowed:
            raise InputError(f"{location}: {problem}")
        self.messages.setdefault(location, problem)

    @contextmanager
    def row(self, location: str) -> Generator[None]:
        """Read a row in this block; if it has a fault, leave the block and count the row."""
        try:
            yield
        except InputError as error:
            if not self.is_allowed:
                raise
            self.add(location, str(error).removeprefix(f"{location}: "))

    def describe(self) -> str:
        """Return how many rows were skipped so far, and the first; an empty text if none was."""
        if not self.messages:
            return ""
        location, problem = next(iter(self.messages.items()))
        count = len(self.messages)
        return f"{count} {'row' if count == 1 else 'rows'} skipped (first: {location}: {problem})"
