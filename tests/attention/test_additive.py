"""The blockwise additive energy: same values and gradients, without the q x k x h tensor."""

import pytest
import torch
from torch import Tensor

from regard.attention import additive
from regard.attention.additive import tanh_energy


def dense_energy(query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    mixed = (query[..., :, None, :] + keys[..., None, :, :]).tanh()
    return mixed @ v if v.ndim == 1 else (mixed * v[:, None, None]).sum(-1)


SHAPES = {  # query, keys, v
    "a batch": ((2, 5, 4), (2, 7, 4), (4,)),
    "no batch": ((5, 4), (7, 4), (4,)),
    "heads": ((2, 3, 5, 4), (2, 3, 7, 4), (3, 4)),
    "shared memory": ((2, 3, 5, 4), (1, 1, 7, 4), (3, 4)),
    "one query": ((6, 1, 4), (6, 7, 4), (4,)),
}


@pytest.mark.parametrize("block_elements", [1, 50, 2**20])
@pytest.mark.parametrize("name", SHAPES)
def test_equal_values_and_gradients_at_any_block_size(
    name: str, block_elements: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(additive, "MAX_BLOCK_ELEMENTS", block_elements)
    tensors = [
        torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in SHAPES[name]
    ]
    actual, expected = tanh_energy(*tensors), dense_energy(*tensors)
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)
    weigh = torch.randn_like(expected)
    ours = torch.autograd.grad(actual, tensors, weigh)
    theirs = torch.autograd.grad(expected, tensors, weigh)
    torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)


def test_gradients_of_gradients():
    shapes = ((2, 2, 3), (2, 4, 3), (3,))
    tensors = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(tanh_energy, tensors)
    assert torch.autograd.gradgradcheck(tanh_energy, tensors)


def test_training_keeps_no_tensor_of_all_pairs():
    """Count the elements that autograd saves between forward and backward."""

    def saved_elements(score, q: int) -> int:
        query, keys = torch.randn(4, q, 32, requires_grad=True), torch.randn(4, 50, 32)
        sizes = {}

        def pack(tensor: Tensor) -> Tensor:
            sizes[tensor.data_ptr()] = tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            score(query, keys, torch.randn(32, requires_grad=True))
        return sum(sizes.values())

    pairs = 4 * 60 * 50 * 32
    assert saved_elements(dense_energy, 60) >= pairs
    assert saved_elements(tanh_energy, 60) < pairs / 10
