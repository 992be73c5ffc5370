"""Pictures with a label: from folders, IDX files and tables, and public sets by name.

Records are {"picture": a path or an array, "label": …}; `corpora.pictures` reads the picture.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from regard.corpora.corpus import SPLITS, Record, check_name, check_split
from regard.corpora.download import Source, cache_folder, fetched
from regard.corpora.files import Paths, suffix_of
from regard.corpora.idx import read_idx
from regard.corpora.labelled import ByHash, Placed, by_split, shares, table
from regard.corpora.lines import check_file, shown
from regard.corpora.pictures import digest_of

Format = Literal["folder", "idx", "tsv", "csv"]
FIELDS = ("picture", "label")
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
TABLES: dict[str, Format] = {".tsv": "tsv", ".tab": "tsv", ".csv": "csv"}


class PictureFiles(ByHash):
    """A corpus of one format: for each split a folder, a table, or two IDX files.

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
        columns: Sequence[str] = FIELDS,
        labels: Sequence[str] | None = None,
        held_out: float = 0.1,
    ) -> None:
        self.paths = by_split(train, dev, test)
        self.format: Format = format or guessed(self.paths["train"])
        self.columns, self.labels = tuple(columns), None if labels is None else tuple(labels)
        self.shares = shares(self.paths, held_out)
        self.digests: dict[str, str] = {}  # of files, each read once for it
        self._check()

    def describe(self) -> str:
        each = [f"{split} {' + '.join(map(shown, paths))}" for split, paths in self.paths.items()]
        each += [f"{split} {share:.0%} of train" for split, share in self.shares.items()]
        return f"pictures ({self.format}): {', '.join(each)}; licence as you know it"

    def key(self, record: Record) -> str:
        picture = record["picture"]
        if not isinstance(picture, str):
            return digest_of(picture)
        if picture not in self.digests:
            self.digests[picture] = digest_of(picture)
        return self.digests[picture]

    def _all(self, paths: Sequence[Path | str]) -> Iterator[Placed]:
        match self.format:
            case "folder":
                return by_folder(Path(paths[0]))
            case "idx":
                return self.by_idx(*paths)
            case "tsv" | "csv":
                return self.by_table(paths[0])

    def by_idx(self, pictures: Path | str, labels: Path | str) -> Iterator[Placed]:
        found, classes = read_idx(pictures, 3), read_idx(labels, 1)
        if len(found) != len(classes):
            each = f"{shown(pictures)} has {len(found)}, {shown(labels)} {len(classes)}"
            raise ValueError(f"{each}: there must be a label for each picture")
        for number, (pixels, label) in enumerate(zip(found, classes.tolist(), strict=True), 1):
            place = f"{shown(pictures)}: picture {number}"
            if self.labels is not None and label >= len(self.labels):
                raise ValueError(f"{place}: label {label}, but labels has only {len(self.labels)}")
            name = str(label) if self.labels is None else self.labels[label]
            yield place, {"picture": pixels, "label": name}

    def by_table(self, path: Path | str) -> Iterator[Placed]:
        """Paths are beside the table, if they are not from the root."""
        kind: Literal["tsv", "csv"] = "csv" if self.format == "csv" else "tsv"
        for place, record in table(path, kind, self.columns):
            if not record["label"]:
                raise ValueError(f"{place}: the label is empty")
            where = Path(path).parent / record["picture"]
            if not where.is_file():
                raise ValueError(f"{place}: there is no such picture: {where}")
            yield f"{place} ({where})", {**record, "picture": str(where)}

    def _check(self) -> None:
        """What is wrong is told before the work."""
        for needed in FIELDS:
            if list(self.columns).count(needed) != 1:
                raise ValueError(f"columns must name {needed!r} once, not {list(self.columns)}")
        if self.columns != FIELDS and self.format not in ("tsv", "csv"):
            raise ValueError(f"columns do not fit {self.format}: they are of a table")
        if self.labels is not None and self.format != "idx":
            raise ValueError(f"labels do not fit {self.format}: they name the numbers of IDX files")
        wanted = {"folder": "one folder", "idx": "two files (pictures, labels)"}
        for split, paths in self.paths.items():
            if len(paths) != (2 if self.format == "idx" else 1):
                what = wanted.get(self.format, "one file")
                raise ValueError(f"{split}: {self.format} needs {what}, not {len(paths)}")
            for path in paths:
                if self.format != "folder":
                    check_file(path)
                elif not Path(path).is_dir():
                    raise ValueError(f"{path}: there is no such folder")


def by_folder(path: Path) -> Iterator[Placed]:
    """`folder/label/*.png`: the name of the folder is the label of every picture in it."""
    labels = sorted(place for place in path.iterdir() if place.is_dir())
    if not labels:
        raise ValueError(f"{path}: no folder in it; make one for each label, with pictures")
    for label in labels:
        found = sorted(file for file in label.iterdir() if is_picture(file))
        if not found:
            known = ", ".join(SUFFIXES)
            raise ValueError(f"{label}: no picture in it ({known}); put some there, or take it out")
        for file in found:
            yield str(file), {"picture": str(file), "label": label.name}


def is_picture(file: Path) -> bool:
    """By its name; what systems hide in folders begins with a dot."""
    return file.suffix.lower() in SUFFIXES and not file.name.startswith(".")


def guessed(paths: Sequence[Path | str]) -> Format:
    """The format, by the number of the files, what they are, or the end of their name."""
    if len(paths) == 2:
        return "idx"
    if Path(paths[0]).is_dir():
        return "folder"
    suffix = suffix_of(paths[0])
    if suffix not in TABLES:
        hint = "give a folder, a .tsv or .csv of pictures and labels, or two IDX files"
        raise ValueError(f"{paths[0]}: this is no folder of pictures and no table; {hint}")
    return TABLES[suffix]


class Publication(NamedTuple):
    """`files` are pictures and labels by split; `installed` is where a system may have them."""

    about: str
    licence: str
    home: str
    files: dict[str, tuple[Source, Source]]
    labels: tuple[str, ...]
    installed: str
    held_out: float


def _fashion(name: str, pictures: str, labels: str, served: bool = True) -> tuple[Source, Source]:
    home = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
    return (
        Source(
            f"{home}/{name}-images-idx3-ubyte.gz" if served else "",
            f"images/fashion_mnist/{name}-images-idx3-ubyte.gz",
            pictures,
        ),
        Source(
            f"{home}/{name}-labels-idx1-ubyte.gz" if served else "",
            f"images/fashion_mnist/{name}-labels-idx1-ubyte.gz",
            labels,
        ),
    )


_TEST = _fashion(
    "t10k",
    "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
)
_ALL = _fashion(
    "train",
    "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
)
_SOME = _fashion(
    "train20k",
    "f675812a188eaff57e6cc99252d4b1fa2d27bc3e00cec09f67474894e24358ad",
    "c1d29b30febfce7b7c5d4dfc17d6ab9f9f8e49101ae51e79e3b24d5df6a1317e",
    served=False,  # it was cut from the file of all
)
_CLOTHES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
_ABOUT = "clothes in grey, 28 x 28 pixels, ten classes (Xiao et al. 2017)"
_HOME = "https://github.com/zalandoresearch/fashion-mnist"
_DEBIAN = "/usr/share/datasets/fashion-mnist"  # of Debian's package dataset-fashion-mnist

PICTURES = {
    "fashion_mnist": Publication(
        f"60,000 and 10,000 {_ABOUT}",
        "MIT",
        _HOME,
        {"train": _ALL, "test": _TEST},
        _CLOTHES,
        _DEBIAN,
        held_out=0.05,
    ),
    "fashion_mnist_20k": Publication(
        f"the first 20,000 of 60,000, and all 10,000 of the test: {_ABOUT}",
        "MIT",
        _HOME,
        {"train": _SOME, "test": _TEST},
        _CLOTHES,
        _DEBIAN,
        held_out=0.05,
    ),
}


class PictureSet:
    """A public set; a share of its train, by a hash of the picture, is dev."""

    splits = SPLITS

    def __init__(self, name: str) -> None:
        check_name("name", name, PICTURES)
        self.name, self.publication = name, PICTURES[name]

    @cached_property
    def corpus(self) -> PictureFiles:
        """The first time, the files are downloaded, where they are not installed."""
        _, _, _, files, labels, _, held_out = self.publication
        train, test = ([self.path(one) for one in files[split]] for split in ("train", "test"))
        return PictureFiles(train, test=test, labels=labels, held_out=held_out)

    def path(self, source: Source) -> Path:
        name = Path(source.mirrored).name
        installed = Path(self.publication.installed, name)
        if installed.is_file():
            return installed
        return fetched(source, cache_folder() / self.name / name.removesuffix(".gz"))

    def read(self, split: str) -> Iterator[Record]:
        check_split(split, self.splits)
        return self.corpus.read(split)

    def place(self, split: str, number: int) -> str:
        return self.corpus.place(split, number)

    def describe(self) -> str:
        about, licence, home, *_ = self.publication
        return f"{self.name}: {about}; {home}; licence: {licence}"
