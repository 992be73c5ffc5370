"""Tensors are written one at a time, with the bytes that the library safetensors writes."""

from pathlib import Path

import pytest
import safetensors.torch
import torch

from regard.errors import InputError
from regard.tasks.tensor_file import TYPE_NAMES, write_tensors


def test_the_bytes_are_those_of_safetensors(tmp_path: Path):
    tensors = {str(dtype): torch.arange(5).to(dtype) for dtype in TYPE_NAMES}
    tensors |= {"b": torch.randn(3, 4).T, "a": torch.tensor(2.5), 'é "x"': torch.zeros(0, 3)}
    tensors["grown"] = torch.nn.Parameter(torch.randn(2, 3, 1))
    for part in (tensors, {"n": torch.tensor([True])}, {}):
        write_tensors(tmp_path / "file", part)
        plain = {name: tensor.detach().contiguous() for name, tensor in part.items()}
        assert (tmp_path / "file").read_bytes() == safetensors.torch.save(plain)


def test_types_without_a_name_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"^w: tensors of type torch.complex64 cannot be saved$"):
        write_tensors(tmp_path / "file", {"w": torch.zeros(1, dtype=torch.complex64)})
