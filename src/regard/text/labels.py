"""The classes of a task by name, in a fixed order."""

import json
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from regard.config.whole import write_whole

SHOWN = 10


class Labels:
    """Names of classes; a name's place is its number."""

    def __init__(self, names: Iterable[str]):
        self.names = list(names)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        if len(self.names) < 2 or len(self.numbers) < len(self.names):
            raise ValueError(f"labels must be at least two different ones, not {self.names}")

    @property
    def size(self) -> int:
        return len(self.names)

    @classmethod
    def learn(cls, labels: Iterable[str]) -> "Labels":
        """All that occur, sorted: numbers by their value, so that 10 comes after 9."""
        found = set(labels)
        as_numbers = all(name.lstrip("-").isdecimal() for name in found)
        return cls(sorted(found, key=int) if as_numbers else sorted(found))

    def number(self, name: str, place: str) -> int:
        """`place` says in a message where the name was found."""
        if name in self.numbers:
            return self.numbers[name]
        near = get_close_matches(name, self.names, 1)
        shown = ", ".join(self.names[:SHOWN]) + (", …" if self.size > SHOWN else "")
        hint = f"did you mean {near[0]!r}?" if near else f"there are {shown}"
        raise ValueError(f"{place}: label {name!r} is not in the training data; {hint}")

    def save(self, path: Path | str) -> None:
        write_whole(Path(path), (json.dumps(self.names, ensure_ascii=False) + "\n").encode())

    @classmethod
    def load(cls, path: Path | str) -> "Labels":
        try:
            names = json.loads(Path(path).read_text("utf-8"))
        except ValueError as error:
            raise ValueError(f"{path}: not a list of labels, or a damaged one ({error})") from None
        if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            raise ValueError(f"{path}: not a list of labels")
        return cls(names)
