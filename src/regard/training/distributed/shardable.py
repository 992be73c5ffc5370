"""Find out whether a model can be sharded, without the import of FSDP2, which takes a second."""

from collections.abc import Iterator
from typing import cast

from torch import nn

from regard.errors import InputError
from regard.layers.block_stack import BlockStack
from regard.models.protocols import Model


def check_shardable(model: Model) -> None:
    """Refuse a model whose weights cannot be split by blocks and rows."""
    name, remedy = type(model).__name__, 'use train.sharding = "none"'
    parts = set(gathered_modules(model))
    if not parts:
        raise InputError(f"train.sharding: {name} has no stack of blocks; {remedy}")
    part_names = {part_name for part_name, part in model.named_modules() if part in parts}
    homes: dict[nn.Parameter, str] = {}
    for path, parameter in cast("nn.Module", model).named_parameters(remove_duplicate=False):
        if not parameter.ndim:
            reason = "is a single number, which cannot be split"
            raise InputError(f"train.sharding: {path} of {name} {reason}; {remedy}")
        home = max((p for p in part_names if path.startswith(f"{p}.")), key=len, default="")
        if homes.setdefault(parameter, home) != home:
            reason = "is also a weight of another block"
            raise InputError(f"train.sharding: {path} of {name} {reason}; {remedy}")


def gathered_modules(model: Model) -> Iterator[nn.Module]:
    """Yield the modules of a model whose weights exist in full only while they run."""
    for module in model.modules():
        if isinstance(module, BlockStack):
            yield from module.gathered_modules()
