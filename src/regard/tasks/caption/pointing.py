"""The pointing game: whether words attend to the boxes of the objects that they name."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from regard.data.corpus import Record
from regard.data.formats.captions import record_captions
from regard.data.formats.images import ImageLike, ImageReader, image_size
from regard.metrics.caption import Box, pointing_accuracy
from regard.models.caption import ShowAttend
from regard.tasks.caption.examples import CaptionExample

if TYPE_CHECKING:
    from regard.tasks.caption.task import CaptionTask


def measure_pointing(task: "CaptionTask", records: Sequence[Record]) -> float | None:
    """Return the percentage of words with a box whose largest weight is in the box.

    The model reads the first caption of each record. Return None without boxes or attention.
    """
    model = task.model
    if not isinstance(model, ShowAttend) or not all("boxes" in record for record in records):
        return None
    captions = [record_captions(record)[0] for record in records]
    encoded = task.text.encode_with_offsets(captions)
    weights_by_record = task.attention_weights(
        [
            CaptionExample(0, record["image"], ids)
            for record, (ids, _) in zip(records, encoded, strict=True)
        ]
    )
    cell_size = 2**model.picture.pooling_layers
    points: list[tuple[float, float]] = []
    boxes: list[Box] = []
    for record, caption, (_, spans), weights in zip(
        records, captions, encoded, weights_by_record, strict=True
    ):
        for token_index, box in boxed_tokens(caption, spans, record["boxes"]):
            points.append(attention_peak(weights[token_index], cell_size))
            boxes.append(box_in_model_pixels(box, record["image"], task.images.reader))
    return pointing_accuracy(points, boxes)


def attention_peak(weights: Float[Tensor, "rows columns"], cell_size: int) -> tuple[float, float]:
    """Return the center of the region with the largest weight, in pixels from the top left."""
    row, column = divmod(int(weights.argmax()), weights.shape[1])
    return (row + 0.5) * cell_size, (column + 0.5) * cell_size


def box_in_model_pixels(box: Box, image: ImageLike, reader: ImageReader) -> Box:
    """Convert a box of the original image to pixels of the image that the model reads."""
    height, width = image_size(image)
    model_height, model_width = reader.size or (height, width)
    row_scale, column_scale = model_height / height, model_width / width
    if reader.fit != "stretch":
        choose_scale = max if reader.fit == "crop" else min
        row_scale = column_scale = choose_scale(row_scale, column_scale)
    top_offset = (model_height - height * row_scale) / 2
    left_offset = (model_width - width * column_scale) / 2
    top, left, bottom, right = box
    return (
        top * row_scale + top_offset,
        left * column_scale + left_offset,
        bottom * row_scale + top_offset,
        right * column_scale + left_offset,
    )


def boxed_tokens(
    caption: str, spans: Sequence[tuple[int, int]], boxes: Iterable[tuple[int, Box]]
) -> Iterator[tuple[int, Box]]:
    """Yield the first token of each word that has a box, and the box."""
    starts, position = list[int](), 0
    for word in caption.split():
        position = caption.index(word, position)
        starts.append(position)
        position += len(word)
    tokens = {start: index for index, (start, end) in reversed([*enumerate(spans)]) if end > start}
    for word, box in boxes:
        if starts[word] in tokens:
            yield tokens[starts[word]], box
