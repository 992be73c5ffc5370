"""Steps that share a weight have the gradients of separate products."""

import pytest
import torch
from torch import Tensor

from regard.kernels.shared import step_product


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def steps(start: Tensor, inputs: Tensor, weight: Tensor) -> Tensor:
    add_product, h = step_product(weight), start
    for x in inputs:
        h = add_product(x, h).tanh()
    return h


def plain_steps(start: Tensor, inputs: Tensor, weight: Tensor) -> Tensor:
    h = start
    for x in inputs:
        h = (x + h @ weight.t()).tanh()
    return h


@pytest.fixture
def tensors() -> list[Tensor]:
    return [random(3, 4), random(5, 3, 4), random(4, 4)]


def test_gradients(tensors: list[Tensor]):
    torch.testing.assert_close(steps(*tensors), plain_steps(*tensors))
    assert torch.autograd.gradcheck(steps, tensors)
    assert torch.autograd.gradgradcheck(steps, tensors)


def test_view_of_a_weight():
    start, inputs, weight = random(3, 4), random(2, 3, 4), random(4, 9)
    ours, theirs = (
        torch.autograd.grad(run(start, inputs, weight[:, 2:6]).sum(), weight)
        for run in (steps, plain_steps)
    )
    torch.testing.assert_close(ours, theirs)


def test_each_backward_pass_has_its_own_gradient(tensors: list[Tensor]):
    start, _, weight = tensors
    expected = torch.autograd.grad(plain_steps(*tensors).sum(), weight)
    result = steps(*tensors).sum()
    torch.autograd.grad(result, start, retain_graph=True)  # reaches no weight
    for _ in range(2):
        actual = torch.autograd.grad(result, weight, retain_graph=True)
        torch.testing.assert_close(actual, expected)


def test_weight_without_gradient(tensors: list[Tensor]):
    start, inputs, weight = tensors
    actual, expected = (
        torch.autograd.grad(run(start, inputs, weight.detach()).sum(), [start, inputs])
        for run in (steps, plain_steps)
    )
    torch.testing.assert_close(actual, expected)
