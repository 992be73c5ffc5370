"""Pictures with captions from files: JSON lines, and the JSON of COCO.

    {"image": "cats/1.png", "caption": "a cat on a mat"}                       a line each
    {"images": [{"id": 1, "file_name": …}], "annotations": [{"image_id": 1, "caption": …}]}

Records are {"picture": a path, "captions": all of that picture's}. Lines of one picture, which need
not stand together, are one record.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from regard.corpora.corpus import Record
from regard.corpora.files import Paths, json_lines, suffix_of
from regard.corpora.labelled import ByHash, Placed, by_split, shares
from regard.corpora.lines import check_file, shown, whole
from regard.corpora.pictures import digest_of

Format = Literal["jsonl", "coco"]
SUFFIXES: dict[str, Format] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "coco"}
FIELDS = {"image": "image", "caption": "caption"}
COCO = {"images": ("id", "file_name"), "annotations": ("image_id", "caption")}


class CaptionFiles(ByHash):
    """A corpus of one format; `folder` is where the pictures are, else they lie beside the file.

    A dev or test that is not given is split off: a share `held_out` of train each, by a hash of the
    picture's bytes, so that equal pictures are in one split.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        format: Format | None = None,  # noqa: A002 (the word in the config)
        folder: str | None = None,
        held_out: float = 0.1,
    ) -> None:
        self.paths = by_split(train, dev, test)
        self.format: Format = format or guessed(self.paths["train"][0])
        self.folder = folder
        self.shares = shares(self.paths, held_out)
        self.digests: dict[str, str] = {}  # of files, each read once for it
        for split, paths in self.paths.items():
            if len(paths) != 1:
                raise ValueError(f"{split}: {self.format} needs one file, not {len(paths)}")
            check_file(paths[0])
        if folder is not None and not Path(folder).is_dir():
            raise ValueError(f"{folder}: there is no such folder")

    def describe(self) -> str:
        each = [f"{split} {shown(paths[0])}" for split, paths in self.paths.items()]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        return f"captions ({self.format}): {', '.join(each)}; licence as you know it"

    def key(self, record: Record) -> str:
        picture = record["picture"]
        if picture not in self.digests:
            self.digests[picture] = digest_of(picture)
        return self.digests[picture]

    def _all(self, paths: Sequence[Path | str]) -> Iterator[Placed]:
        path = paths[0]
        base = Path(path).parent if self.folder is None else Path(self.folder)
        found = by_lines(path) if self.format == "jsonl" else by_coco(path)
        for name, (place, captions) in found.items():
            where = base / name
            if not where.is_file():
                raise ValueError(f"{place}: there is no such picture: {where}")
            yield f"{place} ({where})", {"picture": str(where), "captions": tuple(captions)}


# by the name of a picture: where it is first spoken of, and its captions
Found = dict[str, tuple[str, list[str]]]


def by_lines(path: Path | str) -> Found:
    found: Found = {}
    records = json_lines(path, FIELDS, also={"caption": list})
    for number, record in enumerate(records, 1):
        place, said = f"{shown(path)}:{number}", record["caption"]
        if not record["image"]:
            raise ValueError(f"{place}: a caption without a picture: 'image' is empty")
        if not said:
            raise ValueError(f"{place}: a picture without a caption: 'caption' is empty")
        some = [said] if isinstance(said, str) else said
        known = found.setdefault(record["image"], (place, []))[1]
        known.extend(spoken(one, place) for one in some)
    return found


def by_coco(path: Path | str) -> Found:
    told = contents(path)
    found: Found = {}
    names: dict[Any, str] = {}
    for number, image in enumerate(told["images"], 1):
        names[image["id"]] = name = image["file_name"]
        found[name] = (f"{shown(path)}: image {number}", [])
    for number, note in enumerate(told["annotations"], 1):
        place, which = f"{shown(path)}: annotation {number}", note["image_id"]
        if which not in names:
            raise ValueError(f"{place}: a caption without a picture: no image has the id {which}")
        found[names[which]][1].append(spoken(note["caption"], place))
    for place, captions in found.values():
        if not captions:
            raise ValueError(f"{place}: a picture without a caption; add one, or take it out")
    if not found:
        raise ValueError(f"{shown(path)}: there is no picture in it")
    return found


def contents(path: Path | str) -> dict[str, list[dict[str, Any]]]:
    """COCO's JSON, with all that is needed of it in its place."""
    try:
        told = json.loads(whole(path))
    except (json.JSONDecodeError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise ValueError(f"{shown(path)}: not JSON ({reason}); fetch or write it again") from None
    if not isinstance(told, dict):
        raise ValueError(f"{shown(path)}: must be an object with images and annotations")
    for name, fields in COCO.items():
        if not isinstance(told.get(name), list):
            raise ValueError(f"{shown(path)}: {name!r} is missing, or no list: is it COCO's JSON?")
        for number, one in enumerate(told[name], 1):
            place = f"{shown(path)}: {name.removesuffix('s')} {number}"
            for field in fields:
                if not isinstance(one, dict) or field not in one:
                    raise ValueError(f"{place}: no field {field!r}")
                kinds = (str,) if field in ("file_name", "caption") else (int, str)
                if not isinstance(one[field], kinds):
                    kind = type(one[field]).__name__
                    raise ValueError(f"{place}: {field!r} must not be {kind}")
    return told


def spoken(caption: Any, place: str) -> str:
    if not isinstance(caption, str):
        raise ValueError(f"{place}: a caption must be text, not {type(caption).__name__}")
    if not caption.strip():
        raise ValueError(f"{place}: the caption is empty; write one, or take it out")
    return caption.strip()


def guessed(path: Path | str) -> Format:
    suffix = suffix_of(path)
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise ValueError(f"{path}: {suffix or 'no suffix'} tells no format ({known}); name one")
    return SUFFIXES[suffix]


def captions_of(record: Mapping[str, Any]) -> tuple[str, ...]:
    """All captions of a picture, of any corpus."""
    return record["captions"] if "captions" in record else (record["caption"],)
