"""The Evoformer: loops straight from the algorithms, and what must hold of any weights."""

import math

import pytest
import torch
from torch import nn

from regard.attention.observe import observe
from regard.layers.evoformer import (
    EvoformerBlock,
    GatedAttention,
    OuterProduct,
    RowAttention,
    TriangleAttention,
    TriangleProduct,
    parameter_count,
)

F64 = torch.float64
B, S, R, C, P = 2, 3, 4, 6, 5


def awake(module: nn.Module) -> nn.Module:
    """Weights drawn wide: what starts at zero would hide everything."""
    for weight in module.parameters():
        nn.init.normal_(weight, std=0.5)
    return module.to(F64).eval()


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(B, S, R, C, dtype=F64), torch.randn(B, R, R, P, dtype=F64)


def block(**settings) -> EvoformerBlock:
    return EvoformerBlock(C, P, heads=2, pair_heads=2, head_dim=3, **settings)


def test_a_block_begins_as_the_identity():
    m, z = inputs()
    after = block().to(F64).eval()(m, z)
    assert torch.equal(after[0], m)
    assert torch.equal(after[1], z)


def test_gates_begin_open():
    made = GatedAttention(4, 2, 3)
    assert made.gate.weight.eq(0).all()
    assert made.gate.bias.eq(1).all()
    assert made.to_query.bias is None


@pytest.mark.parametrize("ending", [False, True])
def test_triangle_attention_is_its_algorithm(ending):
    made = awake(TriangleAttention(P, heads=2, head_dim=3, ending=ending))
    _, z = inputs()
    found, x = made(z, None), made.norm(z)
    look, wanted = made.look, torch.zeros_like(z)
    split = lambda layer: layer(x).unflatten(-1, (2, 3))  # noqa: E731 - b i j h c
    q, k, v = map(split, (look.to_query, look.to_key, look.to_value))
    bias, gate = made.bias(x), look.gate(x).sigmoid()
    for n in range(B):
        for i in range(R):
            for j in range(R):
                heads = []
                for h in range(2):
                    other = [(t, j) if ending else (i, t) for t in range(R)]
                    third = [(t, i) if ending else (j, t) for t in range(R)]  # b_ki, b_jk
                    energy = torch.stack(
                        [
                            q[n, i, j, h] @ k[n, *edge, h] / math.sqrt(3) + bias[n, *close, h]
                            for edge, close in zip(other, third, strict=True)
                        ]
                    )
                    a = energy.softmax(0)
                    heads.append(sum(w * v[n, *e, h] for w, e in zip(a, other, strict=True)))
                wanted[n, i, j] = look.out(gate[n, i, j] * torch.cat(heads))
    torch.testing.assert_close(found, wanted)


def test_ending_is_starting_on_the_transpose():
    start = awake(TriangleAttention(P, heads=2, head_dim=3))
    end = awake(TriangleAttention(P, heads=2, head_dim=3, ending=True))
    end.load_state_dict(start.state_dict())
    _, z = inputs()
    torch.testing.assert_close(end(z, None), start(z.transpose(1, 2), None).transpose(1, 2))


@pytest.mark.parametrize("incoming", [False, True])
def test_triangle_product_is_its_algorithm(incoming):
    made = awake(TriangleProduct(P, 7, incoming=incoming))
    _, z = inputs()
    x = made.norm(z)
    a, b = (made.edge_gates(x).sigmoid() * made.edges(x)).chunk(2, -1)
    wanted = torch.zeros_like(z)
    for i in range(R):
        for j in range(R):
            some = sum(
                a[:, k, i] * b[:, k, j] if incoming else a[:, i, k] * b[:, j, k] for k in range(R)
            )
            wanted[:, i, j] = made.gate(x[:, i, j]).sigmoid() * made.out(made.inner_norm(some))
    torch.testing.assert_close(made(z, None), wanted)


def test_row_attention_is_its_algorithm():
    made = awake(RowAttention(C, P, heads=2, head_dim=3))
    m, z = inputs()
    x, bias = made.norm(m), made.bias(made.pair_norm(z))
    look, wanted = made.look, torch.zeros_like(m)
    q, k, v = (f(x).unflatten(-1, (2, 3)) for f in (look.to_query, look.to_key, look.to_value))
    for n in range(B):
        for s in range(S):
            for i in range(R):
                heads = []
                for h in range(2):
                    energy = k[n, s, :, h] @ q[n, s, i, h] / math.sqrt(3) + bias[n, i, :, h]
                    heads.append(energy.softmax(0) @ v[n, s, :, h])
                wanted[n, s, i] = look.out(look.gate(x[n, s, i]).sigmoid() * torch.cat(heads))
    torch.testing.assert_close(made(m, z, None), wanted)


def test_outer_product_is_its_algorithm():
    made = awake(OuterProduct(C, P, 3))
    m, _ = inputs()
    a, b = made.both(made.norm(m)).chunk(2, -1)
    wanted = torch.zeros(B, R, R, P, dtype=F64)
    for i in range(R):
        for j in range(R):
            outer = sum(a[:, s, i, :, None] * b[:, s, j, None] for s in range(S)) / S
            wanted[:, i, j] = made.out(outer.flatten(1))
    torch.testing.assert_close(made(m), wanted)


def test_sequences_may_change_places():
    made, (m, z) = awake(block()), inputs()
    order = [2, 0, 1]
    one, pairs = made(m, z)
    other, same = made(m[:, order], z)
    torch.testing.assert_close(other, one[:, order])
    torch.testing.assert_close(same, pairs)


def test_residues_may_change_places():
    made, (m, z) = awake(block()), inputs()
    order = [3, 1, 0, 2]
    one, pairs = made(m, z)
    other, moved = made(m[:, :, order], z[:, order][:, :, order])
    torch.testing.assert_close(other, one[:, :, order])
    torch.testing.assert_close(moved, pairs[:, order][:, :, order])


def test_residues_that_are_not_there_do_not_matter():
    made, (m, z) = awake(block()), inputs()
    valid = (torch.arange(R) < 3).expand(B, -1)
    one, pairs = made(m[:, :, :3], z[:, :3, :3])
    other, all_pairs = made(m, z, valid)
    torch.testing.assert_close(other[:, :, :3], one)
    torch.testing.assert_close(all_pairs[:, :3, :3], pairs)


def test_sequences_that_are_not_there_do_not_matter():
    made, (m, z) = awake(block()), inputs()
    real = torch.tensor([[True, True, False], [True, False, False]])
    other, pairs = made(m, z, None, real)
    for row, many in enumerate((2, 1)):
        one, own = made(m[row : row + 1, :many], z[row : row + 1])
        torch.testing.assert_close(other[row : row + 1, :many], one)
        torch.testing.assert_close(pairs[row : row + 1], own)


@pytest.mark.parametrize(
    ("triangles", "products", "edges"),
    [("both", 2, 2), ("product", 2, 0), ("attention", 0, 2), ("axial", 0, 2), ("none", 0, 0)],
)
def test_triangles_can_be_left_out(triangles, products, edges):
    made = block(triangles=triangles)
    assert (len(made.products), len(made.edges)) == (products, edges)
    assert all((edge.bias is None) == (triangles == "axial") for edge in made.edges)


def test_triangles_are_of_a_known_kind(unchecked):
    with pytest.raises(ValueError, match=r"triangles must be one of both, product, .* not 'all'"):
        block(triangles="all")


def test_axial_has_as_many_weights_and_no_third_edge():
    whole = EvoformerBlock(16, 16, heads=2, pair_heads=2, head_dim=8)
    axial = EvoformerBlock(16, 16, heads=2, pair_heads=2, head_dim=8, triangles="axial")
    assert parameter_count(axial) == pytest.approx(parameter_count(whole), rel=0.01)
    made = awake(block(triangles="axial"))
    made.outer.out.weight.data.zero_()  # rows of the alignment ask all pairs: they are silent
    m, z = inputs()
    before = made(m, z)[1][:, 0, 1]
    z[:, 2, 3] += 1.0  # an edge that shares no node with (0, 1)
    torch.testing.assert_close(made(m, z)[1][:, 0, 1], before)


def test_masks_of_dropout_are_shared():
    made = block(dropout=0.5, pair_dropout=0.5)
    x = torch.ones(2, 5, 7, 3)
    for axis in (1, 2):
        dropped = made.drop_shared(x, 0.5, axis)
        assert dropped.eq(dropped.select(axis, 0).unsqueeze(axis)).all()
        assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert made.eval().drop_shared(x, 0.5, 1) is x


def test_every_weight_can_be_seen():
    made, (m, z) = awake(block()), inputs()
    with observe(made) as seen:
        made(m, z)
    shapes = {name: tuple(one.shape) for name, one in seen.joined().items()}
    assert shapes == {
        "rows.look": (B, S, 2, R, R),
        "columns.look": (B, R, 2, S, S),
        "edges.0.look": (B, R, 2, R, R),
        "edges.1.look": (B, R, 2, R, R),
    }
    for weights in seen.joined().values():
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
