"""Sentences whose words have tags, and perhaps one label for the whole, from files.

    conll    a line for each word, columns between tabs or spaces, a blank line behind a sentence
    jsonl    {"tokens": [...], "tags": [...]}, or a text with stretches by character: {"text": ...,
             "spans" or "entities": [{"start", "end", "label" or "entity"}]}; with "intent" or
             "label" where there is one
    folder   seq.in, seq.out and perhaps label: a line for each sentence

Records are {"text": words with spaces between, "tags": as many BIO tags}, and "label" if there is
one. All is gzipped where the name says so.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from regard.corpora.corpus import Record
from regard.corpora.files import Paths, suffix_of
from regard.corpora.labelled import ByHash, Placed, by_split, shares
from regard.corpora.lines import check_file, lines, parsed_lines, shown
from regard.corpora.tags import Scheme, Span, broken, converted, tags_of

Format = Literal["conll", "jsonl", "folder"]
SUFFIXES: dict[str, Format] = {
    **dict.fromkeys((".conll", ".iob", ".bio", ".txt", ".tsv", ".annotated"), "conll"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
}
DOCUMENT = "-DOCSTART-"  # CoNLL-2003's line between documents
WORDS, TAGS, LABEL = "seq.in", "seq.out", "label"
WORD = re.compile(r"\w+|[^\w\s]")


def conll(path: Path | str, word: int = 0, tag: int = -1) -> Iterator[Placed]:
    """Sentences of a CoNLL file, at the line of their first word; `word` and `tag` are columns."""
    words, tags, first, wide = list[str](), list[str](), 0, 0
    for number, line in enumerate([*lines(path), ""], 1):
        cells = line.split("\t") if "\t" in line else line.split()
        if not line.strip() or cells[0] == DOCUMENT:
            if words:
                yield f"{shown(path)}:{first}", {"text": " ".join(words), "tags": " ".join(tags)}
            words, tags = [], []
            continue
        place = f"{shown(path)}:{number}"
        wide = wide or len(cells)
        if len(cells) != wide:
            raise ValueError(
                f"{place}: {len(cells)} columns, but {wide} before; a line is a word and its tag, "
                "with one tab between, and sentences have blank lines between them"
            )
        if not -wide <= tag < wide or not word < wide or wide < 2:
            raise ValueError(f"{place}: {wide} columns, so there is no word and tag; see columns")
        if not (cell := cells[word].strip()) or " " in cell:
            raise ValueError(f"{place}: {cells[word]!r} is not one word")
        first = number if not words else first
        words.append(cell)
        tags.append(cells[tag].strip())


def json_spans(path: Path | str) -> Iterator[Placed]:
    for place, found in parsed_lines(path):
        if not isinstance(found, dict):
            raise ValueError(f"{place}: not an object; see docs/tasks/tag.md for what it holds")
        yield place, from_json(found, place)


def from_json(found: Mapping[str, Any], place: str) -> Record:
    """Tokens with tags, or a text with stretches of characters."""
    if "tokens" in found:
        tokens, tags = found["tokens"], found.get("tags")
        if not isinstance(tags, list) or len(tags) != len(tokens):
            raise ValueError(f"{place}: tags must be a list as long as tokens, {len(tokens)}")
        if not all(isinstance(t, str) and t and not re.search(r"\s", t) for t in [*tokens, *tags]):
            raise ValueError(f"{place}: tokens and tags must be words without spaces")
        record: Record = {"text": " ".join(tokens), "tags": " ".join(tags)}
    elif isinstance(found.get("text"), str):
        record = from_characters(found["text"], found.get("spans", found.get("entities")), place)
    else:
        raise ValueError(f"{place}: there are neither tokens with tags nor a text with spans")
    label = found.get("intent", found.get("label"))
    return record if label is None else {**record, "label": str(label)}


def from_characters(text: str, stretches: Any, place: str) -> Record:
    """Words and marks apart; a stretch must begin where a word does, and end where one does."""
    if not isinstance(stretches, list):
        raise ValueError(f"{place}: spans must be a list of {{start, end, label}}")
    words = [(match.start(), match.end()) for match in WORD.finditer(text)]
    starts = {start: number for number, (start, _) in enumerate(words)}
    ends = {end: number for number, (_, end) in enumerate(words)}
    spans = []
    for one in stretches:
        start, end = one.get("start"), one.get("end")
        label = one.get("label", one.get("entity"))
        if start not in starts or end not in ends or not label:
            cut = text[start:end] if isinstance(start, int) and isinstance(end, int) else ""
            raise ValueError(
                f"{place}: span {start} to {end} ({cut!r}, {label!r}) must begin and end with "
                "words of the text, and have a label"
            )
        spans.append(Span(str(label), starts[start], ends[end] + 1))
    try:
        tags = tags_of(spans, len(words))
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
    return {"text": " ".join(text[s:e] for s, e in words), "tags": " ".join(tags)}


def folder(path: Path | str) -> Iterator[Placed]:
    """The lines of seq.in and seq.out, and of label, if there is one."""
    there = [name for name in (WORDS, TAGS, LABEL) if one_of(Path(path), name).is_file()]
    for name in (WORDS, TAGS):
        if name not in there:
            raise ValueError(f"{path}: there is no {name} in it")
    read = [list(lines(one_of(Path(path), name))) for name in there]
    if len({len(rows) for rows in read}) > 1:
        counts = ", ".join(f"{name} {len(rows)}" for name, rows in zip(there, read, strict=True))
        raise ValueError(f"{path}: files of different length ({counts} lines)")
    for number, row in enumerate(zip(*read, strict=True), 1):
        words, tags = row[0].split(), row[1].split()
        place = f"{one_of(Path(path), TAGS)}:{number}"
        if len(words) != len(tags):
            raise ValueError(f"{place}: {len(tags)} tags for {len(words)} words; give one for each")
        record: Record = {"text": " ".join(words), "tags": " ".join(tags)}
        if LABEL in there:
            record["label"] = row[2].strip()
        yield place, record


def one_of(path: Path, name: str) -> Path:
    packed = path / f"{name}.gz"
    return packed if packed.is_file() else path / name


class Tagged(ByHash):
    """A corpus in files of one format, a file or a folder for each split; tags become BIO.

    `scheme` is how the files write their tags. A dev or test that is not given is split off: a
    share `held_out` of train each, by a hash of the text.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        format: Format | None = None,  # noqa: A002 (the word in the config)
        scheme: Scheme = "bio",
        columns: Sequence[int] = (0, -1),
        held_out: float = 0.1,
    ) -> None:
        self.paths = by_split(train, dev, test)
        self.format: Format = format or guessed(self.paths["train"][0])
        self.scheme: Scheme = scheme
        self.word, self.tag = columns
        self.shares = shares(self.paths, held_out)
        for paths in self.paths.values():
            for path in paths:
                if self.format != "folder":
                    check_file(path)
                elif not Path(path).is_dir():
                    raise ValueError(f"{path}: there is no such folder")

    def describe(self) -> str:
        each = [f"{split} {' + '.join(map(shown, paths))}" for split, paths in self.paths.items()]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        return f"tagged ({self.format}): {', '.join(each)}; licence as you know it"

    def _all(self, paths: Sequence[Path | str]) -> Iterator[Placed]:
        for path in paths:
            match self.format:
                case "conll":
                    found = conll(path, self.word, self.tag)
                case "jsonl":
                    found = json_spans(path)
                case "folder":
                    found = folder(path)
            for place, record in found:
                yield place, self._checked(place, record)

    def _checked(self, place: str, record: Record) -> Record:
        """With BIO tags, or an error that says which tag breaks the scheme."""
        tags = record["tags"].split()
        if not tags:
            raise ValueError(f"{place}: a sentence without words; take it out")
        wrong = broken(tags, self.scheme)
        if wrong is not None:
            number, why = wrong
            word = record["text"].split()[number]
            raise ValueError(
                f"{place}: word {number + 1} ({word!r}): {why}; not {self.scheme}, so mend it or "
                "set data.scheme"
            )
        return {**record, "tags": " ".join(converted(tags, self.scheme, "bio"))}


def guessed(path: Path | str) -> Format:
    """By what it is, or by the end of its name."""
    if Path(path).is_dir():
        return "folder"
    suffix = suffix_of(path)
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise ValueError(f"{path}: {suffix or 'no suffix'} tells no format ({known}); name one")
    return SUFFIXES[suffix]
