"""Attention keeps no weights of queries times slots for the backward pass."""

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from regard.attention.core import Attention
from regard.attention.masks import causal
from regard.attention.memory import Memory
from regard.attention.scores import ScaledDot
from regard.attention.slices import MAX_KEPT_QUERIES, FusedInputs, attend_in_slices
from regard.models.bert import Bert
from regard.models.gpt2 import Gpt2
from regard.models.transformer import Transformer
from regard.models.vit import Vit

LENGTH = MAX_KEPT_QUERIES + 89
SMALL = {"dim": 8, "heads": 2, "layers": 1, "hidden_dim": 16}


def largest_saved(function) -> int:
    """Return the bytes of the largest tensor that is kept for the backward pass."""
    sizes = [0]

    def pack(tensor):
        sizes.append(tensor.untyped_storage().nbytes())
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        function()
    return max(sizes)


def read(model: str, dropout: float):
    ids = torch.randint(5, 9, (1, LENGTH))
    valid = torch.arange(LENGTH)[None] < LENGTH - 3
    match model:
        case "gpt2":
            lm = Gpt2(9, **SMALL, max_positions=LENGTH, dropout=dropout)
            return lambda: lm.teacher_forced(None, ids)
        case "bert":
            bert = Bert(9, **SMALL, max_positions=LENGTH, dropout=dropout)
            return lambda: bert.encode(ids, valid)
        case "vit":
            vit = Vit(50, 1, **SMALL, patch_size=2, dropout=dropout)
            return lambda: vit.encode(torch.rand(1, 1, 50, 50))
        case _:
            mt = Transformer(9, 9, **SMALL, dropout=dropout)
            return lambda: mt.teacher_forced(mt.remember(ids, valid), ids)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("model", ["gpt2", "bert", "vit", "transformer"])
def test_no_tensor_of_queries_times_slots_is_kept(model, dropout, seed):
    assert largest_saved(read(model, dropout)) < MAX_KEPT_QUERIES**2  # even with a byte for each


def test_the_weights_of_another_path_are_found(seed):
    attention = Attention(ScaledDot(), normalize=lambda energy: energy.softmax(-1))
    states = torch.rand(1, LENGTH, 4, requires_grad=True)
    kept = largest_saved(lambda: attention(states, Memory(states, states)))
    assert kept >= LENGTH**2


@pytest.mark.parametrize("kind", ["causal", "valid", "mask", "none"])
def test_slices_compute_the_same_attention(kind, seed):
    query = torch.rand(2, 4, 300, 8, dtype=torch.float64, requires_grad=True)
    keys = torch.rand(2, 2, 300, 8, dtype=torch.float64, requires_grad=True)  # shared by two heads
    mask = {
        "valid": (torch.arange(300) < 250)[None, None, None],
        "mask": torch.ones(300, 300).tril(3).bool()[None, None],
    }.get(kind)
    inputs = FusedInputs(query, keys, keys, mask, kind == "causal")
    expected = nn.functional.scaled_dot_product_attention(
        query, keys, keys, mask, is_causal=kind == "causal", scale=0.3, enable_gqa=True
    )
    context = attend_in_slices(inputs, 0.0, 0.3)
    torch.testing.assert_close(context, expected)
    upstream = torch.rand_like(context)
    torch.testing.assert_close(
        torch.autograd.grad(context, (query, keys), upstream),
        torch.autograd.grad(expected, (query, keys), upstream),
    )


def test_dropout_in_slices_is_that_of_the_forward_pass(seed):
    """With values of 1, a context is linear in the kept weights, so its gradient sums to it."""
    attention = Attention(ScaledDot(), dropout=0.5).train()
    query = torch.rand(1, LENGTH, 4)
    values = torch.ones(1, LENGTH, 4, requires_grad=True)
    context = attention(query, Memory(query, values), causal)
    (gradient,) = torch.autograd.grad(context.sum(), values)
    assert context.std() > 0.01  # dropout has acted
    torch.testing.assert_close(gradient.sum(), context.sum())
