"""An image with a caption, and many of them as one padded batch.

b: captions of a batch   t: words   c: channels   h, w: pixels
"""

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.data.formats.images import ImageLike


@dataclass(frozen=True)
class CaptionExample:
    """An image with one of its captions."""

    index: int  # of the record
    image: ImageLike  # pixels, or a path that is read when its batch is made
    caption: Sequence[int]  # ids without start and end

    @property
    def source(self) -> Sequence[ImageLike]:
        """The image, as a source of length 1 for batching."""
        return [self.image]

    @property
    def target(self) -> Sequence[int]:
        return self.caption


@dataclass(frozen=True)
class CaptionBatch:
    """Images and right-padded captions; `target_out` is `target_in` one step ahead."""

    indices: Int[Tensor, " b"]  # of the records
    images: Float[Tensor, "b c h w"]
    target_in: Int[Tensor, "b t"]  # START …
    target_out: Int[Tensor, "b t"]  # … END
    target_valid: Bool[Tensor, "b t"]
