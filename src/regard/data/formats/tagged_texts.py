"""Sentences with a tag for each word, and optionally a label for the sentence, from files.

    conll    one word a line, columns separated by tabs or spaces, a blank line after each sentence
    jsonl    {"tokens": [...], "tags": [...]}, or a text with spans of characters: {"text": ...,
             "spans" or "entities": [{"start", "end", "label" or "entity"}]}; the label of the
             sentence is "intent" or "label"
    folder   seq.in, seq.out and optionally label, with one sentence a line

Records are {"text": words separated by spaces, "tags": one BIO tag a word}, and "label" if there is
one. Files ending in .gz are decompressed.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from regard.data.corpus import Record
from regard.data.database import is_list_of
from regard.data.formats.labeled_texts import (
    HashSplitFiles,
    LocatedRecord,
    held_out_shares,
    paths_by_split,
)
from regard.data.formats.lines import check_file, display_name, parse_json_lines, read_lines
from regard.data.formats.skipped_rows import SkippedRows
from regard.data.formats.text_pairs import Paths, format_from_suffix
from regard.data.tag_schemes import (
    TagScheme,
    TagSpan,
    convert_tags,
    find_violation,
    tags_from_spans,
)
from regard.errors import InputError
from regard.files import JsonObject

TaggedTextFormat = Literal["conll", "jsonl", "folder"]
FORMAT_BY_SUFFIX: dict[str, TaggedTextFormat] = {
    **dict.fromkeys((".conll", ".iob", ".bio", ".txt", ".tsv", ".annotated"), "conll"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
}
DOCUMENT_START = "-DOCSTART-"  # separates documents in CoNLL-2003
WORDS_FILE, TAGS_FILE, LABELS_FILE = "seq.in", "seq.out", "label"
WORD_PATTERN = re.compile(r"\w+|[^\w\s]")


def read_conll(
    path: Path | str,
    word_column: int = 0,
    tag_column: int = -1,
    skipped: SkippedRows | None = None,
) -> Iterator[LocatedRecord]:
    """Yield the sentences of a CoNLL file, each with the location of its first word."""
    skipped = skipped or SkippedRows()
    name, rows, width = display_name(path), list[tuple[int, list[str]]](), 0
    for number, line in enumerate([*read_lines(path), ""], 1):
        cells = line.split("\t") if "\t" in line else line.split()
        if line.strip() and cells[0] != DOCUMENT_START:
            width = width or len(cells)
            rows.append((number, cells))
            continue
        if rows:
            location = f"{name}:{rows[0][0]}"
            with skipped.row(location):
                yield location, conll_record(rows, name, width, word_column, tag_column)
        rows = []


def conll_record(
    rows: Sequence[tuple[int, list[str]]], name: str, width: int, word_column: int, tag_column: int
) -> Record:
    """Build a record from the numbered rows of a sentence, which all have `width` columns."""
    for number, cells in rows:
        location = f"{name}:{number}"
        if len(cells) != width:
            raise InputError(
                f"{location}: {len(cells)} columns, but {width} before; write a word, a tab and "
                "its tag on each line, and separate sentences by blank lines"
            )
        if not -width <= tag_column < width or not word_column < width or width < 2:
            raise InputError(
                f"{location}: {width} columns, too few for word and tag; set data.columns"
            )
        for column in (word_column, tag_column):
            if len(cells[column].split()) != 1:
                raise InputError(f"{location}: {cells[column]!r} is not one word")
    words, tags = (
        " ".join(cells[column].strip() for _, cells in rows) for column in (word_column, tag_column)
    )
    return {"text": words, "tags": tags}


def read_tagged_objects(path: Path | str, skipped: SkippedRows) -> Iterator[LocatedRecord]:
    for location, data in parse_json_lines(path, skipped=skipped):
        with skipped.row(location):
            if not isinstance(data, dict):
                raise InputError(f"{location}: not an object; see docs/tasks/tag.md for its fields")
            yield location, record_from_json(data, location)


def record_from_json(data: JsonObject, location: str) -> Record:
    """Build a record from tokens with tags, or from a text with spans of characters."""
    if "tokens" in data:
        tokens, tags = data["tokens"], data.get("tags")
        if not isinstance(tokens, list):
            raise InputError(f"{location}: tokens must be a list of words")
        if not isinstance(tags, list) or len(tags) != len(tokens):
            raise InputError(f"{location}: tags must be a list as long as tokens, {len(tokens)}")
        if not all(
            isinstance(item, str) and item and not re.search(r"\s", item)
            for item in [*tokens, *tags]
        ):
            raise InputError(f"{location}: tokens and tags must be words without spaces")
        record: Record = {"text": " ".join(tokens), "tags": " ".join(tags)}
    elif isinstance(data.get("text"), str):
        record = record_from_spans(data["text"], data.get("spans", data.get("entities")), location)
    else:
        raise InputError(f"{location}: neither tokens with tags nor a text with spans; give one")
    label = data.get("intent", data.get("label"))
    return record if label is None else {**record, "label": str(label)}


def record_from_spans(text: str, character_spans: object, location: str) -> Record:
    """Split the text into words and punctuation, and convert spans of characters to tags.

    A span must begin and end at borders of words.
    """
    if not is_list_of(character_spans, dict):
        raise InputError(f"{location}: spans must be a list of {{start, end, label}}")
    words = [(match.start(), match.end()) for match in WORD_PATTERN.finditer(text)]
    starts = {start: number for number, (start, _) in enumerate(words)}
    ends = {end: number for number, (_, end) in enumerate(words)}
    spans = []
    for span in character_spans:
        start, end = span.get("start"), span.get("end")
        label = span.get("label", span.get("entity"))
        if not isinstance(start, int) or not isinstance(end, int):
            raise InputError(f"{location}: start and end of a span must be whole numbers")
        if start not in starts or end not in ends or not label:
            span_text = text[start:end]
            raise InputError(
                f"{location}: span {start} to {end} ({span_text!r}, {label!r}) must begin and end "
                "at words of the text, and have a label"
            )
        spans.append(TagSpan(str(label), starts[start], ends[end] + 1))
    try:
        tags = tags_from_spans(spans, len(words))
    except ValueError as error:
        raise InputError(f"{location}: {error}") from None
    return {"text": " ".join(text[s:e] for s, e in words), "tags": " ".join(tags)}


def read_tag_folder(path: Path | str, skipped: SkippedRows) -> Iterator[LocatedRecord]:
    """Read the lines of seq.in, seq.out and, if it exists, label."""
    file_names = [
        name
        for name in (WORDS_FILE, TAGS_FILE, LABELS_FILE)
        if plain_or_gzipped(Path(path), name).is_file()
    ]
    for name in (WORDS_FILE, TAGS_FILE):
        if name not in file_names:
            raise InputError(f"{path}: no file {name}; add it")
    columns = [list(read_lines(plain_or_gzipped(Path(path), name))) for name in file_names]
    if len({len(rows) for rows in columns}) > 1:
        counts = ", ".join(
            f"{name} {len(rows)}" for name, rows in zip(file_names, columns, strict=True)
        )
        raise InputError(f"{path}: files of different length ({counts} lines)")
    for number, row in enumerate(zip(*columns, strict=True), 1):
        words, tags = row[0].split(), row[1].split()
        location = f"{plain_or_gzipped(Path(path), TAGS_FILE)}:{number}"
        if len(words) != len(tags):
            skipped.add(location, f"{len(tags)} tags for {len(words)} words; give one for each")
            continue
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
        skip_bad: bool = False,
    ) -> None:
        self.skipped = SkippedRows(skip_bad)
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
                    raise InputError(f"{path}: there is no such folder")

    def describe(self) -> str:
        return f"tagged ({self.format}): {self.describe_files()}; license not stated"

    def _read_files(self, paths: Sequence[Path | str]) -> Iterator[LocatedRecord]:
        for path in paths:
            match self.format:
                case "conll":
                    located_records = read_conll(
                        path, self.word_column, self.tag_column, self.skipped
                    )
                case "jsonl":
                    located_records = read_tagged_objects(path, self.skipped)
                case "folder":
                    located_records = read_tag_folder(path, self.skipped)
            for location, record in located_records:
                with self.skipped.row(location):
                    yield location, self._check_record(location, record)

    def _check_record(self, location: str, record: Record) -> Record:
        """Return the record with BIO tags, or raise an error for a tag that violates the scheme."""
        tags = record["tags"].split()
        if not tags:
            raise InputError(f"{location}: a sentence without words; remove it")
        violation = find_violation(tags, self.scheme)
        if violation is not None:
            number, reason = violation
            word = record["text"].split()[number]
            raise InputError(
                f"{location}: word {number + 1} ({word!r}): {reason} is not {self.scheme}; "
                "correct it, or set data.scheme"
            )
        return {**record, "tags": " ".join(convert_tags(tags, self.scheme, "bio"))}


def guess_format(path: Path | str) -> TaggedTextFormat:
    """Infer the format: a folder is a folder, a file has a suffix."""
    if Path(path).is_dir():
        return "folder"
    return format_from_suffix(path, FORMAT_BY_SUFFIX)
