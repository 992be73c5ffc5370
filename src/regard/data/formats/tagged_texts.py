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

from regard.data.corpus import Record
from regard.data.formats.labeled_texts import (
    HashSplitFiles,
    LocatedRecord,
    held_out_shares,
    paths_by_split,
)
from regard.data.formats.lines import check_file, display_name, parse_json_lines, read_lines
from regard.data.formats.text_pairs import Paths, path_suffix
from regard.data.tag_schemes import (
    TagScheme,
    TagSpan,
    convert_tags,
    find_violation,
    tags_from_spans,
)

TaggedTextFormat = Literal["conll", "jsonl", "folder"]
FORMAT_BY_SUFFIX: dict[str, TaggedTextFormat] = {
    **dict.fromkeys((".conll", ".iob", ".bio", ".txt", ".tsv", ".annotated"), "conll"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
}
DOCUMENT_START = "-DOCSTART-"  # CoNLL-2003's line between documents
WORDS_FILE, TAGS_FILE, LABELS_FILE = "seq.in", "seq.out", "label"
WORD_PATTERN = re.compile(r"\w+|[^\w\s]")


def read_conll(
    path: Path | str, word_column: int = 0, tag_column: int = -1
) -> Iterator[LocatedRecord]:
    """Sentences of a CoNLL file, at the line of their first word; `word` and `tag` are columns."""
    words, tags, first_line, width = list[str](), list[str](), 0, 0
    for number, line in enumerate([*read_lines(path), ""], 1):
        cells = line.split("\t") if "\t" in line else line.split()
        if not line.strip() or cells[0] == DOCUMENT_START:
            if words:
                yield (
                    f"{display_name(path)}:{first_line}",
                    {"text": " ".join(words), "tags": " ".join(tags)},
                )
            words, tags = [], []
            continue
        location = f"{display_name(path)}:{number}"
        width = width or len(cells)
        if len(cells) != width:
            raise ValueError(
                f"{location}: {len(cells)} columns, but {width} before; a line is a word "
                "and its tag, "
                "with one tab between, and sentences have blank lines between them"
            )
        if not -width <= tag_column < width or not word_column < width or width < 2:
            raise ValueError(
                f"{location}: {width} columns, so there is no word and tag; see columns"
            )
        if not (cell := cells[word_column].strip()) or " " in cell:
            raise ValueError(f"{location}: {cells[word_column]!r} is not one word")
        first_line = number if not words else first_line
        words.append(cell)
        tags.append(cells[tag_column].strip())


def read_tagged_objects(path: Path | str) -> Iterator[LocatedRecord]:
    for location, data in parse_json_lines(path):
        if not isinstance(data, dict):
            raise ValueError(f"{location}: not an object; see docs/tasks/tag.md for what it holds")
        yield location, record_from_json(data, location)


def record_from_json(data: Mapping[str, Any], location: str) -> Record:
    """Tokens with tags, or a text with stretches of characters."""
    if "tokens" in data:
        tokens, tags = data["tokens"], data.get("tags")
        if not isinstance(tags, list) or len(tags) != len(tokens):
            raise ValueError(f"{location}: tags must be a list as long as tokens, {len(tokens)}")
        if not all(
            isinstance(item, str) and item and not re.search(r"\s", item)
            for item in [*tokens, *tags]
        ):
            raise ValueError(f"{location}: tokens and tags must be words without spaces")
        record: Record = {"text": " ".join(tokens), "tags": " ".join(tags)}
    elif isinstance(data.get("text"), str):
        record = record_from_spans(data["text"], data.get("spans", data.get("entities")), location)
    else:
        raise ValueError(f"{location}: there are neither tokens with tags nor a text with spans")
    label = data.get("intent", data.get("label"))
    return record if label is None else {**record, "label": str(label)}


def record_from_spans(text: str, character_spans: Any, location: str) -> Record:
    """Words and marks apart; a stretch must begin where a word does, and end where one does."""
    if not isinstance(character_spans, list):
        raise ValueError(f"{location}: spans must be a list of {{start, end, label}}")
    words = [(match.start(), match.end()) for match in WORD_PATTERN.finditer(text)]
    starts = {start: number for number, (start, _) in enumerate(words)}
    ends = {end: number for number, (_, end) in enumerate(words)}
    spans = []
    for span in character_spans:
        start, end = span.get("start"), span.get("end")
        label = span.get("label", span.get("entity"))
        if start not in starts or end not in ends or not label:
            span_text = text[start:end] if isinstance(start, int) and isinstance(end, int) else ""
            raise ValueError(
                f"{location}: span {start} to {end} ({span_text!r}, {label!r}) must begin "
                "and end with "
                "words of the text, and have a label"
            )
        spans.append(TagSpan(str(label), starts[start], ends[end] + 1))
    try:
        tags = tags_from_spans(spans, len(words))
    except ValueError as error:
        raise ValueError(f"{location}: {error}") from None
    return {"text": " ".join(text[s:e] for s, e in words), "tags": " ".join(tags)}


def read_tag_folder(path: Path | str) -> Iterator[LocatedRecord]:
    """The lines of seq.in and seq.out, and of label, if there is one."""
    file_names = [
        name
        for name in (WORDS_FILE, TAGS_FILE, LABELS_FILE)
        if plain_or_gzipped(Path(path), name).is_file()
    ]
    for name in (WORDS_FILE, TAGS_FILE):
        if name not in file_names:
            raise ValueError(f"{path}: there is no {name} in it")
    columns = [list(read_lines(plain_or_gzipped(Path(path), name))) for name in file_names]
    if len({len(rows) for rows in columns}) > 1:
        counts = ", ".join(
            f"{name} {len(rows)}" for name, rows in zip(file_names, columns, strict=True)
        )
        raise ValueError(f"{path}: files of different length ({counts} lines)")
    for number, row in enumerate(zip(*columns, strict=True), 1):
        words, tags = row[0].split(), row[1].split()
        location = f"{plain_or_gzipped(Path(path), TAGS_FILE)}:{number}"
        if len(words) != len(tags):
            raise ValueError(
                f"{location}: {len(tags)} tags for {len(words)} words; give one for each"
            )
        record: Record = {"text": " ".join(words), "tags": " ".join(tags)}
        if LABELS_FILE in file_names:
            record["label"] = row[2].strip()
        yield location, record


def plain_or_gzipped(path: Path, name: str) -> Path:
    gzipped = path / f"{name}.gz"
    return gzipped if gzipped.is_file() else path / name


class TaggedTextFiles(HashSplitFiles):
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
        format: TaggedTextFormat | None = None,  # noqa: A002 (the word in the config)
        scheme: TagScheme = "bio",
        columns: Sequence[int] = (0, -1),
        held_out: float = 0.1,
    ) -> None:
        self.paths = paths_by_split(train, dev, test)
        self.format: TaggedTextFormat = format or guess_format(self.paths["train"][0])
        self.scheme: TagScheme = scheme
        self.word_column, self.tag_column = columns
        self.shares = held_out_shares(self.paths, held_out)
        for paths in self.paths.values():
            for path in paths:
                if self.format != "folder":
                    check_file(path)
                elif not Path(path).is_dir():
                    raise ValueError(f"{path}: there is no such folder")

    def describe(self) -> str:
        each = [
            f"{split} {' + '.join(map(display_name, paths))}" for split, paths in self.paths.items()
        ]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        return f"tagged ({self.format}): {', '.join(each)}; license not stated"

    def _read_files(self, paths: Sequence[Path | str]) -> Iterator[LocatedRecord]:
        for path in paths:
            match self.format:
                case "conll":
                    located_records = read_conll(path, self.word_column, self.tag_column)
                case "jsonl":
                    located_records = read_tagged_objects(path)
                case "folder":
                    located_records = read_tag_folder(path)
            for location, record in located_records:
                yield location, self._check_record(location, record)

    def _check_record(self, location: str, record: Record) -> Record:
        """With BIO tags, or an error that says which tag breaks the scheme."""
        tags = record["tags"].split()
        if not tags:
            raise ValueError(f"{location}: a sentence without words; take it out")
        violation = find_violation(tags, self.scheme)
        if violation is not None:
            number, reason = violation
            word = record["text"].split()[number]
            raise ValueError(
                f"{location}: word {number + 1} ({word!r}): {reason}; not {self.scheme}, "
                "so mend it or "
                "set data.scheme"
            )
        return {**record, "tags": " ".join(convert_tags(tags, self.scheme, "bio"))}


def guess_format(path: Path | str) -> TaggedTextFormat:
    """By what it is, or by the end of its name."""
    if Path(path).is_dir():
        return "folder"
    suffix = path_suffix(path)
    if suffix not in FORMAT_BY_SUFFIX:
        supported = ", ".join(FORMAT_BY_SUFFIX)
        raise ValueError(f"{path}: {suffix or 'no suffix'} tells no format ({supported}); name one")
    return FORMAT_BY_SUFFIX[suffix]
