"""The embedding table: lookup, tied logits, padding, and unknown ids."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from regard.layers.embedding import Embedding

SIZE, DIM = 7, 4


@settings(max_examples=25)
@given(st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=9), st.booleans())
def test_lookup_is_a_product_with_one_hot_rows(ids: list[int], scaled: bool):
    embed = Embedding(SIZE, DIM, scaled=scaled).double()
    vectors = embed(torch.tensor([ids]))
    for position, index in enumerate(ids):
        for column in range(DIM):
            expected = sum((row == index) * embed.weight[row, column].item() for row in range(SIZE))
            expected *= math.sqrt(DIM) if scaled else 1
            assert vectors[0, position, column].item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("padding", [None, 2])
def test_logits_are_products_with_every_row(bias: bool, padding: int | None):
    embed = Embedding(SIZE, DIM, bias=bias, padding=padding, scaled=True).double()
    if embed.bias is not None:
        torch.nn.init.normal_(embed.bias)
    states = torch.randn(2, 3, DIM, dtype=torch.float64)
    expected = torch.empty(2, 3, SIZE, dtype=torch.float64)
    for b in range(2):
        for t in range(3):
            for v in range(SIZE):
                total = 0.0 if embed.bias is None else embed.bias[v].item()
                for column in range(DIM):
                    total += states[b, t, column].item() * embed.weight[v, column].item()
                expected[b, t, v] = total
    torch.testing.assert_close(embed.logits(states), expected, rtol=1e-10, atol=1e-12)
    with torch.no_grad():
        torch.testing.assert_close(embed.logits(states), expected, rtol=1e-10, atol=1e-12)


def test_table_gets_gradients_from_lookup_and_logits():
    embed = Embedding(SIZE, DIM, scaled=True, bias=True, padding=0).double()
    ids = torch.tensor([[1, 3, 3], [0, 6, 1]])
    assert embed.bias is not None

    def tied_logits(weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        tied = {"weight": weight, "bias": bias}
        states = torch.func.functional_call(embed, tied, (ids,))
        return torch.nn.functional.linear(states.tanh(), weight.index_fill(0, ids[1, :1], 0), bias)

    loss = embed.logits(embed(ids).tanh()).square().sum()
    loss.backward()
    reference = tied_logits(embed.weight, embed.bias).square().sum()
    expected = torch.autograd.grad(reference, [embed.weight, embed.bias])
    torch.testing.assert_close(embed.weight.grad, expected[0])
    torch.testing.assert_close(embed.bias.grad, expected[1])
    states = torch.randn(2, DIM, dtype=torch.float64, requires_grad=True)
    assert gradcheck(embed.logits, (states,))


def test_padding_stays_zero_through_training():
    embed = Embedding(SIZE, DIM, padding=2)
    optimizer = torch.optim.AdamW(embed.parameters(), lr=0.1, weight_decay=0.1)
    ids = torch.tensor([[1, 2, 3, 2]])
    for _ in range(5):
        optimizer.zero_grad()
        logits = embed.logits(embed(ids).roll(1, 1) + 1)
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten()).backward()
        assert embed.weight.grad is not None
        assert (embed.weight.grad[2] == 0).all()
        optimizer.step()
    assert (embed.weight[2] == 0).all()
    assert (embed(ids)[0, 1] == 0).all()
    assert (embed.weight[[1, 3]] != 0).all()


def test_starts_with_unit_variance_both_ways():
    embed = Embedding(4000, 64, scaled=True)
    vectors = embed(torch.arange(4000))
    assert vectors.var().item() == pytest.approx(1, abs=0.03)
    assert embed.logits(torch.randn(50, 64)).var().item() == pytest.approx(1, abs=0.1)
    assert Embedding(4000, 64, init_std=0.02).weight.std().item() == pytest.approx(0.02, rel=0.03)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_keeps_the_dtype(dtype: torch.dtype):
    embed = Embedding(SIZE, DIM, scaled=True, padding=0, bias=True).to(dtype)
    vectors = embed(torch.randint(SIZE, (2, 5), dtype=torch.int32))
    assert vectors.dtype == dtype == embed.logits(vectors).dtype
    assert embed.logits(vectors).isfinite().all()
    assert embed(torch.empty(2, 0, dtype=torch.long)).shape == (2, 0, DIM)


def test_compiles_as_one_graph(unchecked: None):
    embed = Embedding(SIZE, DIM, scaled=True, padding=0)
    ids = torch.randint(SIZE, (2, 5))
    compiled = torch.compile(embed, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(ids), embed(ids))


@pytest.mark.parametrize("bad", [-1, SIZE, SIZE + 3])
def test_an_id_that_does_not_exist_is_named(bad: int):
    embed = Embedding(SIZE, DIM)
    with pytest.raises(ValueError, match=rf"^ids hold {bad}, but the table has {SIZE} entries"):
        embed(torch.tensor([[0, 1], [bad, 2]]))


def test_bad_arguments(unchecked: None):
    with pytest.raises(ValueError, match=r"^ids must be int64 or int32, not torch.float32$"):
        Embedding(SIZE, DIM)(torch.zeros(2, 3))
    with pytest.raises(ValueError, match=r"^states must be 4 wide, not 5$"):
        Embedding(SIZE, DIM).logits(torch.zeros(2, 3, 5))
    with pytest.raises(ValueError, match=r"^states must be torch\.float32 like the weights"):
        Embedding(SIZE, DIM).logits(torch.zeros(2, 3, DIM, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"^padding must be an id between 0 and 6, not 7$"):
        Embedding(SIZE, DIM, padding=7)
    with pytest.raises(ValueError, match=r"^size must be positive, not 0$"):
        Embedding(0, DIM)
    with pytest.raises(ValueError, match=r"^dim must be positive, not 0$"):
        Embedding(SIZE, 0)
