"""The class names of a task, in a fixed order."""

import json
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from regard.errors import InputError
from regard.files import write_atomic
from regard.parsing import read_json

MAX_LISTED_LABELS = 10


class Labels:
    """Class names; the index of a name is the number of its class."""

    def __init__(self, names: Iterable[str]):
        self.names = list(names)
        self.indices = {name: number for number, name in enumerate(self.names)}
        if len(self.names) < 2 or len(self.indices) < len(self.names):
            raise InputError(f"labels must be at least two different names, not {self.names}")

    @property
    def size(self) -> int:
        return len(self.names)

    @classmethod
    def from_data(cls, labels: Iterable[str]) -> "Labels":
        """Collect all labels, sorted; numbers are sorted by value, so that 10 follows 9."""
        names = set(labels)
        as_numbers = all(name.lstrip("-").isdecimal() for name in names)
        return cls(sorted(names, key=int) if as_numbers else sorted(names))

    def index(self, name: str, location: str) -> int:
        """Return the number of a class; the error for unknown names begins with `location`."""
        if name in self.indices:
            return self.indices[name]
        near = get_close_matches(name, self.names, 1)
        listed = ", ".join(self.names[:MAX_LISTED_LABELS]) + (
            ", …" if self.size > MAX_LISTED_LABELS else ""
        )
        hint = f"did you mean {near[0]!r}?" if near else f"the labels are {listed}"
        raise InputError(f"{location}: label {name!r} is not in the training data; {hint}")

    def save(self, path: Path | str) -> None:
        write_atomic(Path(path), (json.dumps(self.names, ensure_ascii=False) + "\n").encode())

    @classmethod
    def load(cls, path: Path | str) -> "Labels":
        names = read_json(Path(path), "this must be a list of labels")
        if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            raise InputError(f"{path}: not a list of labels")
        try:
            return cls(names)
        except ValueError as error:
            raise InputError(f"{path}: {error}") from None
