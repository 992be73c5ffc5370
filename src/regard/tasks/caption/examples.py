"""Images with captions: one example, and a padded batch.

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

    index: int  # of its record
    image: ImageLike  # pixels, or a path that is read when its batch is made
    caption: Sequence[int]  # ids without start and end

    @property
    def lengths(self) -> tuple[int, int]:
        return 1, len(self.caption)


@dataclass(frozen=True)
class CaptionBatch:
    """Images and right-padded captions; `target_out` is `target_in` one step ahead."""

    indices: Int[Tensor, " b"]  # of the records
    images: Float[Tensor, "b c h w"]
    target_in: Int[Tensor, "b t"]  # START …
    target_out: Int[Tensor, "b t"]  # … END
    target_valid: Bool[Tensor, "b t"]
