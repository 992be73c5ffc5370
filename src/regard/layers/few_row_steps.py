"""Steps of a prepared stack with few rows, each by one call of a kernel (kernels/few_rows.py)."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from jaxtyping import Float, Int32
from torch import Tensor

from regard.kernels.compiled import can_use_native, native
from regard.kernels.few_rows import (
    ACTIVATIONS,
    MAX_INT8_ROWS,
    StepTable,
    UnsupportedError,
)
from regard.layers.prepared_stack import PreparedBlock, PreparedHeads, PreparedStack


class SourceTable(NamedTuple):
    """Addresses of the keys and values of the source, by layer, and what their layers share."""

    addresses: Tensor
    steps: tuple[int, int, int]  # between inputs, groups and slots
    length: int
    mask: int

    @staticmethod
    def of(layers: Sequence[tuple[Tensor, Tensor]], mask: Tensor | None) -> "SourceTable | None":
        """Return the table; None if the kernel cannot read these tensors."""
        tensors = [part for layer in layers for part in layer]
        first = tensors[0]
        if first.stride(3) != 1 or any(
            part.dtype is not torch.float32 or not part.is_cpu or part.stride() != first.stride()
            for part in tensors
        ):
            return None
        addresses = torch.tensor([part.data_ptr() for part in tensors])
        steps = cast("tuple[int, int, int]", first.stride()[:3])
        return SourceTable(addresses, steps, first.shape[2], 0 if mask is None else mask.data_ptr())


NO_SOURCE = SourceTable(torch.empty(0), (0, 0, 0), 0, 0)


class FewRowSteps:
    """The weights of a stack, as the kernel reads them."""

    def __init__(self, stack: PreparedStack):
        block, heads = stack.blocks[0], stack.blocks[0].self_heads
        if not has_equal_blocks(stack):
            raise UnsupportedError
        self.stack = stack  # keeps the weights
        self.table = StepTable()
        for each in stack.blocks:
            self.add_block(each)
        self.blocks, self.max_rows = torch.tensor(self.table.numbers), self.table.max_rows
        head_dim = len(heads.project.weights[0]) // heads.heads
        dim, hidden_dim = block.narrow.weights[0].shape
        header = [self.blocks.data_ptr(), len(stack.blocks), heads.heads, heads.groups]
        header += [head_dim, dim, hidden_dim, block.is_pre_norm]
        header += [ACTIVATIONS.index((block.widen.name, block.widen.variant))]
        self.table.numbers = header
        self.table.add_norm(stack.norm)
        self.header = torch.tensor(header)
        self.scale, self.epsilon = heads.scale, block.feed_norm.eps

    def add_block(self, block: PreparedBlock) -> None:
        table, cross = self.table, block.cross_heads
        table.add_products(block.self_heads.project)
        table.add_products(block.self_heads.out)
        if cross is None:
            table.skip_products(2)
        else:
            table.add_products(cross.project)
            table.add_products(cross.out)
        table.add_products(block.widen)
        table.add_products(block.narrow)
        for norm in (block.self_norm, block.cross_norm, block.feed_norm):
            table.add_norm(norm)

    def step(
        self,
        x: Float[Tensor, "n d"],
        slots: Float[Tensor, "l m g c dh"],
        length: int,
        owners: Int32[Tensor, "n s"] | None,
        source: SourceTable,
        inputs: int,
    ) -> Float[Tensor, "n d"]:
        """Read one position in each row, the last of `length`; `x` is overwritten."""
        table = (0, 0) if owners is None else (owners.data_ptr(), owners.stride(0))
        native.step_blocks(  # pyright: ignore[reportOptionalMemberAccess] - there are kernels
            *(self.header.data_ptr(), x.data_ptr(), slots.data_ptr(), *slots.stride()[:4]),
            *(length, *table),
            source.addresses.data_ptr() if source.steps[0] else 0,
            *(*source.steps, source.length, source.mask, len(x), len(x) // inputs),
            *(self.epsilon, self.scale, torch.get_num_threads()),
        )
        return x


def has_equal_blocks(stack: PreparedStack) -> bool:
    """Return whether all blocks have the same form, which the kernel knows."""
    first = stack.blocks[0]
    activation = first.widen.name, first.widen.variant
    forms = {
        (
            *(block.is_pre_norm, block.widen.name, block.widen.variant),
            *(heads_form(block.self_heads), heads_form(block.cross_heads or block.self_heads)),
            *(block.self_norm.eps, block.feed_norm.eps, (block.cross_norm or block.self_norm).eps),
            *(block.cross_heads is None, block.widen.weights[0].shape),
        )
        for block in stack.blocks
    }
    norm = stack.norm or first.feed_norm
    return (
        len(forms) == 1
        and activation in ACTIVATIONS
        and heads_form(first.self_heads) == heads_form(first.cross_heads or first.self_heads)
        and {norm.eps, first.self_norm.eps, (first.cross_norm or norm).eps} == {first.feed_norm.eps}
    )


def heads_form(heads: PreparedHeads) -> tuple[int, int, float, torch.Size]:
    return heads.heads, heads.groups, heads.scale, heads.project.weights[0].shape


def few_row_steps(stack: PreparedStack, rows: int) -> FewRowSteps | None:
    """Return the steps by one call each; None if the kernel does not know this stack."""
    norm = stack.blocks[0].feed_norm
    if native is None or rows > MAX_INT8_ROWS or not can_use_native(norm.weight):
        return None
    try:
        return FewRowSteps(stack)
    except UnsupportedError:
        return None
