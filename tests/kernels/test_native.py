"""The kernels in C++ compute what operations of torch compute."""

import os
import shutil

import pytest
import torch
from torch import Tensor, nn

from regard.kernels import compiled, int8, steps

needs_kernels = pytest.mark.skipif(compiled.native is None, reason="regard was built without them")


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler")
@pytest.mark.skipif(os.environ.get("REGARD_NATIVE") == "0", reason="switched off")
def test_an_installation_with_a_compiler_has_kernels():
    """Without this test, all others could be skipped unseen."""
    assert compiled.native is not None


def test_kernels_that_are_older_than_their_sources_are_an_error(tmp_path):
    library, source = tmp_path / "_native.so", tmp_path / "native" / "search.cpp"
    source.parent.mkdir()
    for file in (library, source):
        file.touch()
    os.utime(source, (100, 100))
    compiled.check_is_current(library)
    os.utime(library, (50, 50))
    with pytest.raises(ImportError, match=r"_native.so is older than search.cpp; compile it again"):
        compiled.check_is_current(library)


@needs_kernels
@pytest.mark.parametrize("width", [1, 7, 16, 513])
def test_rounding_to_8_bits_is_that_of_torch(width, seed, monkeypatch):
    x = torch.randn(5, width) * torch.tensor([1e-3, 1.0, 50.0, 0.0, 1e30])[:, None]
    x[1] = torch.arange(width) - width / 2  # many halves
    numbers, scale = int8.round_rows(x)
    monkeypatch.setattr(int8, "native", None)
    expected_numbers, expected_scale = int8.round_rows(x)
    assert torch.equal(numbers, expected_numbers)
    assert torch.equal(scale, expected_scale)


def slots_of(rows: int, inputs: int, groups: int, length: int, dim: int) -> tuple[Tensor, Tensor]:
    """Return keys and values in a buffer with room for two more slots."""
    buffer = torch.randn(2, inputs, groups, length + 2, dim)
    return buffer[0, :, :, :length], buffer[1, :, :, :length]


@needs_kernels
@pytest.mark.parametrize(("rows", "inputs"), [(1, 1), (6, 6), (6, 2)])
@pytest.mark.parametrize(("heads", "groups", "dim"), [(2, 2, 64), (4, 2, 5), (1, 1, 130)])
@pytest.mark.parametrize("has_mask", [True, False])
def test_attention_of_a_step_is_that_of_torch(rows, inputs, heads, groups, dim, has_mask, seed):
    keys, values = slots_of(rows, inputs, groups, 7, dim)
    mask = None
    if has_mask:
        mask = torch.zeros(inputs, 1, 1, 7)
        mask[..., 3] = mask[:1, ..., 5:] = -torch.inf
    slots, query = steps.StepSlots(keys, values, mask), torch.randn(rows, heads, dim)
    context = steps.attend_step(query, slots, 0.3)
    torch.testing.assert_close(context, steps.attend_by_torch(query, slots, 0.3))
    alone = steps.StepSlots(keys[:1], values[:1], None if mask is None else mask[:1])
    assert torch.equal(steps.attend_step(query[:1], alone, 0.3), context[:1])


@needs_kernels
def test_slots_of_other_rows_and_new_ones(seed):
    owners = torch.randint(0, 6, (4, 7), dtype=torch.int32)
    owners[:, -1] = torch.arange(4)  # a new slot belongs to its own row
    query, keys, values = torch.randn(4, 3 * 2, 8).split(2, 1)
    buffers = [slots_of(6, 6, 2, 7, 8) for _ in range(2)]
    for ours, theirs in zip(*buffers, strict=True):
        theirs.copy_(ours)
    ours, theirs = (steps.StepSlots(*b, owners=owners, new=(keys, values)) for b in buffers)
    context = steps.attend_step(query, ours, 0.5)
    torch.testing.assert_close(context, steps.attend_by_torch(query, theirs, 0.5))
    for x, y in zip(*buffers, strict=True):
        assert torch.equal(x, y)
    assert torch.equal(buffers[0][0][:4, :, -1], keys)


@needs_kernels
def test_a_row_that_may_attend_to_nothing_reads_zeros_and_nan_stays(seed):
    keys, values = slots_of(2, 2, 1, 3, 4)
    query, mask = torch.randn(2, 1, 4), torch.full((2, 1, 1, 3), -torch.inf)
    slots = steps.StepSlots(keys, values, mask)
    assert torch.equal(steps.attend_step(query, slots, 1.0), torch.zeros(2, 4))
    query[1] = torch.nan
    assert steps.attend_step(query, slots, 1.0)[1].isnan().all()


@needs_kernels
@pytest.mark.parametrize("norm", [None, nn.LayerNorm(33)])
def test_sum_and_norm_are_those_of_torch(norm, seed, monkeypatch):
    x, change = torch.randn(5, 33), torch.randn(5, 33)
    prepared = None
    if norm is not None:
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
        prepared = steps.Norm.of(norm)
    ours = steps.add_and_norm(x, change.clone(), prepared)
    monkeypatch.setattr(steps, "native", None)
    torch.testing.assert_close(ours, steps.add_and_norm(x, change.clone(), prepared))


@needs_kernels
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("is_relu", [True, False])
def test_a_product_of_8_bits_ends_as_by_torch(has_bias, is_relu, seed, monkeypatch):
    product, scale = torch.randn(5, 19), torch.rand(5, 1)
    bias = torch.randn(19) if has_bias else None
    ours = int8.finish_product(product.clone(), scale, bias, is_relu=is_relu)
    monkeypatch.setattr(int8, "native", None)
    theirs = int8.finish_product(product.clone(), scale, bias, is_relu=is_relu)
    torch.testing.assert_close(ours, theirs)
