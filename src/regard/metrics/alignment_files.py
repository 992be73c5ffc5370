"""Read and write word alignments.

A link (i, j) means that source word i and target word j translate each other. In Python, words are
counted from 0. There are two formats, with a line for each sentence pair or for each link:

    0-0 1-2 2?1           Pharaoh; in gold files, `i?j` or `ipj` is possible, `i-j` is sure
    17 1 3 P              sentence, source word, target word, S or P  (Mihalcea & Pedersen 2003)
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from regard.errors import InputError

Link = tuple[int, int]
Links = frozenset[Link]
PairLengths = tuple[int, int]  # words of the source and of the target

LINK_PATTERN = re.compile(r"(\d{1,9})([-p?])(\d{1,9})")
NUMBERED_LINK_PATTERN = re.compile(r"(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})(?:\s+([SP]))?(?:\s+[\d.]+)?")


class GoldAlignment(NamedTuple):
    """Sure links, on which annotators agree, and possible links, which include the sure ones."""

    sure: Links
    possible: Links


def read_links(path: str | Path, base: int = 0) -> list[Links]:
    """Read Pharaoh format, one sentence pair a line; words are counted from `base`."""
    return [parse_links(line, f"{path}:{number}", base) for number, line in numbered_lines(path)]


def parse_links(line: str, location: str, base: int = 0, size: PairLengths | None = None) -> Links:
    """Parse a line of Pharaoh format for a pair of this size; errors name `location`."""
    pairs = list(parse_marked_links(line, location, base, size))
    if any(mark != "-" for _, mark in pairs):
        raise InputError(f"{location}: possible links are for gold files; use i-j, or read_gold")
    return frozenset(link for link, _ in pairs)


def write_links(path: str | Path, alignments: Iterable[Iterable[Link]], base: int = 0) -> None:
    """Write alignments in Pharaoh format, links in order."""
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(to_pharaoh(links, base) + "\n" for links in alignments)


def to_pharaoh(links: Iterable[Link], base: int = 0) -> str:
    """Return `0-0 1-2 …`, in order."""
    return " ".join(f"{i + base}-{j + base}" for i, j in sorted(links))


def read_gold(
    path: str | Path,
    base: int = 0,
    sentences: int | None = None,
    sizes: Sequence[PairLengths] | None = None,
) -> list[GoldAlignment]:
    """Read gold alignments in either format; the first line decides which.

    With a line for each link, sentences are counted from 1. `sentences` is their total number, as
    the last ones may have no links. With the `sizes` of all pairs, a link to a missing word is an
    error.
    """
    sentences = len(sizes) if sizes is not None else sentences
    lines = list(numbered_lines(path))
    first = next((line for _, line in lines if line.strip()), "")
    if NUMBERED_LINK_PATTERN.fullmatch(first.strip()):
        return parse_numbered_gold(path, lines, base, sentences, sizes)
    if sentences is not None and sentences != len(lines):
        raise InputError(
            f"{path} has {len(lines)} lines, but there are {sentences} sentences; give a line each"
        )
    alignments = []
    for number, line in lines:
        size = None if sizes is None else sizes[number - 1]
        alignments.append(parse_gold(line, f"{path}:{number}", base, size))
    return alignments


def parse_gold(
    line: str, location: str, base: int = 0, size: PairLengths | None = None
) -> GoldAlignment:
    """Parse a line of Pharaoh format with sure and possible links."""
    pairs = list(parse_marked_links(line, location, base, size))
    sure = frozenset(link for link, mark in pairs if mark == "-")
    return GoldAlignment(sure, frozenset(link for link, _ in pairs))


def parse_numbered_gold(
    path: str | Path,
    lines: Iterable[tuple[int, str]],
    base: int,
    sentences: int | None,
    sizes: Sequence[PairLengths] | None,
) -> list[GoldAlignment]:
    """Parse gold alignments with a line for each link; a link without S or P is sure."""
    by_sentence: dict[int, tuple[set[Link], set[Link]]] = {}
    for line_number, line in lines:
        if not line.strip():
            continue
        match = NUMBERED_LINK_PATTERN.fullmatch(line.strip())
        if match is None:
            raise InputError(
                f"{path}:{line_number}: expected 'sentence i j S', not {line.strip()!r}"
            )
        sentence = int(match[1])
        if sentence < 1 or (sentences is not None and sentence > sentences):
            valid_range = "counted from 1" if sentences is None else f"1 to {sentences}"
            raise InputError(
                f"{path}:{line_number}: no sentence {sentence}; sentences are {valid_range}"
            )
        size = None if sizes is None else sizes[sentence - 1]
        link = zero_based_link(match[2], match[3], base, f"{path}:{line_number}", size)
        sure, possible = by_sentence.setdefault(sentence, (set(), set()))
        possible.add(link)
        if match[4] != "P":
            sure.add(link)
    count = max(by_sentence, default=0) if sentences is None else sentences
    empty: tuple[set[Link], set[Link]] = (set(), set())
    return [
        GoldAlignment(*map(frozenset, by_sentence.get(sentence, empty)))
        for sentence in range(1, count + 1)
    ]


def parse_marked_links(
    line: str, location: str, base: int, size: PairLengths | None
) -> Iterator[tuple[Link, str]]:
    """Yield the links of a line of Pharaoh format, each with its mark."""
    for piece in line.split():
        match = LINK_PATTERN.fullmatch(piece)
        if match is None:
            raise InputError(f"{location}: expected links like 0-0 2-1, not {piece!r}")
        yield zero_based_link(match[1], match[3], base, location, size), match[2]


def zero_based_link(i: str, j: str, base: int, location: str, size: PairLengths | None) -> Link:
    """Return the link counted from 0, and check that it is within its pair."""
    link = int(i) - base, int(j) - base
    if min(link) < 0:
        raise InputError(f"{location}: no word 0, as words are counted from {base}")
    if size is not None and (link[0] >= size[0] or link[1] >= size[1]):
        raise InputError(
            f"{location}: link {i} to {j} is out of range: counted from {base}, the pair has "
            f"{size[0]} source and {size[1]} target words; correct the link or the base"
        )
    return link


def numbered_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, from 1."""
    with Path(path).open("rb") as file:
        for line_number, line in enumerate(file, 1):
            try:
                yield line_number, line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                raise InputError(f"{path}:{line_number}: not UTF-8; convert the file") from None
