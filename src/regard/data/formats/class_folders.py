"""Images by class, of one size and in memory, from which few-shot episodes are sampled.

A class is a folder with images, at any depth, on disk or in a zip. The splits have disjoint
classes.
"""

import lzma
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.archives import repacked_images
from regard.data.corpus import SPLITS, check_name
from regard.data.download import RemoteFile, cache_folder, fetch_file
from regard.data.formats.image_files import IMAGE_SUFFIXES, is_image_file
from regard.data.formats.images import ImageReader, read_image_bytes
from regard.data.formats.lines import display_name
from regard.data.synthetic.episodes import EpisodeCorpus, SampledEpisodes, draw_layout
from regard.errors import InputError
from regard.parsing import one_line

# Class -> location of each image, and a function that reads its bytes
ImageFilesByClass = dict[str, list[tuple[str, Callable[[], bytes]]]]
MAX_IMAGE_BYTES = 1 << 29
# Of damaged archives, unknown compressions (NotImplementedError) and encrypted ones (RuntimeError)
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, RuntimeError)
RIGHT_ANGLE_ROTATIONS = 4  # 0, 90, 180 and 270 degrees


@dataclass(frozen=True)
class ClassImages:
    """Images of several classes: `pixels` [n h w c], sorted by class, and `counts` by class."""

    pixels: NDArray[np.uint8]
    counts: NDArray[np.int64]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        return self.counts.cumsum() - self.counts

    def with_rotations(self) -> "ClassImages":
        """Return four times as many classes: a rotated class is a new class."""
        rotated = [
            np.rot90(self.pixels, rotation, (1, 2)) for rotation in range(RIGHT_ANGLE_ROTATIONS)
        ]
        return ClassImages(np.concatenate(rotated), np.tile(self.counts, RIGHT_ANGLE_ROTATIONS))

    def sample_episodes(
        self, rng: np.random.Generator, count: int, ways: int, shots: int, queries: int
    ) -> SampledEpisodes:
        """Sample episodes; no image occurs twice in an episode."""
        support_labels, query_labels, support_order = draw_layout(rng, count, ways, shots, queries)
        images_per_class = shots + -(-queries // ways)
        classes = rng.random((count, len(self.counts))).argpartition(ways - 1)[:, :ways]
        random_keys = rng.random((count, ways, int(self.counts.max())))
        random_keys[np.arange(random_keys.shape[-1]) >= self.counts[classes][..., None]] = np.inf
        picks = random_keys.argsort(-1)[..., :images_per_class] + self.starts[classes][..., None]
        support = picks[..., :shots].reshape(count, -1)
        pick_index = shots + np.arange(queries) // ways
        queried = picks[np.arange(count)[:, None], query_labels, pick_index]
        return SampledEpisodes(
            self.pixels[np.concatenate([support, queried], 1)],
            support_labels,
            query_labels,
            support_order,
        )


class ImageEpisodes(EpisodeCorpus):
    """Episodes of images; a split without a path gets a share of the classes of train."""

    def __init__(
        self,
        ways: int,
        shots: int,
        reader: ImageReader,
        rotations: bool,
        held_out: float,
        seed: int,
        eval_episodes: int,
    ):
        super().__init__(ways, shots, seed, eval_episodes)
        self.reader, self.rotations, self.held_out = reader, rotations, held_out
        self.loaded: dict[str, ClassImages] = {}

    @abstractmethod
    def split_paths(self) -> dict[str, Path]:
        """Return a folder or a zip for train, and for other splits that have one."""

    @cached_property
    def classes_by_split(self) -> dict[str, tuple[str, ImageFilesByClass]]:
        """Return the display name and the classes of each split."""
        paths = self.split_paths()
        files_by_split = {split: find_image_classes(path) for split, path in paths.items()}
        missing = [split for split in SPLITS if split not in files_by_split]
        files_by_split |= hold_out_classes(
            files_by_split["train"], missing, self.held_out, self.seed
        )
        return {
            split: (f"{split}, {display_name(paths.get(split, paths['train']))}", files)
            for split, files in files_by_split.items()
        }

    def class_images(self, split: str) -> ClassImages:
        """Return the images of a split, which are decoded once and kept in memory."""
        if split not in self.loaded:
            split_location, classes = self.classes_by_split[split]
            check_classes(split_location, classes, self.ways, self.shots)
            pixels = [
                self.reader.decode(read_bytes(), location)
                for files in classes.values()
                for location, read_bytes in files
            ]
            counts = np.array([len(files) for files in classes.values()])
            images = ClassImages(np.stack(pixels), counts)
            self.loaded[split] = (
                images.with_rotations() if self.rotations and split == "train" else images
            )
        return self.loaded[split]

    def sample_episodes(
        self, split: str, rng: np.random.Generator, count: int, shots: int, queries: int
    ) -> SampledEpisodes:
        images = self.class_images(split)
        images_per_class = shots + -(-queries // self.ways)
        if images.counts.min() < images_per_class:
            max_queries = (int(images.counts.min()) - shots) * self.ways
            raise InputError(
                f"{split}: a class has only {images.counts.min()} images, but train.queries = "
                f"{queries} needs {images_per_class}; set it to at most {max_queries}"
            )
        return images.sample_episodes(rng, count, self.ways, shots, queries)


class ClassFolders(ImageEpisodes):
    """Few-shot episodes from your folders or zip files, with a folder for each class."""

    def __init__(
        self,
        train: Path | str,
        dev: Path | str | None = None,
        test: Path | str | None = None,
        *,
        ways: int = 5,
        shots: int = 1,
        image_size: tuple[int, int] = (28, 28),
        channels: int = 1,
        rotations: bool = False,
        held_out: float = 0.1,
        seed: int = 0,
        eval_episodes: int = 2000,
    ) -> None:
        reader = ImageReader(image_size, channels)
        super().__init__(ways, shots, reader, rotations, held_out, seed, eval_episodes)
        given_paths = dict(zip(SPLITS, (train, dev, test), strict=True))
        self.paths = {split: Path(path) for split, path in given_paths.items() if path is not None}

    def split_paths(self) -> dict[str, Path]:
        return self.paths

    def describe(self) -> str:
        each = [f"{split} {display_name(path)}" for split, path in self.paths.items()]
        missing = [split for split in SPLITS if split not in self.paths]
        each += [f"{split} {self.held_out:.0%} of its classes" for split in missing]
        sizes = f"{self.ways} ways, {self.shots} shots"
        return f"classes: {', '.join(each)}; {sizes}; license not stated"


def _omniglot_file(name: str, digest: str) -> RemoteFile:
    """Return a zip of the authors; the checksum is of its images, packed in one way."""
    url = f"https://raw.githubusercontent.com/brendenlake/omniglot/master/python/{name}"
    path = f"fewshot/omniglot/{name}"
    return RemoteFile(url, path, digest, recipe=repacked_images, is_mirror_converted=True)


_OMNIGLOT_FILES = {
    "train": _omniglot_file(
        "images_background.zip", "12f28f39d6d0baaa9b94998e145067e51cc8bdac385d5b3c8994ade9a99f11a2"
    ),
    "test": _omniglot_file(
        "images_evaluation.zip", "7fd4f63de21cc4a4e0abb7d2f4b8d5491637b42651c1817c538392ae00186206"
    ),
}
IMAGE_CLASS_DATASETS = {"omniglot": _OMNIGLOT_FILES}


class PublicImageClasses(ImageEpisodes):
    """Few-shot episodes of a public dataset; a share `held_out` of its training classes is dev."""

    def __init__(
        self,
        name: str = "omniglot",
        *,
        ways: int = 5,
        shots: int = 1,
        image_size: tuple[int, int] = (28, 28),
        channels: int = 1,
        rotations: bool = True,
        held_out: float = 0.1,
        seed: int = 0,
        eval_episodes: int = 2000,
    ) -> None:
        check_name("name", name, IMAGE_CLASS_DATASETS)
        reader = ImageReader(image_size, channels)
        super().__init__(ways, shots, reader, rotations, held_out, seed, eval_episodes)
        self.name = name

    def split_paths(self) -> dict[str, Path]:
        """Download the files the first time, and return their paths."""
        files, folder = IMAGE_CLASS_DATASETS[self.name], cache_folder() / self.name
        return {
            k: fetch_file(file, folder / Path(file.mirror_path).name) for k, file in files.items()
        }

    def describe(self) -> str:
        sizes = f"{self.ways} ways, {self.shots} shots"
        rotation_note = ", rotated to four times as many for training" if self.rotations else ""
        description = f"964 and 659 characters of 50 alphabets, 20 images each{rotation_note}"
        homepage = "https://github.com/brendenlake/omniglot"
        return f"{self.name}: {description}; {sizes}; {homepage} (Lake et al. 2015); license: MIT"


def find_image_classes(path: Path) -> ImageFilesByClass:
    """Find all folders with images below a folder or in a zip; each is a class."""
    if path.is_file() and path.suffix.lower() == ".zip":
        classes = zip_image_classes(path)
    elif path.is_dir():
        classes = folder_image_classes(path)
    elif path.exists():
        raise InputError(
            f"{path}: neither a folder nor a .zip; give one with a folder for each class"
        )
    else:
        raise InputError(f"{path}: there is no such folder")
    if not classes:
        supported = ", ".join(IMAGE_SUFFIXES)
        raise InputError(f"{path}: no folder with images ({supported}); make one for each class")
    return classes


def folder_image_classes(path: Path) -> ImageFilesByClass:
    classes: ImageFilesByClass = {}
    for file in sorted(path.rglob("*")):
        if is_image_file(file) and file.is_file() and file.parent != path:
            name = str(file.parent.relative_to(path))
            classes.setdefault(name, []).append(
                (str(file), lambda file=file: read_image_bytes(file))
            )
    return classes


def zip_image_classes(path: Path) -> ImageFilesByClass:
    """List the images of a zip by class; their bytes are read later."""
    classes: ImageFilesByClass = {}
    try:
        archive = zipfile.ZipFile(path)
    except ZIP_ERRORS as error:
        raise InputError(f"{path}: damaged ({one_line(error)}); download it again") from None
    for name in sorted(archive.namelist()):
        member_path = Path(name)
        if is_image_file(member_path) and member_path.parent != Path():
            location = f"{path}: {name}"
            classes.setdefault(str(member_path.parent), []).append(
                (
                    location,
                    lambda name=name, location=location: read_member(archive, name, location),
                )
            )
    return classes


def read_member(archive: zipfile.ZipFile, name: str, location: str) -> bytes:
    """Return the bytes of an image in a zip, which must not be larger than images are."""
    if (size := archive.getinfo(name).file_size) > MAX_IMAGE_BYTES:
        raise InputError(f"{location}: {size:,} bytes, more than {MAX_IMAGE_BYTES:,}; not an image")
    try:
        return archive.read(name)
    except ZIP_ERRORS as error:
        raise InputError(f"{location}: damaged ({one_line(error)}); remove it") from None


def hold_out_classes(
    classes: ImageFilesByClass, missing: Sequence[str], share: float, seed: int
) -> dict[str, ImageFilesByClass]:
    """Move a share of the classes to each missing split, and return these splits and train."""
    order = sorted(classes, key=lambda name: sha256(f"{seed} {name}".encode()).digest())
    classes_per_split = round(share * len(order))
    held_out: dict[str, ImageFilesByClass] = {}
    for split in missing:
        held_out[split] = {name: classes[name] for name in sorted(order[:classes_per_split])}
        order = order[classes_per_split:]
    return {"train": {name: classes[name] for name in sorted(order)}, **held_out}


def check_classes(location: str, classes: ImageFilesByClass, ways: int, shots: int) -> None:
    if len(classes) < ways:
        problem = f"{len(classes)} classes, but an episode has data.ways = {ways}"
        raise InputError(f"{location}: {problem}; add classes, hold out fewer, or lower data.ways")
    for name, files in small_classes(classes, shots + 1):
        actual = f"{name} has {len(files)} image{'s' if len(files) > 1 else ''}"
        raise InputError(
            f"{location}: {actual}, but {shots + 1} are needed: data.shots = {shots}, and a query; "
            "add images, or remove the class"
        )


def small_classes(
    classes: ImageFilesByClass, min_images: int
) -> Iterator[tuple[str, list[tuple[str, Callable[[], bytes]]]]]:
    return ((name, files) for name, files in classes.items() if len(files) < min_images)
