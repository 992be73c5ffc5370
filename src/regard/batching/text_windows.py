"""A long text as ids, cut into windows: what a language model is trained and measured on.

b: rows   t: positions of a window
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.batching.shares import check_rank, row_share
from regard.errors import InputError
from regard.files import JsonObject
from regard.text.special import PAD


@dataclass(frozen=True)
class TextWindow:
    """The model reads `given`, and is to say `wanted`, which is one token further on."""

    inputs: Int[Tensor, "b t"]
    targets: Int[Tensor, "b t"]
    valid: Bool[Tensor, "b t"]
    is_start: bool = True  # nothing of what stands before was read


class RandomWindows:
    """Windows that begin anywhere in the text, drawn anew each time; without end."""

    def __init__(self, ids: Int[Tensor, " n"], *, rows: int, context: int, seed: int = 0):
        check_window_sizes(ids, rows, context)
        self.ids, self.rows, self.context, self.seed = ids, rows, context, seed
        self.windows_done = 0
        self.carried: dict[str, Tensor] = {}  # nothing: each window begins anew
        self.share, self.has_share = slice(None), True  # of the rows

    def take_share(self, rank: int, ranks: int) -> None:
        check_rank(rank, ranks)
        share = row_share(self.rows, rank, ranks)
        self.has_share = share.start < share.stop
        self.share = share if self.has_share else slice(1)

    def __next__(self) -> TextWindow:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.windows_done)
        self.windows_done += 1
        starts = torch.randint(len(self.ids) - self.context, (self.rows, 1), generator=generator)
        return build_window(self.ids[starts[self.share] + torch.arange(self.context + 1)])

    @property
    def batches_per_epoch(self) -> int:
        return max(1, len(self.ids) // (self.rows * self.context))

    @property
    def epoch(self) -> int:
        """Return the number of tokens that were read, divided by the number of all tokens."""
        return self.windows_done * self.rows * self.context // len(self.ids)

    def state_dict(self) -> JsonObject:
        return {"given": self.windows_done}

    def load_state_dict(self, state: JsonObject) -> None:
        self.windows_done = state["given"]


class ContiguousWindows:
    """The text in `rows` equal parts side by side; each window continues the last one.

    `carried` holds the state of the model at the end of the last window. It is saved with the
    position, so that a resumed training continues exactly.
    """

    def __init__(self, ids: Int[Tensor, " n"], *, rows: int, context: int):
        check_window_sizes(ids, rows, context)
        self.context, self.epoch, self.position = context, 0, 0
        length = (len(ids) - 1) // rows
        self.inputs = ids[: rows * length].view(rows, length)
        self.targets = ids[1 : rows * length + 1].view(rows, length)
        self.carried: dict[str, Tensor] = {}

    def __next__(self) -> TextWindow:
        if self.position >= self.inputs.shape[1]:
            self.epoch, self.position = self.epoch + 1, 0
        span = slice(self.position, self.position + self.context)
        inputs, targets = self.inputs[:, span].long(), self.targets[:, span].long()
        is_start, self.position = self.position == 0, self.position + self.context
        return TextWindow(inputs, targets, torch.ones_like(inputs, dtype=torch.bool), is_start)

    @property
    def batches_per_epoch(self) -> int:
        return -(-self.inputs.shape[1] // self.context)

    def state_dict(self) -> JsonObject:
        return {"epoch": self.epoch, "place": self.position}

    def load_state_dict(self, state: JsonObject) -> None:
        self.epoch, self.position = state["epoch"], state["place"]


def all_windows(ids: Int[Tensor, " n"], *, rows: int, context: int) -> Iterator[TextWindow]:
    """Every token but the first is wanted once: windows one after the other, `rows` at a time."""
    for start in range(0, len(ids) - 1, rows * context):
        part = ids[start : start + rows * context + 1]
        width = min(context, len(part) - 1)
        count = -(-(len(part) - 1) // width)
        positions = torch.arange(count)[:, None] * width + torch.arange(width + 1)
        valid = positions[:, 1:] < len(part)
        ids_by_row = part[positions.clamp(max=len(part) - 1)].masked_fill(
            positions >= len(part), PAD
        )
        yield build_window(ids_by_row, valid)


def overlapping_windows(
    ids: Int[Tensor, " n"], *, rows: int, context: int, stride: int
) -> Iterator[TextWindow]:
    """Yield windows that begin `stride` tokens apart: each token but the first is a target once.

    A window counts only its last tokens, those that no window before it has counted. So each of
    them, but for the first window, is predicted from `context - stride` or more tokens.
    """
    width = min(context, len(ids) - 1)
    ends = torch.cat([torch.arange(width, len(ids) - 1, stride), torch.tensor([len(ids) - 1])])
    counted = torch.cat([torch.zeros(1, dtype=torch.long), ends[:-1]])
    for last, before in zip(ends.split(rows), counted.split(rows), strict=True):
        positions = (last - width)[:, None] + torch.arange(width + 1)
        yield build_window(ids[positions], positions[:, 1:] > before[:, None])


def lane_windows(ids: Int[Tensor, " n"], *, rows: int, context: int) -> Iterator[TextWindow]:
    """Yield contiguous windows of `rows` lanes, then the rest: each token is a target once."""
    lanes = ContiguousWindows(ids, rows=rows, context=min(context, len(ids) - 1))
    while lanes.position < lanes.inputs.shape[1]:
        yield next(lanes)
    yield from all_windows(ids[lanes.inputs.numel() :], rows=1, context=context)


def build_window(ids: Int[Tensor, "b t1"], valid: Tensor | None = None) -> TextWindow:
    ids = ids.long()
    inputs, targets = ids[:, :-1], ids[:, 1:]
    return TextWindow(
        inputs, targets, torch.ones_like(inputs, dtype=torch.bool) if valid is None else valid
    )


def check_window_sizes(ids: Tensor, rows: int, context: int) -> None:
    for name, number in (("rows", rows), ("context", context)):
        if number < 1:
            raise InputError(f"{name} must be positive, not {number}")
    if len(ids) - 1 < max(rows, context):
        raise InputError(
            f"the text has {len(ids)} tokens, too few for {rows} rows and windows of {context}; "
            "give more text, or a smaller batch and context"
        )
