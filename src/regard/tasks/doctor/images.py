"""Counts of the data doctor for all tasks on images."""

from collections import Counter

from regard.data.corpus import Corpus, Record, location
from regard.data.formats.images import BadImageError, ImageReader, image_digest, image_size
from regard.data.statistics import quantile
from regard.files import JsonObject

UNIT = "images"
TEXT_ONLY_KEYS = ("empty_text", "replacement_characters", "control_characters", "not_nfc")


class ImageStatistics:
    """The images of a split: their sides in pixels, and those that cannot be read."""

    def __init__(self) -> None:
        self.image_count, self.broken = 0, list[tuple[int, str]]()
        self.short_sides: Counter[int] = Counter()
        self.long_sides: Counter[int] = Counter()
        self.labels: Counter[str] = Counter()
        self.other_shapes = 0  # of another shape than the model's

    def add(self, record: Record, reader: ImageReader) -> str | None:
        """Its digest; None if it cannot be read."""
        index, self.image_count = self.image_count, self.image_count + 1
        self.labels[record.get("label", "")] += 1
        try:
            reader(record["image"])
            sides = image_size(record["image"])
        except BadImageError as error:
            self.broken.append((index, str(error)))
            return None
        self.short_sides[min(sides)] += 1
        self.long_sides[max(sides)] += 1
        if reader.size is not None:
            height, width = reader.size
            self.other_shapes += sides[0] * width != sides[1] * height
        return image_digest(record["image"])

    def as_dict(self) -> JsonObject:
        return {
            "broken": len(self.broken),
            "shortest_side": min(self.short_sides, default=0),
            "usual_side": quantile(self.short_sides, 0.5),
            "longest_side": max(self.long_sides, default=0),
        }


def broken_locations(corpus: Corpus, split: str, sizes: ImageStatistics) -> dict[str, list[str]]:
    """Return the location of the first broken image, and what is wrong with it."""
    if not sizes.broken:
        return {}
    index, reason = sizes.broken[0]
    record_location = location(corpus, split, index)
    return {
        "broken": [reason if reason.startswith(record_location) else f"{record_location}: {reason}"]
    }
