"""Labeled images from folders, IDX files and tables, and public datasets by name.

Records are {"image": a path or an array, "label": …}; `regard.data.formats.images` decodes it.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from regard.data.archives import first_items
from regard.data.corpus import SPLITS, Record, check_name, check_split
from regard.data.download import RemoteFile, cache_folder, fetch_file
from regard.data.formats.idx import read_idx
from regard.data.formats.images import image_digest
from regard.data.formats.labeled_texts import (
    HashSplitFiles,
    LocatedRecord,
    held_out_shares,
    paths_by_split,
    read_table,
)
from regard.data.formats.lines import check_file, display_name
from regard.data.formats.skipped_rows import SkippedRows
from regard.data.formats.text_pairs import Paths, path_suffix
from regard.errors import InputError

ImageFormat = Literal["folder", "idx", "tsv", "csv"]
FIELDS = ("image", "label")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
TABLE_FORMATS: dict[str, ImageFormat] = {".tsv": "tsv", ".tab": "tsv", ".csv": "csv"}


class ImageFiles(HashSplitFiles):
    """A corpus of one format: a folder, a table, or two IDX files for each split.

    A missing dev or test is a share `held_out` of train, by a hash of the bytes of the image, so
    that equal images are in one split.
    """

    def __init__(
        self,
        train: Paths,
        dev: Paths | None = None,
        test: Paths | None = None,
        *,
        format: ImageFormat | None = None,  # noqa: A002 (the word in the config)
        columns: Sequence[str] = FIELDS,
        labels: Sequence[str] | None = None,
        held_out: float = 0.1,
        skip_bad: bool = False,
    ) -> None:
        self.skipped = SkippedRows(skip_bad)
        self.paths = paths_by_split(train, dev, test)
        self.format: ImageFormat = format or guess_format(self.paths["train"])
        self.columns, self.labels = tuple(columns), None if labels is None else tuple(labels)
        self.shares = held_out_shares(self.paths, held_out)
        self.digests: dict[str, str] = {}  # by path: each image is hashed once
        self._check()

    def describe(self) -> str:
        return f"images ({self.format}): {self.describe_files()}; license not stated"

    def hash_key(self, record: Record) -> str:
        image = record["image"]
        if not isinstance(image, str):
            return image_digest(image)
        if image not in self.digests:
            self.digests[image] = image_digest(image)
        return self.digests[image]

    def _read_files(self, paths: Sequence[Path | str]) -> Iterator[LocatedRecord]:
        match self.format:
            case "folder":
                return read_image_folders(Path(paths[0]))
            case "idx":
                return self.read_idx_files(*paths)
            case "tsv" | "csv":
                return self.read_image_table(paths[0])

    def read_idx_files(
        self, image_path: Path | str, label_path: Path | str
    ) -> Iterator[LocatedRecord]:
        images, label_ids = read_idx(image_path, 3), read_idx(label_path, 1)
        if len(images) != len(label_ids):
            counts = (
                f"{display_name(image_path)} has {len(images)}, {display_name(label_path)} "
                f"{len(label_ids)}"
            )
            raise InputError(f"{counts}; give one label for each image")
        for number, (pixels, label) in enumerate(zip(images, label_ids.tolist(), strict=True), 1):
            location = f"{display_name(image_path)}: image {number}"
            if self.labels is not None and label >= len(self.labels):
                raise InputError(
                    f"{location}: label {label}, but data.labels has only {len(self.labels)} names"
                )
            name = str(label) if self.labels is None else self.labels[label]
            yield location, {"image": pixels, "label": name}

    def read_image_table(self, path: Path | str) -> Iterator[LocatedRecord]:
        """Read a table of paths and labels; paths are relative to the folder of the table."""
        kind: Literal["tsv", "csv"] = "csv" if self.format == "csv" else "tsv"
        for location, record in read_table(path, kind, self.columns, skipped=self.skipped):
            with self.skipped.row(location):
                if not record["label"]:
                    raise InputError(f"{location}: the label is empty")
                image_path = Path(path).parent / record["image"]
                if not image_path.is_file():
                    raise InputError(f"{location}: there is no such image: {image_path}")
                yield f"{location} ({image_path})", {**record, "image": str(image_path)}

    def _check(self) -> None:
        """Check settings and paths before any file is read."""
        for needed in FIELDS:
            if list(self.columns).count(needed) != 1:
                raise InputError(f"columns must name {needed!r} once, not {list(self.columns)}")
        if self.columns != FIELDS and self.format not in ("tsv", "csv"):
            raise InputError(f"columns do not apply to {self.format}; they are for tsv and csv")
        if self.labels is not None and self.format != "idx":
            raise InputError(f"labels do not apply to {self.format}; they are for idx")
        expected_by_format = {"folder": "one folder", "idx": "two files (images, labels)"}
        for split, paths in self.paths.items():
            if len(paths) != (2 if self.format == "idx" else 1):
                expected = expected_by_format.get(self.format, "one file")
                raise InputError(f"{split}: {self.format} needs {expected}, not {len(paths)}")
            for path in paths:
                if self.format != "folder":
                    check_file(path)
                elif not Path(path).is_dir():
                    raise InputError(f"{path}: there is no such folder")


def read_image_folders(path: Path) -> Iterator[LocatedRecord]:
    """Read `folder/label/*.png`: the name of a folder is the label of its images."""
    labels = sorted(entry for entry in path.iterdir() if entry.is_dir())
    if not labels:
        raise InputError(f"{path}: no folders; make one with images for each label")
    for label in labels:
        files = sorted(file for file in label.iterdir() if is_image_file(file))
        if not files:
            supported = ", ".join(IMAGE_SUFFIXES)
            raise InputError(f"{label}: no images ({supported}); add some, or remove the folder")
        for file in files:
            yield str(file), {"image": str(file), "label": label.name}


def is_image_file(file: Path) -> bool:
    """Return whether the name is that of an image; hidden files are not."""
    return file.suffix.lower() in IMAGE_SUFFIXES and not file.name.startswith(".")


def guess_format(paths: Sequence[Path | str]) -> ImageFormat:
    """Infer the format: two files are IDX, a folder is a folder, a file has a suffix."""
    if len(paths) == 2:
        return "idx"
    if Path(paths[0]).is_dir():
        return "folder"
    suffix = path_suffix(paths[0])
    if suffix not in TABLE_FORMATS:
        hint = "give a folder, a .tsv or .csv of images and labels, or two IDX files"
        raise InputError(f"{paths[0]}: neither a folder of images nor a table; {hint}")
    return TABLE_FORMATS[suffix]


class ImageDataset(NamedTuple):
    """A public dataset: files of images and labels by split.

    `installed_folder` is where a package of the operating system installs them.
    """

    description: str
    license: str
    homepage: str
    files: dict[str, tuple[RemoteFile, RemoteFile]]
    labels: tuple[str, ...]
    installed_folder: str
    held_out: float


def _fashion_mnist_files(
    name: str, image_digest: str, label_digest: str, count: int | None = None
) -> tuple[RemoteFile, RemoteFile]:
    base_url = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
    source = name if count is None else "train"
    recipe = None if count is None else first_items(count)
    return (
        RemoteFile(
            f"{base_url}/{source}-images-idx3-ubyte.gz",
            f"images/fashion_mnist/{name}-images-idx3-ubyte.gz",
            image_digest,
            recipe=recipe,
        ),
        RemoteFile(
            f"{base_url}/{source}-labels-idx1-ubyte.gz",
            f"images/fashion_mnist/{name}-labels-idx1-ubyte.gz",
            label_digest,
            recipe=recipe,
        ),
    )


_TEST_FILES = _fashion_mnist_files(
    "t10k",
    "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
)
_TRAIN_FILES = _fashion_mnist_files(
    "train",
    "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
)
_TRAIN_20K_FILES = _fashion_mnist_files(
    "train20k",
    "f675812a188eaff57e6cc99252d4b1fa2d27bc3e00cec09f67474894e24358ad",
    "c1d29b30febfce7b7c5d4dfc17d6ab9f9f8e49101ae51e79e3b24d5df6a1317e",
    count=20_000,  # the first of the complete file
)
_CLASS_NAMES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
_DESCRIPTION = "clothes in gray, 28 x 28 pixels, ten classes (Xiao et al. 2017)"
_HOMEPAGE = "https://github.com/zalandoresearch/fashion-mnist"
_DEBIAN_FOLDER = "/usr/share/datasets/fashion-mnist"  # of Debian's package dataset-fashion-mnist

IMAGE_DATASETS = {
    "fashion_mnist": ImageDataset(
        f"60,000 and 10,000 {_DESCRIPTION}",
        "MIT",
        _HOMEPAGE,
        {"train": _TRAIN_FILES, "test": _TEST_FILES},
        _CLASS_NAMES,
        _DEBIAN_FOLDER,
        held_out=0.05,
    ),
    "fashion_mnist_20k": ImageDataset(
        f"the first 20,000 of 60,000, and all 10,000 test images: {_DESCRIPTION}",
        "MIT",
        _HOMEPAGE,
        {"train": _TRAIN_20K_FILES, "test": _TEST_FILES},
        _CLASS_NAMES,
        _DEBIAN_FOLDER,
        held_out=0.05,
    ),
}


class PublicImages:
    """A public dataset; a share of its training images, by a hash, is dev."""

    splits = SPLITS

    def __init__(self, name: str) -> None:
        check_name("name", name, IMAGE_DATASETS)
        self.name, self.dataset = name, IMAGE_DATASETS[name]

    @cached_property
    def corpus(self) -> ImageFiles:
        """Return the files as a corpus; download them the first time unless they are installed."""
        _, _, _, files, labels, _, held_out = self.dataset
        train, test = (
            [self.local_path(file) for file in files[split]] for split in ("train", "test")
        )
        return ImageFiles(train, test=test, labels=labels, held_out=held_out)

    def local_path(self, source: RemoteFile) -> Path:
        name = Path(source.mirror_path).name
        installed = Path(self.dataset.installed_folder, name)
        if installed.is_file():
            return installed
        return fetch_file(source, cache_folder() / self.name / name.removesuffix(".gz"))

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        return self.corpus.read(split)

    def location(self, split: str, index: int) -> str:
        return self.corpus.location(split, index)

    def describe(self) -> str:
        description, license_name, homepage, *_ = self.dataset
        return f"{self.name}: {description}; {homepage}; license: {license_name}"
