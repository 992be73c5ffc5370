"""The Evoformer against loops from the algorithms, and its invariants."""

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


def randomized(module: nn.Module) -> nn.Module:
    """Draw all weights, because layers that start at zero hide errors."""
    for weight in module.parameters():
        nn.init.normal_(weight, std=0.5)
    return module.to(F64).eval()


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(B, S, R, C, dtype=F64), torch.randn(B, R, R, P, dtype=F64)


def block(**settings) -> EvoformerBlock:
    return EvoformerBlock(C, P, heads=2, pair_heads=2, head_dim=3, **settings)


def test_a_block_starts_as_the_identity():
    m, z = inputs()
    after = block().to(F64).eval()(m, z)
    assert torch.equal(after[0], m)
    assert torch.equal(after[1], z)


def test_gates_start_open():
    attention = GatedAttention(4, 2, 3)
    assert attention.gate.weight.eq(0).all()
    assert attention.gate.bias.eq(1).all()
    assert attention.to_query.bias is None


@pytest.mark.parametrize("ending", [False, True])
def test_triangle_attention_is_its_algorithm(ending):
    layer = randomized(TriangleAttention(P, heads=2, head_dim=3, ending=ending))
    _, z = inputs()
    actual, x = layer(z, None), layer.norm(z)
    attention, expected = layer.look, torch.zeros_like(z)
    project = lambda linear: linear(x).unflatten(-1, (2, 3))  # noqa: E731 - b i j h c
    q, k, v = map(project, (attention.to_query, attention.to_key, attention.to_value))
    bias, gate = layer.bias(x), attention.gate(x).sigmoid()
    for n in range(B):
        for i in range(R):
            for j in range(R):
                heads = []
                for h in range(2):
                    attended = [(t, j) if ending else (i, t) for t in range(R)]
                    third = [(t, i) if ending else (j, t) for t in range(R)]  # b_ki, b_jk
                    energy = torch.stack(
                        [
                            q[n, i, j, h] @ k[n, *edge, h] / math.sqrt(3) + bias[n, *close, h]
                            for edge, close in zip(attended, third, strict=True)
                        ]
                    )
                    a = energy.softmax(0)
                    heads.append(sum(w * v[n, *e, h] for w, e in zip(a, attended, strict=True)))
                expected[n, i, j] = attention.out(gate[n, i, j] * torch.cat(heads))
    torch.testing.assert_close(actual, expected)


def test_ending_is_starting_on_the_transpose():
    start = randomized(TriangleAttention(P, heads=2, head_dim=3))
    end = randomized(TriangleAttention(P, heads=2, head_dim=3, ending=True))
    end.load_state_dict(start.state_dict())
    _, z = inputs()
    torch.testing.assert_close(end(z, None), start(z.transpose(1, 2), None).transpose(1, 2))


@pytest.mark.parametrize("incoming", [False, True])
def test_triangle_product_is_its_algorithm(incoming):
    layer = randomized(TriangleProduct(P, 7, incoming=incoming))
    _, z = inputs()
    x = layer.norm(z)
    a, b = (layer.edge_gates(x).sigmoid() * layer.edges(x)).chunk(2, -1)
    expected = torch.zeros_like(z)
    for i in range(R):
        for j in range(R):
            total = sum(
                a[:, k, i] * b[:, k, j] if incoming else a[:, i, k] * b[:, j, k] for k in range(R)
            )
            expected[:, i, j] = layer.gate(x[:, i, j]).sigmoid() * layer.out(
                layer.inner_norm(total)
            )
    torch.testing.assert_close(layer(z, None), expected)


def test_row_attention_is_its_algorithm():
    layer = randomized(RowAttention(C, P, heads=2, head_dim=3))
    m, z = inputs()
    x, bias = layer.norm(m), layer.bias(layer.pair_norm(z))
    attention, expected = layer.look, torch.zeros_like(m)
    q, k, v = (
        f(x).unflatten(-1, (2, 3))
        for f in (attention.to_query, attention.to_key, attention.to_value)
    )
    for n in range(B):
        for s in range(S):
            for i in range(R):
                heads = []
                for h in range(2):
                    energy = k[n, s, :, h] @ q[n, s, i, h] / math.sqrt(3) + bias[n, i, :, h]
                    heads.append(energy.softmax(0) @ v[n, s, :, h])
                expected[n, s, i] = attention.out(
                    attention.gate(x[n, s, i]).sigmoid() * torch.cat(heads)
                )
    torch.testing.assert_close(layer(m, z, None), expected)


def test_outer_product_is_its_algorithm():
    layer = randomized(OuterProduct(C, P, 3))
    m, _ = inputs()
    a, b = layer.both(layer.norm(m)).chunk(2, -1)
    expected = torch.zeros(B, R, R, P, dtype=F64)
    for i in range(R):
        for j in range(R):
            outer = sum(a[:, s, i, :, None] * b[:, s, j, None] for s in range(S)) / S
            expected[:, i, j] = layer.out(outer.flatten(1))
    torch.testing.assert_close(layer(m), expected)


def test_sequences_may_change_places():
    model, (m, z) = randomized(block()), inputs()
    order = [2, 0, 1]
    rows, pairs = model(m, z)
    moved_rows, moved_pairs = model(m[:, order], z)
    torch.testing.assert_close(moved_rows, rows[:, order])
    torch.testing.assert_close(moved_pairs, pairs)


def test_residues_may_change_places():
    model, (m, z) = randomized(block()), inputs()
    order = [3, 1, 0, 2]
    rows, pairs = model(m, z)
    moved_rows, moved_pairs = model(m[:, :, order], z[:, order][:, :, order])
    torch.testing.assert_close(moved_rows, rows[:, :, order])
    torch.testing.assert_close(moved_pairs, pairs[:, order][:, :, order])


def test_padded_residues_do_not_matter():
    model, (m, z) = randomized(block()), inputs()
    valid = (torch.arange(R) < 3).expand(B, -1)
    rows, pairs = model(m[:, :, :3], z[:, :3, :3])
    padded_rows, padded_pairs = model(m, z, valid)
    torch.testing.assert_close(padded_rows[:, :, :3], rows)
    torch.testing.assert_close(padded_pairs[:, :3, :3], pairs)


def test_padded_sequences_do_not_matter():
    model, (m, z) = randomized(block()), inputs()
    real = torch.tensor([[True, True, False], [True, False, False]])
    padded_rows, pairs = model(m, z, None, real)
    for row, count in enumerate((2, 1)):
        rows, row_pairs = model(m[row : row + 1, :count], z[row : row + 1])
        torch.testing.assert_close(padded_rows[row : row + 1, :count], rows)
        torch.testing.assert_close(pairs[row : row + 1], row_pairs)


@pytest.mark.parametrize(
    ("triangles", "products", "edges"),
    [("both", 2, 2), ("product", 2, 0), ("attention", 0, 2), ("axial", 0, 2), ("none", 0, 0)],
)
def test_triangles_can_be_left_out(triangles, products, edges):
    model = block(triangles=triangles)
    assert (len(model.products), len(model.edges)) == (products, edges)
    assert all((edge.bias is None) == (triangles == "axial") for edge in model.edges)


def test_unknown_triangles_are_rejected(unchecked):
    with pytest.raises(ValueError, match=r"triangles must be one of both, product, .* not 'all'"):
        block(triangles="all")


def test_axial_has_as_many_weights_and_no_third_edge():
    full = EvoformerBlock(16, 16, heads=2, pair_heads=2, head_dim=8)
    axial = EvoformerBlock(16, 16, heads=2, pair_heads=2, head_dim=8, triangles="axial")
    assert parameter_count(axial) == pytest.approx(parameter_count(full), rel=0.01)
    model = randomized(block(triangles="axial"))
    model.outer.out.weight.data.zero_()  # no path through the rows of the alignment
    m, z = inputs()
    before = model(m, z)[1][:, 0, 1]
    z[:, 2, 3] += 1.0  # an edge that shares no node with (0, 1)
    torch.testing.assert_close(model(m, z)[1][:, 0, 1], before)


def test_masks_of_dropout_are_shared():
    model = block(dropout=0.5, pair_dropout=0.5)
    x = torch.ones(2, 5, 7, 3)
    for axis in (1, 2):
        dropped = model.drop_shared(x, 0.5, axis)
        assert dropped.eq(dropped.select(axis, 0).unsqueeze(axis)).all()
        assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert model.eval().drop_shared(x, 0.5, 1) is x


def test_observe_records_every_attention():
    model, (m, z) = randomized(block()), inputs()
    with observe(model) as recorded:
        model(m, z)
    shapes = {name: tuple(tensor.shape) for name, tensor in recorded.joined().items()}
    assert shapes == {
        "rows.look": (B, S, 2, R, R),
        "columns.look": (B, R, 2, S, S),
        "edges.0.look": (B, R, 2, R, R),
        "edges.1.look": (B, R, 2, R, R),
    }
    for weights in recorded.joined().values():
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
