"""Documents with summaries, from your own files or public sets.

Records are {"source": the document, "target": its summary}, and "references": all of its summaries
where there are several; the first is learnt from. Lines are read one at a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from regard.corpora.corpus import SPLITS, Record, check_name, check_split
from regard.corpora.download import Source, cache_folder, fetched
from regard.corpora.files import Paths, guessed, json_lines, tsv
from regard.corpora.labelled import ByHash, Placed, by_split, numbered, shares
from regard.corpora.lines import check_file, parsed_lines, shown

Format = Literal["tsv", "jsonl"]
FIELDS = ("document", "summary")
GITHUB = "https://raw.githubusercontent.com"
SUBJECT, NOTES = "\n@subject\n", "\n@ann"


class Summaries(ByHash):
    """A corpus in files of one format: TSV (document, tab, summary) or JSON lines.

    `fields` says what document and summary are called in JSON lines; a summary may be a list of
    several there. A dev or test that is not given is split off: a share `held_out` of train each.
    """

    hashed = "source"

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        format: Format | None = None,  # noqa: A002 (the word in the config)
        fields: Mapping[str, str] | None = None,
        held_out: float = 0.1,
    ) -> None:
        self.paths = by_split(train, dev, test)
        found = format or guessed(self.paths["train"])
        if found not in ("tsv", "jsonl"):
            raise ValueError(
                f"{shown(self.paths['train'][0])}: give TSV or JSON lines, not {found}"
            )
        self.format: Format = found
        self.fields = dict(fields or {name: name for name in FIELDS})
        self.shares = shares(self.paths, held_out)
        for split, paths in self.paths.items():
            if len(paths) != 1:
                raise ValueError(f"{split}: {self.format} needs one file, not {len(paths)}")
            check_file(paths[0])

    def describe(self) -> str:
        each = [f"{split} {shown(paths[0])}" for split, paths in self.paths.items()]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        return f"summaries ({self.format}): {', '.join(each)}; licence as you know it"

    def _all(self, paths: Sequence[Path | str]) -> Iterator[Placed]:
        path = paths[0]
        if self.format == "tsv":
            found = tsv(path, FIELDS)
        else:
            found = json_lines(path, self.fields, also={"summary": list})
        for place, record in numbered(path, found):
            yield place, checked(record["document"], record["summary"], place)


def checked(document: str, summary: str | list[Any], place: str) -> Record:
    """A record of ours; nothing of it is empty."""
    several = [summary] if isinstance(summary, str) else summary
    if not document.strip():
        raise ValueError(f"{place}: the document is empty; write one, or take the line out")
    for one in several:
        if not isinstance(one, str):
            raise ValueError(f"{place}: a summary must be str, not {type(one).__name__}")
    if not several or not all(one.strip() for one in several):
        raise ValueError(f"{place}: the summary is missing; write one, or take the line out")
    more = {"references": several} if len(several) > 1 else {}
    return {"source": document, "target": several[0], **more}


class Publication(NamedTuple):
    """`files` are by split; `record` makes a record of a line, or nothing where it has no text."""

    about: str
    licence: str
    home: str
    files: dict[str, Source]
    record: Callable[[dict[str, Any], str], Record | None]


def _mail(whole: dict[str, Any], place: str) -> Record | None:
    """A mail and its subject; what people wrote instead of it is left aside."""
    body, _, rest = whole["raw"].partition(SUBJECT)
    subject = " ".join(rest.partition(NOTES)[0].split())
    return checked(body, subject, place) if body.strip() and subject else None


def _abstract(whole: dict[str, Any], place: str) -> Record:
    return checked(" ".join(whole["source"]), whole["target"], place)


def _aeslc(split: str, digest: str) -> Source:
    # Upstream has one file for each mail: nobody serves this file.
    return Source("", f"summarization/aeslc/{split}.jsonl.gz", digest)


def _scitldr(split: str, digest: str) -> Source:
    url = f"{GITHUB}/allenai/scitldr/master/SciTLDR-Data/SciTLDR-A/{split}.jsonl"
    return Source(url, f"summarization/scitldr_a/{split}.jsonl.gz", digest)


PUBLISHED = {
    "aeslc": Publication(
        "mails of Enron's people with their subjects (Zhang & Tetreault 2019)",
        "CC BY-NC-SA 4.0",
        "https://github.com/ryanzhumich/AESLC",
        {
            "train": _aeslc(
                "train", "d56d86c0e9d3da617fa0db67a9eb72ac0f4f66cd7b779ef1ae0f70df804d0b11"
            ),
            "dev": _aeslc(
                "dev", "9d6a991240161b6c67dc0d24c67cdb4d8ebfc932d444ca41e35ca81f26d85401"
            ),
            "test": _aeslc(
                "test", "a0a67b640c1620fa2a67ae948e0d85af51abfb551f7aad2a52985d9ca56c329b"
            ),
        },
        _mail,
    ),
    "scitldr": Publication(
        "abstracts of papers with one or more summaries in a sentence (Cachola et al. 2020)",
        "Apache-2.0",
        "https://github.com/allenai/scitldr",
        {
            "train": _scitldr(
                "train", "b222771d387be585cfdf5ae957b36757138415a352e0a3e3b23f73f87c3b1119"
            ),
            "dev": _scitldr(
                "dev", "3191fa98ccc09521332b7a1cd63b1930be4e8df125a235ccd31e40329709525e"
            ),
            "test": _scitldr(
                "test", "fb42dd6cd4f4a1928ae8a01a189456fbfe994a07e938bd49f68653933f6503c9"
            ),
        },
        _abstract,
    ),
}


class SummarySet:
    """A public set by name."""

    splits = SPLITS

    def __init__(self, name: str) -> None:
        check_name("name", name, PUBLISHED)
        self.name, self.publication = name, PUBLISHED[name]

    def read(self, split: str) -> Iterator[Record]:
        """The first time, the file of this split is downloaded."""
        check_split(split, self.splits)
        path = fetched(self.publication.files[split], cache_folder() / self.name / f"{split}.jsonl")
        for place, found in parsed_lines(path):
            record = self.publication.record(found, place)
            if record is not None:
                yield record

    def describe(self) -> str:
        about, licence, home, *_ = self.publication
        return f"{self.name}: {about}; {home}; licence: {licence}"
