"""Images with captions from files: JSON lines, and the JSON of COCO.

    {"image": "cats/1.png", "caption": "a cat on a mat"}                       a line each
    {"images": [{"id": 1, "file_name": …}], "annotations": [{"image_id": 1, "caption": …}]}

Records are {"image": a path, "captions": all captions of the image}. All lines of an image,
adjacent or not, make one record.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from regard.data.corpus import Record
from regard.data.formats.images import image_digest
from regard.data.formats.labeled_texts import (
    HashSplitFiles,
    LocatedRecord,
    held_out_shares,
    paths_by_split,
)
from regard.data.formats.lines import check_file, display_name, read_text
from regard.data.formats.skipped_rows import SkippedRows
from regard.data.formats.text_pairs import Paths, format_from_suffix, read_located_json_lines
from regard.errors import InputError
from regard.files import JsonObject
from regard.parsing import parse_json

CaptionFormat = Literal["jsonl", "coco"]
FORMAT_BY_SUFFIX: dict[str, CaptionFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "coco",
}
FIELDS = {"image": "image", "caption": "caption"}
COCO_FIELDS = {"images": ("id", "file_name"), "annotations": ("image_id", "caption")}


class CaptionFiles(HashSplitFiles):
    """A corpus of captions in one format; paths of images are relative to `folder`.

    Without `folder`, they are relative to the folder of the file. A missing dev or test is a share
    `held_out` of train, by a hash of the bytes of the image, so that equal images are in one split.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        format: CaptionFormat | None = None,  # noqa: A002 (the word in the config)
        folder: str | None = None,
        held_out: float = 0.1,
        skip_bad: bool = False,
    ) -> None:
        self.skipped = SkippedRows(skip_bad)
        self.paths = paths_by_split(train, dev, test)
        self.format: CaptionFormat = format or format_from_suffix(
            self.paths["train"][0], FORMAT_BY_SUFFIX
        )
        self.folder = folder
        self.shares = held_out_shares(self.paths, held_out)
        self.digests: dict[str, str] = {}  # by path: each image is hashed once
        for split, paths in self.paths.items():
            if len(paths) != 1:
                raise InputError(f"{split}: {self.format} needs one file, not {len(paths)}")
            check_file(paths[0])
        if folder is not None and not Path(folder).is_dir():
            raise InputError(f"{folder}: there is no such folder")

    def describe(self) -> str:
        return f"captions ({self.format}): {self.describe_files()}; license not stated"

    def hash_key(self, record: Record) -> str:
        image = record["image"]
        if image not in self.digests:
            self.digests[image] = image_digest(image)
        return self.digests[image]

    def _read_files(self, paths: Sequence[Path | str]) -> Iterator[LocatedRecord]:
        path = paths[0]
        image_folder = Path(path).parent if self.folder is None else Path(self.folder)
        captions_by_image = (
            read_caption_lines(path, self.skipped) if self.format == "jsonl" else read_coco(path)
        )
        for name, (location, captions) in captions_by_image.items():
            image_path = image_folder / name
            if not image_path.is_file():
                self.skipped.add(location, f"there is no such image: {image_path}")
                continue
            yield (
                f"{location} ({image_path})",
                {"image": str(image_path), "captions": tuple(captions)},
            )


# By the name of an image: the location of its first mention, and its captions
CaptionIndex = dict[str, tuple[str, list[str]]]


def read_caption_lines(path: Path | str, skipped: SkippedRows) -> CaptionIndex:
    captions_by_image: CaptionIndex = {}
    for location, record in read_located_json_lines(
        path, FIELDS, extra_types={"caption": list}, skipped=skipped
    ):
        with skipped.row(location):
            captions = line_captions(record, location)
            captions_by_image.setdefault(record["image"], (location, []))[1].extend(captions)
    return captions_by_image


def line_captions(record: Record, location: str) -> list[str]:
    """Return the captions of one line, checked."""
    value = record["caption"]
    if not record["image"]:
        raise InputError(f"{location}: 'image' is empty; name the image of the caption")
    if not value:
        raise InputError(f"{location}: 'caption' is empty; write one, or remove the image")
    captions = [value] if isinstance(value, str) else value
    return [checked_caption(caption, location) for caption in captions]


def read_coco(path: Path | str) -> CaptionIndex:
    data = load_coco(path)
    captions_by_image: CaptionIndex = {}
    names: dict[int | str, str] = {}
    for number, image in enumerate(data["images"], 1):
        names[image["id"]] = name = image["file_name"]
        captions_by_image[name] = (f"{display_name(path)}: image {number}", [])
    for number, annotation in enumerate(data["annotations"], 1):
        location, image_id = f"{display_name(path)}: annotation {number}", annotation["image_id"]
        if image_id not in names:
            raise InputError(
                f"{location}: no image has the id {image_id}; add it, or remove the caption"
            )
        captions_by_image[names[image_id]][1].append(
            checked_caption(annotation["caption"], location)
        )
    for location, captions in captions_by_image.values():
        if not captions:
            raise InputError(f"{location}: an image without a caption; add one, or remove it")
    if not captions_by_image:
        raise InputError(f"{display_name(path)}: no images; add at least one")
    return captions_by_image


def load_coco(path: Path | str) -> dict[str, list[JsonObject]]:
    """Load the JSON of COCO, and check the types of the fields that are used."""
    data = parse_json(read_text(path), display_name(path), "download or write it again")
    if not isinstance(data, dict):
        raise InputError(f"{display_name(path)}: must be an object with images and annotations")
    for name, fields in COCO_FIELDS.items():
        if not isinstance(data.get(name), list):
            raise InputError(
                f"{display_name(path)}: {name!r} is missing or not a list; give a file in the "
                "format of COCO"
            )
        for number, entry in enumerate(data[name], 1):
            location = f"{display_name(path)}: {name.removesuffix('s')} {number}"
            for field in fields:
                if not isinstance(entry, dict) or field not in entry:
                    raise InputError(f"{location}: no field {field!r}")
                kinds = (str,) if field in ("file_name", "caption") else (int, str)
                if not isinstance(entry[field], kinds):
                    kind = type(entry[field]).__name__
                    raise InputError(f"{location}: {field!r} must not be {kind}")
    return data


def checked_caption(caption: object, location: str) -> str:
    if not isinstance(caption, str):
        raise InputError(f"{location}: a caption must be text, not {type(caption).__name__}")
    if not caption.strip():
        raise InputError(f"{location}: the caption is empty; write one, or remove it")
    return caption.strip()


def record_captions(record: Record) -> tuple[str, ...]:
    """Return all captions of an image; records have `captions`, or one `caption`."""
    return record["captions"] if "captions" in record else (record["caption"],)
