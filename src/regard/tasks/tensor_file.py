"""Write tensors to a safetensors file one at a time, so that no tensor is in memory twice.

Of a sharded tensor (a `DTensor`), each process has some rows. Such a tensor is gathered just before
it is written, and forgotten afterwards. So all processes go through the same tensors in the same
order, although only one of them writes.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from regard.errors import InputError
from regard.files import JsonObject

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor

# In the order in which the library safetensors writes them, so that the bytes are the same.
TYPE_NAMES = {
    torch.int64: "I64",
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
HEADER_ALIGNMENT = 8


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a file, and flush it to the disk; its bytes are those of `safetensors.torch.save`."""
    with path.open("wb") as file:
        file.write(header_bytes(tensors))
        for _, tensor in whole_tensors(tensors):
            flat = tensor.cpu().contiguous().reshape(-1)
            file.write(flat.view(torch.uint8).numpy().data)
        file.flush()
        os.fsync(file.fileno())


def whole_tensors(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Yield each tensor in the order of a file, with the rows of all processes."""
    for name in file_order(tensors):
        yield name, whole_tensor(tensors[name])


def whole_tensor(tensor: Tensor) -> Tensor:
    """Return a tensor with the rows of all processes; all of them have to call this."""
    detached = tensor.detach()
    return cast("DTensor", detached).full_tensor() if is_sharded(tensor) else detached


def is_sharded(tensor: Tensor) -> bool:
    """Return whether this is a `DTensor`, whose class takes a second to import."""
    return hasattr(tensor, "full_tensor")


def file_order(tensors: Mapping[str, Tensor]) -> list[str]:
    """Return the names of tensors in the order of a file: by type, then by name."""
    order = {dtype: number for number, dtype in enumerate(TYPE_NAMES)}
    for name, tensor in tensors.items():
        if tensor.dtype not in order:
            raise InputError(f"{name}: tensors of type {tensor.dtype} cannot be saved")
    return sorted(tensors, key=lambda name: (order[tensors[name].dtype], name))


def header_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Return the length and the JSON of a header: type, shape and place of each tensor."""
    entries: JsonObject = {}
    end = 0
    for name in file_order(tensors):
        tensor, start = tensors[name], end
        end += tensor.numel() * tensor.element_size()
        entries[name] = {
            "dtype": TYPE_NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    padding = b" " * (-len(text) % HEADER_ALIGNMENT)
    return (len(text) + len(padding)).to_bytes(8, "little") + text + padding
