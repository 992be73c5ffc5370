"""A long text as ids, cut into windows: what a language model is trained and measured on.

b: rows   t: positions of a window
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.text.special import PAD


@dataclass(frozen=True)
class Window:
    """The model reads `given`, and is to say `wanted`, which is one token further on."""

    given: Int[Tensor, "b t"]
    wanted: Int[Tensor, "b t"]
    valid: Bool[Tensor, "b t"]
    fresh: bool = True  # nothing of what stands before was read


class Crops:
    """Windows that begin anywhere in the text, drawn anew each time; without end."""

    def __init__(self, ids: Int[Tensor, " n"], *, rows: int, context: int, seed: int = 0):
        check(ids, rows, context)
        self.ids, self.rows, self.context, self.seed = ids, rows, context, seed
        self.given = 0
        self.carried: dict[str, Tensor] = {}  # nothing: each window begins anew

    def __next__(self) -> Window:
        draw = torch.Generator().manual_seed(self.seed * 1_000_003 + self.given)
        self.given += 1
        starts = torch.randint(len(self.ids) - self.context, (self.rows, 1), generator=draw)
        return window(self.ids[starts + torch.arange(self.context + 1)])

    @property
    def epoch(self) -> int:
        """How often as many tokens were drawn as there are."""
        return self.given * self.rows * self.context // len(self.ids)

    def state(self) -> dict[str, Any]:
        return {"given": self.given}

    def restore(self, state: dict[str, Any]) -> None:
        self.given = state["given"]


class Lanes:
    """The text in `rows` equal parts side by side; each window goes on where the last one ended.

    `carried` is for whoever reads them: what the model knew at the end of the last window. It is
    kept with the place, so that training goes on as if it had never stopped.
    """

    def __init__(self, ids: Int[Tensor, " n"], *, rows: int, context: int):
        check(ids, rows, context)
        self.context, self.epoch, self.place = context, 0, 0
        length = (len(ids) - 1) // rows
        self.lanes = ids[: rows * length].view(rows, length)
        self.after = ids[1 : rows * length + 1].view(rows, length)
        self.carried: dict[str, Tensor] = {}

    def __next__(self) -> Window:
        if self.place >= self.lanes.shape[1]:
            self.epoch, self.place = self.epoch + 1, 0
        here = slice(self.place, self.place + self.context)
        given, wanted = self.lanes[:, here].long(), self.after[:, here].long()
        fresh, self.place = self.place == 0, self.place + self.context
        return Window(given, wanted, torch.ones_like(given, dtype=torch.bool), fresh)

    def state(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "place": self.place}

    def restore(self, state: dict[str, Any]) -> None:
        self.epoch, self.place = state["epoch"], state["place"]


def whole(ids: Int[Tensor, " n"], *, rows: int, context: int) -> Iterator[Window]:
    """Every token but the first is wanted once: windows one after the other, `rows` at a time."""
    for start in range(0, len(ids) - 1, rows * context):
        part = ids[start : start + rows * context + 1]
        wide = min(context, len(part) - 1)
        count = -(-(len(part) - 1) // wide)
        places = torch.arange(count)[:, None] * wide + torch.arange(wide + 1)
        valid = places[:, 1:] < len(part)
        found = part[places.clamp(max=len(part) - 1)].masked_fill(places >= len(part), PAD)
        yield window(found, valid)


def window(ids: Int[Tensor, "b t1"], valid: Tensor | None = None) -> Window:
    ids = ids.long()
    given, wanted = ids[:, :-1], ids[:, 1:]
    return Window(
        given, wanted, torch.ones_like(given, dtype=torch.bool) if valid is None else valid
    )


def check(ids: Tensor, rows: int, context: int) -> None:
    for name, number in (("rows", rows), ("context", context)):
        if number < 1:
            raise ValueError(f"{name} must be positive, not {number}")
    if len(ids) - 1 < max(rows, context):
        raise ValueError(
            f"the text has {len(ids)} tokens, too few for {rows} rows and windows of {context}; "
            "give more text, or a smaller batch and context"
        )
