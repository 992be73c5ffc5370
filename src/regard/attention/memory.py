"""The memory of an attention: slots with a key and a value, and which of them are real.

Annotations, encoder outputs, key/value caches, the matrix of a Turing machine and the grid of an
image are all of this class.

b: any leading axes (batch, heads)   q: queries   k: memory slots   d*: widths
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.masks import Mask, causal
from regard.attention.validation import can_broadcast, check_valid
from regard.errors import InputError


@dataclass(frozen=True)
class Memory:
    """Memory that a query attends to: a key and a value for each slot, and which slots are real.

    >>> import torch
    >>> memory = Memory(torch.randn(2, 5, 4), torch.randn(2, 5, 6))       # 2 texts of 5 slots
    >>> memory.slots
    5
    """

    keys: Float[Tensor, "*b k dk"]
    values: Float[Tensor, "*b k dv"]
    valid: Bool[Tensor, "*#b k"] | None = None  # False: padding; None: every slot is real
    store: "MemoryStore | None" = field(default=None, repr=False, compare=False)

    def __post_init__(self):
        if self.keys.ndim < 2 or self.values.ndim < 2:
            raise InputError("keys and values need at least two axes: slots and width")
        if self.keys.shape[:-1] != self.values.shape[:-1]:
            keys_shape, values_shape = tuple(self.keys.shape), tuple(self.values.shape)
            raise InputError(
                f"keys of shape {keys_shape} do not fit values of shape {values_shape}"
            )
        if self.valid is not None:
            check_valid(self.valid, self.keys.shape[:-1])

    @property
    def slots(self) -> int:
        return self.keys.shape[-2]

    def lengths(self) -> Tensor | int:
        """Return the number of real slots, for each leading axis of `valid`."""
        return self.slots if self.valid is None else self.valid.sum(-1)

    def allowed_slots(
        self, queries: int, mask: Mask | None, start: int | None
    ) -> Bool[Tensor, "..."] | None:
        """Return which query may attend to which slot, [*#b #q k]; None: all to all.

        `start` is the position of the first query. None: the queries are at the last positions of
        the memory.
        """
        allowed = None if self.valid is None else self.valid[..., None, :]
        first = self.slots - queries if start is None else start
        if mask is None or (mask is causal and first >= self.slots - 1):  # no slot is in the future
            return allowed
        position = torch.arange(max(first + queries, self.slots), device=self.keys.device)
        unmasked = mask(position[first : first + queries, None], position[None, : self.slots])
        return unmasked if allowed is None else allowed & unmasked

    def append(self, later: "Memory") -> "Memory":
        """Return this memory followed by `later`. This memory does not change.

        The new slots go into spare capacity behind this memory's slots. The capacity doubles when
        it is full, so n appends copy O(n) slots, not O(n^2). While gradients are recorded, the two
        memories are concatenated instead.
        """
        for name in ("keys", "values"):
            ours, theirs = getattr(self, name), getattr(later, name)
            if ours.shape[:-2] != theirs.shape[:-2] or ours.shape[-1] != theirs.shape[-1]:
                actual, expected = tuple(theirs.shape), tuple(ours.shape)
                raise InputError(
                    f"later has {name} of shape {actual}, which do not continue {expected}"
                )
            if ours.dtype != theirs.dtype:
                raise InputError(f"later has {name} of {theirs.dtype}, this memory of {ours.dtype}")
        if torch.is_grad_enabled():
            return self.concatenate(later)
        store = self.store
        if store is None or not store.can_append(self, later):
            store = MemoryStore.from_memory(self, capacity=max(2 * (self.slots + later.slots), 16))
        return store.append(later)

    def concatenate(self, later: "Memory") -> "Memory":
        keys = torch.cat([self.keys, later.keys], -2)
        values = torch.cat([self.values, later.values], -2)
        if self.valid is None and later.valid is None:
            return Memory(keys, values)
        lead = torch.broadcast_shapes(
            *(m.valid.shape[:-1] for m in (self, later) if m.valid is not None)
        )
        return Memory(keys, values, torch.cat([self.valid_mask(lead), later.valid_mask(lead)], -1))

    def valid_mask(self, lead: Sequence[int]) -> Bool[Tensor, "*lead k"]:
        """Return `valid` expanded to these leading axes, also if it is None (all real)."""
        if self.valid is None:
            return self.keys.new_ones(*lead, self.slots, dtype=torch.bool)
        return self.valid.expand(*lead, -1)

    def select(self, rows: Int[Tensor, " n"]) -> "Memory":
        """Return these rows of the batch in this order, as beam search needs it for its caches."""
        if self.store is not None and self.store.used_slots == self.slots:
            return self.store.select(rows)
        keys, values = self.keys.index_select(0, rows), self.values.index_select(0, rows)
        return Memory(keys, values, select_valid(self.valid, rows, self.keys.ndim - 1))

    def detach(self) -> "Memory":
        """Return these slots without their gradient."""
        return replace(self, keys=self.keys.detach(), values=self.values.detach())

    def to(self, dtype: torch.dtype) -> "Memory":
        """Return these slots in another dtype; the same memory if they have it."""
        if self.keys.dtype == self.values.dtype == dtype:
            return self
        return Memory(self.keys.to(dtype), self.values.to(dtype), self.valid)

    def trim(self, slots: int) -> "Memory":
        """Return the first `slots` slots only, to undo later appends."""
        if not 0 <= slots <= self.slots:
            raise InputError(f"slots must be between 0 and {self.slots}, not {slots}")
        valid = None if self.valid is None else self.valid[..., :slots]
        keys, values = self.keys[..., :slots, :], self.values[..., :slots, :]
        return Memory(keys, values, valid)


@dataclass
class MemoryStore:
    """Buffers of a growing memory.

    Only the newest memory of a store appends in place. An older one is copied to a new store.
    """

    keys: Tensor
    values: Tensor
    valid: Tensor | None  # [*#b capacity]; None until the first padding arrives
    used_slots: int

    @staticmethod
    def from_memory(memory: Memory, capacity: int) -> "MemoryStore":
        def with_capacity(slots: Tensor) -> Tensor:
            buffer = slots.new_empty(*slots.shape[:-2], capacity, slots.shape[-1])
            buffer[..., : memory.slots, :] = slots
            return buffer

        store = MemoryStore(
            with_capacity(memory.keys), with_capacity(memory.values), None, memory.slots
        )
        if memory.valid is not None:
            store.write_valid(memory, 0)
        return store

    def can_append(self, memory: Memory, later: Memory) -> bool:
        return (
            self.used_slots == memory.slots and self.used_slots + later.slots <= self.keys.shape[-2]
        )

    def append(self, later: Memory) -> Memory:
        new = slice(self.used_slots, self.used_slots + later.slots)
        self.keys[..., new, :] = later.keys
        self.values[..., new, :] = later.values
        if later.valid is not None or self.valid is not None:
            self.write_valid(later, self.used_slots)
        self.used_slots = new.stop
        return self.memory()

    def write_valid(self, later: Memory, start: int) -> None:
        """Write `valid` of these slots, with its own leading axes: heads may share it."""
        shapes = [v.shape[:-1] for v in (self.valid, later.valid) if v is not None]
        lead = torch.broadcast_shapes(*shapes)
        if self.valid is None or self.valid.shape[:-1] != lead:
            buffer = self.keys.new_ones(*lead, self.keys.shape[-2], dtype=torch.bool)
            if self.valid is not None:
                buffer[..., :start] = self.valid[..., :start]
            self.valid = buffer
        self.valid[..., start : start + later.slots] = later.valid_mask(lead)

    def memory(self) -> Memory:
        valid = None if self.valid is None else self.valid[..., : self.used_slots]
        return Memory(
            self.keys[..., : self.used_slots, :],
            self.values[..., : self.used_slots, :],
            valid,
            self,
        )

    def select(self, rows: Tensor) -> Memory:
        """Select rows of the whole buffers, so that the next append still writes in place."""
        valid = select_valid(self.valid, rows, self.keys.ndim - 1)
        if valid is not None and valid is self.valid:  # two stores never write into one tensor
            valid = valid.clone()
        keys, values = self.keys.index_select(0, rows), self.values.index_select(0, rows)
        return MemoryStore(keys, values, valid, self.used_slots).memory()


def select_valid(valid: Tensor | None, rows: Tensor, axes: int) -> Tensor | None:
    """Select rows of `valid`, unless one row holds for the whole batch."""
    if valid is None or valid.ndim < axes or valid.shape[0] == 1:
        return valid
    return valid.index_select(0, rows)


def grid_to_slots(grid: Float[Tensor, "b d rows columns"]) -> Float[Tensor, "b k d"]:
    """Flatten the feature map of an image in reading order: slot = row * columns + column."""
    return grid.flatten(2).mT


def check_leading(lead: torch.Size, memory: Memory) -> None:
    """Check that the memory's leading axes fit the query's; heads (the last axis) may share."""
    memory_axes = memory.keys.shape[:-2]
    if can_broadcast(memory_axes, lead):
        return
    shared = len(lead) >= 2 and len(memory_axes) == len(lead) and lead[-1] % memory_axes[-1] == 0
    if not (shared and can_broadcast(memory_axes[:-1], lead[:-1])):
        query_shape, memory_shape = tuple(lead), tuple(memory_axes)
        raise InputError(
            f"query has leading axes {query_shape}, which do not fit the memory's {memory_shape}"
        )
