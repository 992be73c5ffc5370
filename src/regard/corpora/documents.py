"""Plain text for language models: files, lines or paragraphs, each a record {"text": …}."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Literal, get_args

from regard.corpora.corpus import Record, check_name
from regard.corpora.files import Paths
from regard.corpora.labelled import HeldOut, listed, shares, text_files
from regard.corpora.lines import check_file, lines, shown, whole

Unit = Literal["file", "line", "paragraph"]
Placed = tuple[str, str]  # where a text stands, and the text


class Documents(HeldOut):
    """Files, or folders of `.txt` and `.txt.gz` files; gzipped where the name says so.

    A `unit` is a whole file, a line (an empty one too, so that line ends can be counted), or a
    paragraph, which blank lines divide. A dev or test that is not given is split off from the end
    of train, a share `held_out` of its characters each: running text is never held out in bits. A
    file is cut at that very character, a line or paragraph belongs to where it begins.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        unit: Unit = "file",
        held_out: float = 0.05,
    ) -> None:
        check_name("unit", unit, get_args(Unit))
        given = {"train": train, "dev": dev, "test": test}
        self.paths = {split: found(paths) for split, paths in given.items() if paths is not None}
        self.unit: Unit = unit
        self.shares = shares(self.paths, held_out)

    def describe(self) -> str:
        each = [f"{split} {summed(paths)}" for split, paths in self.paths.items()]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        return f"documents ({self.unit}): {', '.join(each)}; licence as you know it"

    def _placed(self, split: str) -> Iterator[tuple[str, Record]]:
        return ((place, {"text": text}) for place, text in self._texts(split))

    def _texts(self, split: str) -> Iterator[Placed]:
        if split in self.paths and not (split == "train" and self.shares):
            yield from self._units(split)
            return
        start, end = self._bounds[split]
        if start >= end:
            path = shown(self.paths["train"][0])
            raise ValueError(f"{path}: too short to hold out {split}; give files for {split}")
        at = 0
        for place, text in self._units("train"):
            if self.unit == "file":
                part = text[max(0, start - at) : max(0, end - at)]
                if part:
                    yield place, part
            elif start <= at < end:
                yield place, text
            at += self._size(text)

    @cached_property
    def _bounds(self) -> dict[str, tuple[int, int]]:
        """First and last character of each split in train, which is read through for it once."""
        total = sum(self._size(text) for _, text in self._units("train"))
        left = sum(self.shares.values())
        bounds = {"train": (0, int(total * (1 - left)))}
        for split, share in self.shares.items():
            start, left = int(total * (1 - left)), left - share
            bounds[split] = (start, int(total * (1 - left)))
        return bounds

    def _size(self, text: str) -> int:
        return len(text) + (self.unit != "file")  # the end of a line is a character, too

    def _units(self, split: str) -> Iterator[Placed]:
        for path in self.paths[split]:
            match self.unit:
                case "file":
                    yield shown(path), whole(path)
                case "line":
                    for number, line in enumerate(lines(path), 1):
                        yield f"{shown(path)}:{number}", line
                case "paragraph":
                    yield from paragraphs(path)


def paragraphs(path: Path | str) -> Iterator[Placed]:
    """Lines that stand together, with the place of the first."""
    numbered = enumerate(lines(path), 1)
    for blank, group in groupby(numbered, key=lambda one: not one[1].strip()):
        if not blank:
            numbers, together = zip(*group, strict=True)
            yield f"{shown(path)}:{numbers[0]}", "\n".join(together)


def found(paths: Paths) -> tuple[Path | str, ...]:
    """Files as they were given, and those of folders and folders in them, in order."""
    files: list[Path | str] = []
    for path in listed(paths):
        if Path(path).is_dir():
            files += text_files(Path(path), "**/*.txt")
        else:
            check_file(path)
            files.append(path)
    if not files:
        raise ValueError("files are missing: give at least one")
    return tuple(files)


def summed(paths: Sequence[Path | str]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{shown(paths[0])}{more}"
