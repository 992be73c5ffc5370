"""Episodes of few-shot recognition: a support of labeled examples, and a query.

A line of input is a folder of images and the path of a query, or JSON with points.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.corpus import Record
from regard.data.formats.class_folders import find_image_classes
from regard.data.formats.images import ImageReader
from regard.errors import InputError
from regard.parsing import parse_json_object

IMAGE_INPUT_FORMAT = (
    "a folder with a folder of images for each class, a tab, and the image to classify"
)
POINT_INPUT_EXAMPLE = '{"support": {"a": [[0.1, …]], …}, "query": [0.2, …]}'

ExampleArray = NDArray[np.generic]
"""Points (float32) or the pixels of images (uint8)."""


@dataclass(frozen=True)
class FewshotEpisode:
    """Support examples in order, then the query, with the classes of the support examples."""

    examples: ExampleArray  # [s+1 ...]
    support_labels: NDArray[np.int64]  # [s]
    target: int | None  # class of the query; None for a line of input
    classes: tuple[str, ...]
    names: tuple[str, ...]  # of the support examples


class Support(NamedTuple):
    """Named examples of each class, and the query."""

    examples: Mapping[str, Sequence[tuple[str, ExampleArray]]]
    query: ExampleArray


SupportParser = Callable[[str, str], Support]
"""(line, location) -> the support and the query of a line of input."""


def to_episode(record: Record, ways: int) -> FewshotEpisode:
    """Convert a record of a corpus; its classes are numbers from 1."""
    labels = record["support_labels"]
    classes = tuple(str(way + 1) for way in range(ways))
    return FewshotEpisode(
        examples=record["examples"],
        support_labels=labels,
        target=record["target"],
        classes=classes,
        names=tuple(f"{classes[label]}: {n}" for n, label in enumerate(labels, 1)),
    )


def parse_episode(
    line: str, location: str, parse_support: SupportParser, ways: int, max_shots: int
) -> FewshotEpisode:
    """Convert a line of input; the classes take turns in the sequence."""
    support, query = parse_support(line, location)
    if len(support) != ways:
        problem = f"{len(support)} classes in the support, but the run has {ways}"
        raise InputError(f"{location}: {problem}; give {ways}")
    shot_counts = {len(class_examples) for class_examples in support.values()}
    if len(shot_counts) > 1 or not 1 <= max(shot_counts) <= max_shots:
        expected = f"1 to {max_shots}" if max_shots > 1 else "1"
        raise InputError(f"{location}: give {expected} examples of each class, the same for all")
    shots, classes = max(shot_counts), list(support)
    order = [(way, shot) for shot in range(shots) for way in range(len(classes))]
    named_examples = [support[classes[way]][shot] for way, shot in order]
    return FewshotEpisode(
        examples=np.stack([*(example for _, example in named_examples), query]),
        support_labels=np.array([way for way, _ in order]),
        target=None,
        classes=tuple(classes),
        names=tuple(
            f"{classes[way]}: {name}"
            for (way, _), (name, _) in zip(order, named_examples, strict=True)
        ),
    )


def parse_images(line: str, location: str, reader: ImageReader) -> Support:
    """Read `FOLDER<tab>IMAGE`; each folder in FOLDER is a class."""
    folder, separator, query = line.partition("\t")
    if not separator:
        folder, _, query = line.strip().rpartition(" ")
    if not folder.strip() or not query.strip():
        raise InputError(f"{location}: a line must be {IMAGE_INPUT_FORMAT}")
    try:
        examples = {
            name: [
                (Path(path).name, reader.decode(read_bytes(), path)) for path, read_bytes in files
            ]
            for name, files in find_image_classes(Path(folder.strip())).items()
        }
        return Support(examples, reader(query.strip()))
    except ValueError as error:
        raise InputError(f"{location}: {error}") from None


def parse_points(line: str, location: str, dim: int) -> Support:
    """Read JSON with `dim` numbers for each example and the query."""
    try:
        data = parse_json_object(line, location)
        examples = {
            str(name): [
                (str(index), np.array(point, np.float32))
                for index, point in enumerate(class_points, 1)
            ]
            for name, class_points in data["support"].items()
        }
        query = np.array(data["query"], np.float32)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(f"{location}: a line must be JSON such as {POINT_INPUT_EXAMPLE}") from None
    points = [point for class_points in examples.values() for _, point in class_points]
    for point in [query, *points]:
        if point.shape != (dim,):
            raise InputError(f"{location}: a point has {point.size} numbers; give {dim}")
    return Support(examples, query)
