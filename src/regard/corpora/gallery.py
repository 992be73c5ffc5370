"""Pictures class by class, all of one size and in memory: what few-shot episodes are dealt from.

A class is a folder with pictures in it, at any depth, on disk or in a zip. Classes of dev and test
are never trained on.
"""

import zipfile
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.corpora.corpus import SPLITS, check_name
from regard.corpora.download import Source, cache_folder, fetched
from regard.corpora.episodes import Dealt, Episodes, hand
from regard.corpora.lines import shown as named
from regard.corpora.pictures import Reader, contents
from regard.corpora.picturesets import SUFFIXES, is_picture

Folder = dict[str, list[tuple[str, Callable[[], bytes]]]]  # class -> place of each picture, bytes
TURNS = 4  # by a right angle each


@dataclass(frozen=True)
class Gallery:
    """`pixels` [n h w c]; the first `counts[0]` are of the first class, and so on."""

    pixels: NDArray[np.uint8]
    counts: NDArray[np.int64]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        return self.counts.cumsum() - self.counts

    def turned(self) -> "Gallery":
        """Each class four times: turned by a right angle it is another one."""
        turns = [np.rot90(self.pixels, turn, (1, 2)) for turn in range(TURNS)]
        return Gallery(np.concatenate(turns), np.tile(self.counts, TURNS))

    def deal(
        self, chance: np.random.Generator, many: int, ways: int, shots: int, queries: int
    ) -> Dealt:
        """All pictures of a class in an episode are different ones."""
        labels, wanted, order = hand(chance, many, ways, shots, queries)
        need = shots + -(-queries // ways)
        classes = chance.random((many, len(self.counts))).argpartition(ways - 1)[:, :ways]
        lots = chance.random((many, ways, int(self.counts.max())))
        lots[np.arange(lots.shape[-1]) >= self.counts[classes][..., None]] = np.inf
        picks = lots.argsort(-1)[..., :need] + self.starts[classes][..., None]
        support = picks[..., :shots].reshape(many, -1)
        turn = shots + np.arange(queries) // ways
        asked = picks[np.arange(many)[:, None], wanted, turn]
        return Dealt(self.pixels[np.concatenate([support, asked], 1)], labels, wanted, order)


class Galleries(Episodes):
    """Episodes of pictures. Splits that have no path are a share of the classes of train each."""

    def __init__(
        self,
        ways: int,
        shots: int,
        reader: Reader,
        turned: bool,
        held_out: float,
        seed: int,
        episodes: int,
    ):
        super().__init__(ways, shots, seed, episodes)
        self.reader, self.turned, self.held_out = reader, turned, held_out
        self.held: dict[str, Gallery] = {}

    @abstractmethod
    def where(self) -> dict[str, Path]:
        """A folder or a zip for each split that has its own; train has."""

    @cached_property
    def parts(self) -> dict[str, tuple[str, Folder]]:
        """What messages call it, and its classes, by split."""
        paths = self.where()
        found = {split: classes_of(path) for split, path in paths.items()}
        missing = [split for split in SPLITS if split not in found]
        found |= dealt_out(found["train"], missing, self.held_out, self.seed)
        return {k: (f"{k}, {named(paths.get(k, paths['train']))}", one) for k, one in found.items()}

    def gallery(self, split: str) -> Gallery:
        """Read once: every picture becomes so many bytes."""
        if split not in self.held:
            place, classes = self.parts[split]
            check_classes(place, classes, self.ways, self.shots)
            pixels = [
                self.reader.decoded(read(), where)
                for some in classes.values()
                for where, read in some
            ]
            counts = np.array([len(some) for some in classes.values()])
            found = Gallery(np.stack(pixels), counts)
            self.held[split] = found.turned() if self.turned and split == "train" else found
        return self.held[split]

    def deal(
        self, split: str, chance: np.random.Generator, many: int, shots: int, queries: int
    ) -> Dealt:
        gallery = self.gallery(split)
        need = shots + -(-queries // self.ways)
        if gallery.counts.min() < need:
            most = (int(gallery.counts.min()) - shots) * self.ways
            raise ValueError(
                f"{split}: a class has only {gallery.counts.min()} pictures, and {need} are "
                f"needed for train.queries = {queries}: make it at most {most}"
            )
        return gallery.deal(chance, many, self.ways, shots, queries)


class ClassFolders(Galleries):
    """Your own."""

    def __init__(
        self,
        train: Path | str,
        dev: Path | str | None = None,
        test: Path | str | None = None,
        *,
        ways: int = 5,
        shots: int = 1,
        size: tuple[int, int] = (28, 28),
        channels: int = 1,
        turned: bool = False,
        held_out: float = 0.1,
        seed: int = 0,
        episodes: int = 2000,
    ) -> None:
        reader = Reader(size, channels)
        super().__init__(ways, shots, reader, turned, held_out, seed, episodes)
        given = dict(zip(SPLITS, (train, dev, test), strict=True))
        self.paths = {split: Path(path) for split, path in given.items() if path is not None}

    def where(self) -> dict[str, Path]:
        return self.paths

    def describe(self) -> str:
        each = [f"{split} {named(path)}" for split, path in self.paths.items()]
        missing = [split for split in SPLITS if split not in self.paths]
        each += [f"{split} {self.held_out:.0%} of its classes" for split in missing]
        sizes = f"{self.ways} ways, {self.shots} shots"
        return f"classes: {', '.join(each)}; {sizes}; licence as you know it"


_OMNIGLOT = {
    "train": Source(
        "",  # repacked: another zip of the same pictures than the authors'
        "fewshot/omniglot/images_background.zip",
        "b5065e7bfafff477c3b3b11be1ce6632a4e520dc1cf28d51c8fe9d19b3bdf8d2",
    ),
    "test": Source(
        "",
        "fewshot/omniglot/images_evaluation.zip",
        "4956cd99e11cd8c184977b64ca93acd116b99b01541e548698b8b9565395b60f",
    ),
}
NAMED = {"omniglot": _OMNIGLOT}


class GallerySet(Galleries):
    """A public set: `held_out` of its classes to train on are dev."""

    def __init__(
        self,
        name: str = "omniglot",
        *,
        ways: int = 5,
        shots: int = 1,
        size: tuple[int, int] = (28, 28),
        channels: int = 1,
        turned: bool = True,
        held_out: float = 0.1,
        seed: int = 0,
        episodes: int = 2000,
    ) -> None:
        check_name("name", name, NAMED)
        reader = Reader(size, channels)
        super().__init__(ways, shots, reader, turned, held_out, seed, episodes)
        self.name = name

    def where(self) -> dict[str, Path]:
        """The first time, the files are downloaded."""
        sources, folder = NAMED[self.name], cache_folder() / self.name
        return {k: fetched(one, folder / Path(one.mirrored).name) for k, one in sources.items()}

    def describe(self) -> str:
        sizes = f"{self.ways} ways, {self.shots} shots"
        turned = ", each turned into four to train on" if self.turned else ""
        about = f"964 and 659 characters of 50 alphabets, 20 pictures each{turned}"
        home = "https://github.com/brendenlake/omniglot"
        return f"{self.name}: {about}; {sizes}; {home} (Lake et al. 2015); licence: MIT"


def classes_of(path: Path) -> Folder:
    """Every folder below with pictures in it is a class, by its path."""
    if path.is_file() and path.suffix.lower() == ".zip":
        found = in_zip(path)
    elif path.is_dir():
        found = on_disk(path)
    elif path.exists():
        raise ValueError(f"{path}: this is no folder and no .zip; give one with a folder per class")
    else:
        raise ValueError(f"{path}: there is no such folder")
    if not found:
        known = ", ".join(SUFFIXES)
        raise ValueError(
            f"{path}: no folder with pictures in it ({known}); make one for each class"
        )
    return found


def on_disk(path: Path) -> Folder:
    found: Folder = {}
    for file in sorted(path.rglob("*")):
        if is_picture(file) and file.is_file() and file.parent != path:
            name = str(file.parent.relative_to(path))
            found.setdefault(name, []).append((str(file), lambda file=file: contents(file)))
    return found


def in_zip(path: Path) -> Folder:
    """The names are read now, the pictures when they are wanted."""
    found: Folder = {}
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path}: damaged ({error})") from None
    for name in sorted(archive.namelist()):
        inner = Path(name)
        if is_picture(inner) and inner.parent != Path():
            place = f"{path}: {name}"
            found.setdefault(str(inner.parent), []).append(
                (place, lambda name=name: archive.read(name))
            )
    return found


def dealt_out(
    classes: Folder, missing: Sequence[str], share: float, seed: int
) -> dict[str, Folder]:
    """What is left to train on, and a share of the classes for each split that is missing."""
    order = sorted(classes, key=lambda name: sha256(f"{seed} {name}".encode()).digest())
    each = round(share * len(order))
    found: dict[str, Folder] = {}
    for split in missing:
        found[split] = {name: classes[name] for name in sorted(order[:each])}
        order = order[each:]
    return {"train": {name: classes[name] for name in sorted(order)}, **found}


def check_classes(place: str, classes: Folder, ways: int, shots: int) -> None:
    if len(classes) < ways:
        less = f"{len(classes)} classes, but an episode has data.ways = {ways}"
        raise ValueError(f"{place}: {less}; give more, hold out fewer, or lower it")
    for name, some in few(classes, shots + 1):
        have = f"{name} has {len(some)} picture{'s' if len(some) > 1 else ''}"
        raise ValueError(
            f"{place}: {have}, but {shots + 1} are needed: data.shots = {shots} to be shown, and "
            "one to be asked for; give more, or take it out"
        )


def few(classes: Folder, least: int) -> Iterator[tuple[str, list[tuple[str, Callable[[], bytes]]]]]:
    return ((name, some) for name, some in classes.items() if len(some) < least)
