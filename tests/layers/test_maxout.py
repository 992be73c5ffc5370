"""Maxout, and the deep output layer."""

import pytest
import torch

from regard.layers.maxout import DeepOutput, maxout


def test_maxout_takes_the_larger_of_two_numbers_half_a_vector_apart():
    x = torch.tensor([[1.0, 5.0, 3.0, 2.0, -1.0, 4.0]])
    assert maxout(x).tolist() == [[2.0, 5.0, 4.0]]
    assert maxout(x, pieces=3).tolist() == [[3.0, 5.0]]


def test_only_the_larger_one_gets_the_gradient():
    x = torch.tensor([1.0, 5.0, 3.0, 2.0], requires_grad=True)
    maxout(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 1.0, 1.0, 0.0]


def test_widths_must_divide():
    with pytest.raises(ValueError, match="x is 5 wide, which is not a multiple of 2 pieces"):
        maxout(torch.zeros(5))


def test_deep_output_is_one_layer_over_the_joined_inputs():
    deep = DeepOutput([2, 3, 4], 5).double()
    a, b, c = (torch.randn(6, 7, wide, dtype=torch.float64) for wide in (2, 3, 4))
    weight = torch.cat([part.weight for part in deep.parts], 1)
    raw = torch.cat([a, b, c], -1) @ weight.T + deep.parts[0].bias
    expected = torch.maximum(raw[..., :5], raw[..., 5:])
    torch.testing.assert_close(deep(a, b, c), expected)
    assert [part.bias is None for part in deep.parts] == [False, True, True]


def test_an_input_that_is_the_same_at_every_step_is_given_once():
    deep = DeepOutput([2, 3], 4)
    a, b = torch.randn(6, 7, 2), torch.randn(6, 1, 3)
    torch.testing.assert_close(deep(a, b), deep(a, b.expand(6, 7, 3)))


def test_wrong_widths_are_refused():
    with pytest.raises(ValueError, match="dim must be positive"):
        DeepOutput([2], 0)
    with pytest.raises(ValueError):
        DeepOutput([2, 3], 4)(torch.zeros(1, 2))
