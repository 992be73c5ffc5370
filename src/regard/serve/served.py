"""A run that is served: its queue, its description, and inputs that become records."""

import base64
import binascii
import io
import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock

from regard.data.corpus import Record
from regard.data.formats.images import ImageLike, ImageReader
from regard.errors import InputError
from regard.explain.heads import head_counts
from regard.files import JsonObject
from regard.run import Run
from regard.serve.batcher import Batcher, CountCallback
from regard.serve.limits import ApiError, Limits
from regard.tasks.base import FieldValue, InputField, Task
from regard.tasks.image_tools import png_bytes
from regard.tasks.protocols import Conversation, TextCompleter, TextEmbedder
from regard.text.tokenizer import Vocabulary
from regard.view.layer_names import layer_label

MAX_VARIANTS = 32  # settings of requests for which a task is kept
MAX_EXAMPLES = 20  # records of the data that the page offers
MAX_PREVIEW_CHARACTERS = 200
CHANGEABLE_SETTINGS = ("decode.",)  # tables that a request may change
IMAGE_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
CHAT = "chat completions"  # the name of an API
EXAMPLE_SPLITS = ("test", "dev", "train")

InputValue = str | dict[str, str | list[str]]
"""An input of a request: a line of text, or the values of the input fields."""


class ServedRun:
    """One run under its name, with the settings that requests have asked for."""

    def __init__(
        self,
        name: str,
        run: Run,
        limits: Limits,
        *,
        languages: tuple[str, str] | None = None,
        on_batch: CountCallback | None = None,
        on_waiting: CountCallback | None = None,
    ):
        self.name, self.run, self.limits = name, run, limits
        self.languages = languages or data_languages(run)
        self.batcher = Batcher(name, limits, on_batch, on_waiting)
        self.variants, self.lock = OrderedDict[tuple[str, ...], Run](), Lock()

    def variant(self, overrides: Sequence[str]) -> Run:
        """Return the run under other settings; the last ones that were asked for are kept."""
        key = tuple(overrides)
        if not key:
            return self.run
        for override in key:
            if not override.startswith(CHANGEABLE_SETTINGS):
                allowed = " or ".join(f"{prefix}KEY=VALUE" for prefix in CHANGEABLE_SETTINGS)
                raise ApiError(422, f"set: {override[:40]!r} is not {allowed}")
        with self.lock:
            if key in self.variants:
                self.variants.move_to_end(key)
                return self.variants[key]
        run = self.run.override(key)
        with self.lock:
            self.variants[key] = run
            while len(self.variants) > MAX_VARIANTS:
                self.variants.popitem(last=False)
        return run

    def describe(self) -> JsonObject:
        """Return what a client needs to know to use this run."""
        task, settings = self.run.task, self.run.settings
        return {
            "name": self.name,
            "task": task.name,
            "model": settings.model.kind,
            "parameters": sum(weight.numel() for weight in self.run.model.parameters()),
            "fields": [field._asdict() for field in task.input_fields],
            "has_attention": task.has_attention(),
            "accepts_target": task.accepts_target,
            "accepts_prefix": task.accepts_prefix,
            "accepts_links": task.accepts_links,
            "has_details": type(task).details is not Task.details,
            "attentions": self.attentions,
            "languages": list(self.languages) if self.languages else None,
            "apis": self.apis(),
        }

    def apis(self) -> list[str]:
        """Return the interfaces of other servers that this run can answer."""
        task = self.run.task
        offers = {
            CHAT: isinstance(task, Conversation),
            "completions": isinstance(task, TextCompleter) and not isinstance(task, Conversation),
            "embeddings": isinstance(task, TextEmbedder),
            "translation": self.languages is not None and task.accepts_target,
        }
        return [name for name, is_offered in offers.items() if is_offered]

    @cached_property
    def attentions(self) -> list[JsonObject]:
        """The attentions that a counterfactual counts from L1, with their numbers of heads."""
        task = self.run.task
        if not task.has_attention():
            return []
        counts = head_counts(self.run)
        return [
            {"label": layer_label(name), "heads": counts.get(name, 0)}
            for name in task.attention_names()
        ]

    @cached_property
    def examples(self) -> list[Record]:
        """Records of the data, if it is on this machine."""
        try:
            corpus = self.run.corpus()
            split = next(split for split in EXAMPLE_SPLITS if split in corpus.splits)
            records = list[Record]()
            for record in corpus.read(split):
                records.append(record)
                if len(records) == MAX_EXAMPLES:
                    break
            return records
        except (InputError, OSError, StopIteration):
            return []

    def form_values(self, record: Record) -> JsonObject:
        """Return the values of the input fields for a record of the data; images as data URLs."""
        values = self.run.task.form_values(record)
        images = {field.name for field in self.run.task.input_fields if field.kind == "image"}
        return {
            name: encode_image(value) if name in images and not isinstance(value, list) else value
            for name, value in values.items()
        }

    # --- inputs

    @cached_property
    def reads_images(self) -> bool:
        return any(field.kind == "image" for field in self.run.task.input_fields)

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, in the vocabulary with the shortest pieces."""
        vocabularies = self.run.vocabularies.values()
        tokenizers = [item for item in vocabularies if isinstance(item, Vocabulary)]
        return max((len(item.encode_ids([text])[0]) for item in tokenizers), default=0)

    def image_record(self, data: bytes, location: str) -> Record:
        """Convert the bytes of an image file to a record."""
        [field] = self.run.task.input_fields
        pixels = read_pixels(data, self.limits.max_image_pixels, location)
        return self.run.task.to_record({field.name: pixels}, location)

    def to_record(self, value: InputValue, location: str) -> Record:
        """Convert an input of a request to a record; never read a file that it names."""
        fields = self.run.task.input_fields
        if not fields:
            raise ApiError(422, f"{location}: this run takes examples of its data only")
        if isinstance(value, str):
            is_enough = len(fields) == 1 or not any(field.is_required for field in fields[1:])
            if not is_enough or fields[0].kind == "image":
                raise ApiError(422, f"{location}: give an object with {field_names(fields)}")
            value = {fields[0].name: [value] if fields[0].kind == "list" else value}
        unknown = set(value) - {field.name for field in fields}
        if unknown:
            raise ApiError(422, f"{location}: {min(unknown)!r} is none of {field_names(fields)}")
        values = {field.name: self.field_value(field, value, location) for field in fields}
        return self.run.task.to_record(values, location)

    def field_value(
        self, field: InputField, values: Mapping[str, str | list[str]], location: str
    ) -> FieldValue:
        """Return the checked value of one field; an image is decoded from base64."""
        value = values.get(field.name)
        if value is None or value in ("", []):
            if field.is_required:
                raise ApiError(422, f"{location}: {field.name!r} is missing")
            return [] if field.kind == "list" else ""
        if isinstance(value, list) != (field.kind == "list"):
            expected = "a list of texts" if field.kind == "list" else "a text"
            raise ApiError(422, f"{location}: {field.name!r} must be {expected}")
        if field.kind == "image":
            return self.decode_image(str(value), f"{location}: {field.name}")
        return value

    def decode_image(self, text: str, location: str) -> FieldValue:
        """Return the pixels of an image in base64, or of a data URL."""
        try:
            data = base64.b64decode(text.rpartition(",")[2], validate=True)
        except (binascii.Error, ValueError):
            raise ApiError(422, f"{location}: not an image in base64") from None
        return read_pixels(data, self.limits.max_image_pixels, location)


def read_pixels(data: bytes, max_pixels: int, location: str) -> FieldValue:
    """Decode an image; its header decides whether it is too large, before any pixel is read."""
    from PIL import Image

    try:
        with (
            warnings.catch_warnings(action="ignore"),
            Image.open(io.BytesIO(data), formats=IMAGE_FORMATS) as image,
        ):
            width, height = image.size
    except Image.DecompressionBombError:
        raise ApiError(413, f"{location}: too many pixels; at most {max_pixels:,}") from None
    except Exception:  # decoders raise any exception on damaged bytes
        raise ApiError(422, f"{location}: not an image that can be read") from None
    if width * height > max_pixels:
        raise ApiError(413, f"{location}: {width} x {height} pixels; at most {max_pixels:,}")
    return ImageReader(None, 3).decode(data, location)


def encode_image(image: ImageLike) -> str:
    """Return an image as the data URL of a PNG."""
    png = png_bytes(ImageReader(None, 3)(image))
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def field_names(fields: Sequence[InputField]) -> str:
    return ", ".join(field.name for field in fields)


def data_languages(run: Run) -> tuple[str, str] | None:
    """Return the languages of source and target, if the settings of the data say them."""
    source, target = (getattr(run.settings.data, side, None) for side in ("source", "target"))
    return (source, target) if isinstance(source, str) and isinstance(target, str) else None


def run_name(folder: Path | str) -> str:
    return Path(folder).resolve().name


def preview(record: Record) -> JsonObject:
    """Return the texts of a record, shortened."""
    return {
        key: value[:MAX_PREVIEW_CHARACTERS]
        for key, value in record.items()
        if isinstance(value, str)
    }
