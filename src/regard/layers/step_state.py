"""The state of a decoder of transformer blocks in a search, one position at a time.

Keys and values of all layers are in one buffer, which grows by doubling. A step writes into it.
`select` moves no slot: a table says which row of the buffer has a slot. Without the kernels in C++,
which read the table, it moves the slots in use. The memory that the decoder attends to has one row
for each input: all rows of an input share it.

a: inputs   b: rows of one input   n = a * b: rows   l: layers   h: heads   d: width
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Int32
from torch import Tensor

from regard.attention.memory import Memory
from regard.kernels.compiled import native
from regard.kernels.steps import StepSlots, attend_step, select_slots
from regard.layers.few_row_steps import NO_SOURCE, FewRowSteps, SourceTable, few_row_steps
from regard.layers.prepared_stack import PreparedStack, energy_mask

CAPACITY_STEP = 8  # `select` copies whole buffers, so they are not much longer than needed


class SlotBuffer:
    """Keys and values of all layers, [2l n g capacity dh]; only the newest state writes into it.

    A buffer that no state needs any more leaves its memory in `spares`, for the next copy: new
    memory costs more than the copy itself.
    """

    def __init__(self, slots: Tensor, used: int, spares: "list[Tensor]"):
        self.slots, self.used, self.spares = slots, used, spares

    def __del__(self) -> None:
        self.spares[:] = [self.slots]

    @staticmethod
    def from_memories(past: Sequence[Memory]) -> "SlotBuffer":
        parts = [part for memory in past for part in (memory.keys, memory.values)]
        rows, groups, used, width = parts[0].shape
        shape = len(parts), rows, groups, 2 * used + CAPACITY_STEP, width
        buffer = SlotBuffer(parts[0].new_empty(shape), used, [])
        for layer, part in zip(buffer.slots, parts, strict=True):
            layer[:, :, :used] = part
        return buffer

    def with_room(self, used: int) -> "SlotBuffer":
        """Return a buffer with room after `used` slots, in which no other state writes."""
        if self.used == used < self.slots.shape[3]:
            return self
        layers, rows, groups, capacity, width = self.slots.shape
        if used == capacity:
            capacity *= 2
        return self.copy_used(self.slots, (layers, rows, groups, capacity, width), used)

    def select(self, rows: Int[Tensor, " m"], used: int) -> "SlotBuffer":
        """Return the slots of these rows, in this order, in another buffer."""
        layers, _, groups, capacity, width = self.slots.shape
        needed = (used // CAPACITY_STEP + 1) * CAPACITY_STEP
        shape = layers, len(rows), groups, capacity, width
        if needed != capacity:
            selected = self.slots[:, :, :, :used].index_select(1, rows)
            return self.copy_used(selected, (layers, len(rows), groups, needed, width), used)
        slots = self.new_slots(shape)
        torch.index_select(self.slots, 1, rows, out=slots)
        return SlotBuffer(slots, used, self.spares)

    def copy_used(self, source: Tensor, shape: Sequence[int], used: int) -> "SlotBuffer":
        slots = self.new_slots(shape)
        slots[:, :, :, :used] = source[:, :, :, :used]
        return SlotBuffer(slots, used, self.spares)

    def new_slots(self, shape: Sequence[int]) -> Tensor:
        """Return memory of this shape, which is not initialized."""
        spare = self.spares.pop() if self.spares else None
        return spare if spare is not None and spare.shape == shape else self.slots.new_empty(shape)


class SourceSlots(NamedTuple):
    """Keys and values that a decoder attends to, by layer, and the mask of their energies."""

    layers: list[tuple[Tensor, Tensor]]  # keys and values, [a g s dh]
    mask: Float[Tensor, "a 1 1 s"] | None
    table: SourceTable | None  # for the kernel of few rows

    @staticmethod
    def of(
        layers: list[tuple[Tensor, Tensor]], mask: Float[Tensor, "a 1 1 s"] | None
    ) -> "SourceSlots":
        return SourceSlots(layers, mask, SourceTable.of(layers, mask))

    @staticmethod
    def from_memories(memories: Sequence[Memory]) -> "SourceSlots":
        valid = memories[0].valid
        mask = None if valid is None else energy_mask(valid[:, 0], memories[0].keys.dtype)
        return SourceSlots.of([(memory.keys, memory.values) for memory in memories], mask)

    def select(self, inputs: Int[Tensor, " m"]) -> "SourceSlots":
        layers = [
            (keys.index_select(0, inputs), values.index_select(0, inputs))
            for keys, values in self.layers
        ]
        mask = None if self.mask is None else self.mask.index_select(0, inputs)
        return SourceSlots.of(layers, mask)


class StepState(NamedTuple):
    """The prepared weights, the slots of the positions read, and the source."""

    stack: PreparedStack
    buffer: SlotBuffer
    length: int  # positions read
    rows: int
    source: SourceSlots | None
    inputs: int  # rows of the source; a decoder without one has one input for each row
    few_rows: FewRowSteps | None
    owners: Int32[Tensor, "n capacity"] | None = None  # rows of the buffer; None: each has its own

    def step(self, x: Float[Tensor, "n d"]) -> tuple[Float[Tensor, "n d"], "StepState"]:
        """Read one position in each row; return its states, and the new state."""
        buffer, length = self.buffer.with_room(self.length), self.length + 1
        slots, owners = buffer.slots, self.owners_until(length)
        table, few_rows = NO_SOURCE if self.source is None else self.source.table, self.few_rows
        if few_rows is not None and self.rows <= few_rows.max_rows and table is not None:
            x = few_rows.step(x.clone(), slots, length, owners, table, self.inputs)
            buffer.used = length
            return x, self._replace(buffer=buffer, length=length)
        for number, block in enumerate(self.stack.blocks):
            heads = block.self_heads
            query, new = heads.split_step(heads.project(block.before(x, block.self_norm)))
            keys, values = slots[2 * number], slots[2 * number + 1]
            past = StepSlots(keys[:, :, :length], values[:, :, :length], owners=owners, new=new)
            change = heads.out(attend_step(query, past, heads.scale))
            x = block.after(x, change, block.self_norm)
            if block.cross_heads is not None and block.cross_norm is not None and self.source:
                heads = block.cross_heads
                query = heads.project(block.before(x, block.cross_norm))
                source = StepSlots(*self.source.layers[number], self.source.mask)
                query = query.unflatten(1, (heads.heads, -1))
                change = heads.out(attend_step(query, source, heads.scale))
                x = block.after(x, change, block.cross_norm)
            x = block.feed(x)
        buffer.used = length
        norm = self.stack.norm
        return x if norm is None else norm(x), self._replace(buffer=buffer, length=length)

    def select(self, rows: Int[Tensor, " m"]) -> "StepState":
        """Return these rows, in this order."""
        state = self.select_source(rows)
        if len(rows) == self.rows and torch.equal(
            rows, torch.arange(self.rows, device=rows.device)
        ):
            return state
        if not self.can_share_slots(len(rows)):
            return state._replace(
                buffer=self.joined_buffer().select(rows, self.length), owners=None
            )
        return state._replace(owners=self.select_owners(rows))

    def can_share_slots(self, rows: int) -> bool:
        """Return whether there is a kernel that reads the slots of this many rows by a table."""
        slots = self.buffer.slots
        is_readable = slots.is_cpu and slots.dtype is torch.float32
        return native is not None and is_readable and rows <= slots.shape[1]

    def select_owners(self, rows: Int[Tensor, " m"]) -> Int32[Tensor, "m capacity"]:
        """Return the table of these rows; a new slot belongs to its own row."""
        shape = len(rows), self.buffer.slots.shape[3]
        owners = torch.arange(len(rows), dtype=torch.int32)[:, None].expand(shape).contiguous()
        past = self.owners_until(self.length)
        owners[:, : self.length] = rows[:, None] if past is None else past[rows]
        return owners

    def owners_until(self, length: int) -> Int32[Tensor, "n s"] | None:
        """Return the table of the first positions; that of a buffer that has grown is shorter."""
        if self.owners is None or length <= self.owners.shape[1]:
            return None if self.owners is None else self.owners[:, :length]
        own = torch.arange(self.rows, dtype=torch.int32)[:, None]
        return torch.cat([self.owners, own.expand(-1, length - self.owners.shape[1])], 1)

    def joined_buffer(self) -> SlotBuffer:
        """Return a buffer in which each row has its own slots."""
        owners = self.owners_until(self.length)
        if owners is None:
            return self.buffer
        used = select_slots(self.buffer.slots[:, :, :, : self.length], owners)
        return SlotBuffer(used.contiguous(), self.length, self.buffer.spares)

    def select_source(self, rows: Int[Tensor, " m"]) -> "StepState":
        """Return a state with the sources of these rows; equally many adjacent rows share one."""
        state = self._replace(rows=len(rows))
        if self.source is None:
            return state._replace(inputs=len(rows))
        origins = rows // (self.rows // self.inputs)
        inputs, counts = origins.unique_consecutive(return_counts=True)
        if not (counts == counts[0]).all():
            inputs = origins
        if len(inputs) == self.inputs and torch.equal(
            inputs, torch.arange(self.inputs, device=inputs.device)
        ):
            return state
        return state._replace(source=self.source.select(inputs), inputs=len(inputs))

    def memories(self) -> list[Memory]:
        """Return the slots of the positions read, as the plain path has them."""
        used = self.joined_buffer().slots[:, : self.rows, :, : self.length]
        return [Memory(used[i], used[i + 1]) for i in range(0, len(used), 2)]


def start_steps(stack: PreparedStack, source: Sequence[Memory]) -> StepState:
    """Return the state before the first position of a decoder that attends to `source`."""
    keys = source[0].keys
    heads = stack.blocks[0].self_heads
    width = heads.project.weights[1].shape[0] // heads.groups
    shape = 2 * len(source), len(keys), heads.groups, CAPACITY_STEP, width
    buffer = SlotBuffer(keys.new_empty(shape), 0, [])
    few_rows, slots = few_row_steps(stack, len(keys)), SourceSlots.from_memories(source)
    return StepState(stack, buffer, 0, len(keys), slots, len(keys), few_rows)


def continue_steps(stack: PreparedStack, past: Sequence[Memory]) -> StepState:
    """Return the state after these positions of a decoder that attends to itself only."""
    buffer, rows = SlotBuffer.from_memories(past), len(past[0].keys)
    return StepState(stack, buffer, buffer.used, rows, None, rows, few_row_steps(stack, rows))
