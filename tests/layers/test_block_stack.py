"""A stack that computes activations again keeps less, and has the same gradients."""

import torch
from torch.autograd.graph import saved_tensors_hooks

from regard.layers.transformer_block import TransformerBlock, TransformerStack


def kept_bytes_and_gradients(stack: TransformerStack) -> tuple[int, list[torch.Tensor]]:
    sizes = list[int]()

    def pack(tensor):
        sizes.append(tensor.nbytes)
        return tensor

    torch.manual_seed(5)
    states = torch.rand(2, 7, 8, requires_grad=True)
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        outputs, _ = stack(states)
    outputs.square().sum().backward()
    gradients = [p.grad for p in stack.parameters() if p.grad is not None]
    stack.zero_grad()
    return sum(sizes), gradients


def test_recomputed_activations_are_not_kept_and_dropout_is_the_same(seed):
    stack = TransformerStack(TransformerBlock(8, 2, 32, dropout=0.5) for _ in range(3))
    kept, expected = kept_bytes_and_gradients(stack)
    stack.recompute_activations = True
    kept_inputs, gradients = kept_bytes_and_gradients(stack)
    assert kept_inputs < kept / 10
    torch.testing.assert_close(gradients, expected, rtol=0, atol=0)


def test_nothing_is_recomputed_in_evaluation(seed):
    stack = TransformerStack([TransformerBlock(8, 2, 32)])
    stack.recompute_activations = True
    assert stack.eval().block_function(stack.layers[0]) is stack.layers[0]
