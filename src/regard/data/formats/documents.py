"""Plain text for language models: files, lines or paragraphs, each a record {"text": …}."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Literal, get_args

from regard.data.corpus import Record, check_name
from regard.data.formats.labeled_texts import SplitFiles, held_out_shares, path_tuple, text_files
from regard.data.formats.lines import check_file, display_name, read_lines, read_text
from regard.data.formats.text_pairs import Paths
from regard.errors import InputError

DocumentUnit = Literal["file", "line", "paragraph"]
LocatedText = tuple[str, str]  # location, text


class DocumentFiles(SplitFiles):
    """A corpus of text files, or folders of `.txt` and `.txt.gz` files.

    A record is a `unit`: a file, a line (also an empty one, so that line ends can be counted), or
    a paragraph between blank lines. A missing dev or test is taken from the end of train, each a
    share `held_out` of its characters. A file is cut at that character; a line or paragraph belongs
    to the split in which it begins.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        unit: DocumentUnit = "file",
        held_out: float = 0.05,
    ) -> None:
        check_name("unit", unit, get_args(DocumentUnit))
        given_paths = {"train": train, "dev": dev, "test": test}
        self.paths = {
            split: list_text_files(paths)
            for split, paths in given_paths.items()
            if paths is not None
        }
        self.unit: DocumentUnit = unit
        self.shares = held_out_shares(self.paths, held_out)

    def describe(self) -> str:
        each = [f"{split} {summarize_paths(paths)}" for split, paths in self.paths.items()]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        return f"documents ({self.unit}): {', '.join(each)}; license not stated"

    def _located_records(self, split: str) -> Iterator[tuple[str, Record]]:
        return ((location, {"text": text}) for location, text in self._located_texts(split))

    def _located_texts(self, split: str) -> Iterator[LocatedText]:
        if split in self.paths and not (split == "train" and self.shares):
            yield from self._located_units(split)
            return
        start, end = self._split_bounds[split]
        if start >= end:
            path = display_name(self.paths["train"][0])
            raise InputError(f"{path}: too short to hold out {split}; give files for {split}")
        offset = 0
        for location, text in self._located_units("train"):
            if self.unit == "file":
                chunk = text[max(0, start - offset) : max(0, end - offset)]
                if chunk:
                    yield location, chunk
            elif start <= offset < end:
                yield location, text
            offset += self._text_size(text)

    @cached_property
    def _split_bounds(self) -> dict[str, tuple[int, int]]:
        """Return start and end of each split in characters of train, which is read once for it."""
        total = sum(self._text_size(text) for _, text in self._located_units("train"))
        remaining = sum(self.shares.values())
        bounds = {"train": (0, int(total * (1 - remaining)))}
        for split, share in self.shares.items():
            start, remaining = int(total * (1 - remaining)), remaining - share
            bounds[split] = (start, int(total * (1 - remaining)))
        return bounds

    def _text_size(self, text: str) -> int:
        return len(text) + (self.unit != "file")  # the end of a line counts as a character

    def _located_units(self, split: str) -> Iterator[LocatedText]:
        for path in self.paths[split]:
            match self.unit:
                case "file":
                    yield display_name(path), read_text(path)
                case "line":
                    for number, line in enumerate(read_lines(path), 1):
                        yield f"{display_name(path)}:{number}", line
                case "paragraph":
                    yield from read_paragraphs(path)


def read_paragraphs(path: Path | str) -> Iterator[LocatedText]:
    """Yield paragraphs, each with the location of its first line."""
    numbered_lines = enumerate(read_lines(path), 1)
    for blank, group in groupby(
        numbered_lines, key=lambda numbered_line: not numbered_line[1].strip()
    ):
        if not blank:
            numbers, paragraph = zip(*group, strict=True)
            yield f"{display_name(path)}:{numbers[0]}", "\n".join(paragraph)


def list_text_files(paths: Paths) -> tuple[Path | str, ...]:
    """Return the files in order, with folders replaced by all text files below them."""
    files: list[Path | str] = []
    for path in path_tuple(paths):
        if Path(path).is_dir():
            files += text_files(Path(path), "**/*.txt")
        else:
            check_file(path)
            files.append(path)
    if not files:
        raise InputError("no files; give at least one")
    return tuple(files)


def summarize_paths(paths: Sequence[Path | str]) -> str:
    suffix = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{display_name(paths[0])}{suffix}"
