"""Documents with summaries, from files or public datasets.

Records are {"source": the document, "target": its first summary, which training uses}, and
"references" with all summaries if there are several. Lines are read one at a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from regard.data.archives import aeslc_mails
from regard.data.corpus import SPLITS, Record, check_name, check_split
from regard.data.download import RemoteFile, cache_folder, fetch_file
from regard.data.formats.labeled_texts import (
    HashSplitFiles,
    LocatedRecord,
    held_out_shares,
    paths_by_split,
    read_table,
)
from regard.data.formats.lines import check_file, display_name, parse_json_lines
from regard.data.formats.skipped_rows import SkippedRows
from regard.data.formats.text_pairs import Paths, guess_format, read_located_json_lines
from regard.errors import InputError
from regard.files import JsonObject

SummaryFormat = Literal["tsv", "jsonl"]
SUMMARY_FIELDS = ("document", "summary")
GITHUB = "https://raw.githubusercontent.com"
SUBJECT_MARKER, ANNOTATION_MARKER = "\n@subject\n", "\n@ann"


class SummaryFiles(HashSplitFiles):
    """A corpus in files of one format: TSV (document, tab, summary) or JSON lines.

    `fields` maps document and summary to the names in JSON lines, where a summary may be a list of
    several. A missing dev or test is a share `held_out` of train, by a hash of the document.
    """

    hash_field = "source"

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        format: SummaryFormat | None = None,  # noqa: A002 (the word in the config)
        fields: Mapping[str, str] | None = None,
        held_out: float = 0.1,
        skip_bad: bool = False,
    ) -> None:
        self.skipped = SkippedRows(skip_bad)
        self.paths = paths_by_split(train, dev, test)
        actual_format = format or guess_format(self.paths["train"])
        if actual_format not in ("tsv", "jsonl"):
            raise InputError(
                f"{display_name(self.paths['train'][0])}: give TSV or JSON lines, not "
                f"{actual_format}"
            )
        self.format: SummaryFormat = actual_format
        self.fields = dict(fields or {name: name for name in SUMMARY_FIELDS})
        self.shares = held_out_shares(self.paths, held_out)
        for split, paths in self.paths.items():
            if len(paths) != 1:
                raise InputError(f"{split}: {self.format} needs one file, not {len(paths)}")
            check_file(paths[0])

    def describe(self) -> str:
        return f"summaries ({self.format}): {self.describe_files()}; license not stated"

    def _read_files(self, paths: Sequence[Path | str]) -> Iterator[LocatedRecord]:
        path = paths[0]
        if self.format == "tsv":
            records = read_table(path, "tsv", SUMMARY_FIELDS, skipped=self.skipped)
        else:
            records = read_located_json_lines(
                path, self.fields, extra_types={"summary": list}, skipped=self.skipped
            )
        for location, record in records:
            with self.skipped.row(location):
                yield location, summary_record(record["document"], record["summary"], location)


def summary_record(document: str, summary: str | list[object], location: str) -> Record:
    """Build a record; raise an error if the document or a summary is empty."""
    summaries: list[str] = []
    for text in [summary] if isinstance(summary, str) else summary:
        if not isinstance(text, str):
            raise InputError(f"{location}: a summary must be a text, not {type(text).__name__}")
        summaries.append(text)
    if not document.strip():
        raise InputError(f"{location}: the document is empty; write one, or remove the line")
    if not summaries or not all(text.strip() for text in summaries):
        raise InputError(f"{location}: the summary is missing; write one, or remove the line")
    extra = {"references": summaries} if len(summaries) > 1 else {}
    return {"source": document, "target": summaries[0], **extra}


class SummaryDataset(NamedTuple):
    """A public dataset: files by split, and a function from a line to a record.

    `to_record` returns None for a line without text.
    """

    description: str
    license: str
    homepage: str
    files: dict[str, RemoteFile]
    to_record: Callable[[JsonObject, str], Record | None]


def _mail_record(data: JsonObject, location: str) -> Record | None:
    """Return a mail with its own subject, not with those of annotators."""
    body, _, rest = data["raw"].partition(SUBJECT_MARKER)
    subject = " ".join(rest.partition(ANNOTATION_MARKER)[0].split())
    return summary_record(body, subject, location) if body.strip() and subject else None


def _abstract_record(data: JsonObject, location: str) -> Record:
    return summary_record(" ".join(data["source"]), data["target"], location)


def _aeslc_file(split: str, digest: str) -> RemoteFile:
    commit = "615a3175f57fa0e3fbd44b596e295d3a33c256e6"
    url = f"https://codeload.github.com/ryanzhumich/AESLC/tar.gz/{commit}"  # one file a mail
    path = f"summarization/aeslc/{split}.jsonl.gz"
    return RemoteFile(url, path, digest, recipe=aeslc_mails(split))


def _scitldr_file(split: str, digest: str) -> RemoteFile:
    url = f"{GITHUB}/allenai/scitldr/master/SciTLDR-Data/SciTLDR-A/{split}.jsonl"
    return RemoteFile(url, f"summarization/scitldr_a/{split}.jsonl.gz", digest)


SUMMARY_DATASETS = {
    "aeslc": SummaryDataset(
        "mails of Enron employees with their subjects (Zhang & Tetreault 2019)",
        "CC BY-NC-SA 4.0",
        "https://github.com/ryanzhumich/AESLC",
        {
            "train": _aeslc_file(
                "train", "d56d86c0e9d3da617fa0db67a9eb72ac0f4f66cd7b779ef1ae0f70df804d0b11"
            ),
            "dev": _aeslc_file(
                "dev", "9d6a991240161b6c67dc0d24c67cdb4d8ebfc932d444ca41e35ca81f26d85401"
            ),
            "test": _aeslc_file(
                "test", "a0a67b640c1620fa2a67ae948e0d85af51abfb551f7aad2a52985d9ca56c329b"
            ),
        },
        _mail_record,
    ),
    "scitldr": SummaryDataset(
        "abstracts of papers with one or more one-sentence summaries (Cachola et al. 2020)",
        "Apache-2.0",
        "https://github.com/allenai/scitldr",
        {
            "train": _scitldr_file(
                "train", "b222771d387be585cfdf5ae957b36757138415a352e0a3e3b23f73f87c3b1119"
            ),
            "dev": _scitldr_file(
                "dev", "3191fa98ccc09521332b7a1cd63b1930be4e8df125a235ccd31e40329709525e"
            ),
            "test": _scitldr_file(
                "test", "fb42dd6cd4f4a1928ae8a01a189456fbfe994a07e938bd49f68653933f6503c9"
            ),
        },
        _abstract_record,
    ),
}


class PublicSummaries:
    """A public dataset of documents with summaries."""

    splits = SPLITS

    def __init__(self, name: str) -> None:
        check_name("name", name, SUMMARY_DATASETS)
        self.name, self.dataset = name, SUMMARY_DATASETS[name]

    def read(self, split: str) -> Iterator[Record]:
        """Read a split; its file is downloaded the first time."""
        check_split(split, self.splits)
        path = fetch_file(self.dataset.files[split], cache_folder() / self.name / f"{split}.jsonl")
        for location, data in parse_json_lines(path):
            record = self.dataset.to_record(data, location) if isinstance(data, dict) else None
            if record is not None:
                yield record

    def describe(self) -> str:
        description, license_name, homepage, *_ = self.dataset
        return f"{self.name}: {description}; {homepage}; license: {license_name}"
