"""Layers of the Evoformer: Jumper et al. 2021 (AlphaFold 2), supplement 1.6, algorithms 6 to 15.

    m [b s r c]    sequences of an alignment, row by row: s sequences of r residues
    z [b r r c]    pairs of residues

Every layer reads a normalized input and adds to the input before the norm. Its last linear map
starts at zero, so that a block starts as the identity. Gates start almost open (weight 0, bias 1).

    gated      o = sigmoid(W_g x) * softmax(q . k / sqrt(c) + bias) v            algorithms 7, 8, 13
    triangle   g * W LN(sum_k a_ik * b_jk), or of a_ki * b_kj                    algorithms 11, 12
    outer      z_ij += W mean_s a_si (x) b_sj                                    algorithm 10
"""

from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.scores import ScaledDot
from regard.attention.validation import check_dropout, check_positive
from regard.errors import InputError
from regard.kernels.linear import Linear

PairTensor = Float[Tensor, "b r r p"]
BOTH_DIRECTIONS = (False, True)
TriangleUpdates = Literal["both", "product", "attention", "axial", "none"]


class GatedAttention(nn.Module):
    """o = sigmoid(W_g x) * multi-head attention of x to itself, along the last axis but one."""

    def __init__(self, dim: int, heads: int, head_dim: int):
        super().__init__()
        for name, value in (("dim", dim), ("heads", heads), ("head_dim", head_dim)):
            check_positive(name, value)
        self.heads, self.groups, self.head_dim, inner_dim = heads, heads, head_dim, heads * head_dim
        self.has_bias = False
        self.attention = Attention(ScaledDot())
        self.to_query, self.to_key, self.to_value = (
            Linear(dim, inner_dim, bias=False) for _ in range(3)
        )
        self.gate = build_open_gate(dim, inner_dim)
        self.out = build_zero_linear(inner_dim, dim)

    def forward(
        self,
        x: Float[Tensor, "*b t d"],
        valid: Bool[Tensor, "*#b t"] | None = None,
        bias: Float[Tensor, "*#b h t t"] | None = None,
    ) -> Float[Tensor, "*b t d"]:
        query, key, value = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(-2, -3)
            for layer in (self.to_query, self.to_key, self.to_value)
        )
        memory = self.attention.remember(key, None if valid is None else valid[..., None, :], value)
        read = self.attention(query, memory, bias=bias).transpose(-2, -3).flatten(-2)
        return self.out(self.gate(x).sigmoid() * read)


class RowAttention(nn.Module):
    """Attention along each sequence, biased by the pairs of residues (alg. 7)."""

    def __init__(self, dim: int, pair_dim: int, heads: int, head_dim: int):
        super().__init__()
        self.norm, self.pair_norm = nn.LayerNorm(dim), nn.LayerNorm(pair_dim)
        self.bias = Linear(pair_dim, heads, bias=False)
        self.look = GatedAttention(dim, heads, head_dim)

    def forward(self, m: Float[Tensor, "b s r c"], z: PairTensor, valid: Tensor | None) -> Tensor:
        bias = self.bias(self.pair_norm(z)).movedim(-1, 1)[:, None]
        return self.look(self.norm(m), None if valid is None else valid[:, None], bias)


class ColumnAttention(nn.Module):
    """Attention along each column: between the sequences, at one residue (alg. 8)."""

    def __init__(self, dim: int, heads: int, head_dim: int):
        super().__init__()
        self.norm, self.look = nn.LayerNorm(dim), GatedAttention(dim, heads, head_dim)

    def forward(
        self, m: Float[Tensor, "b s r c"], sequence_valid: Bool[Tensor, "b s"] | None = None
    ) -> Float[Tensor, "b s r c"]:
        slots_valid = None if sequence_valid is None else sequence_valid[:, None]
        return self.look(self.norm(m).transpose(1, 2), slots_valid).transpose(1, 2)


class TriangleAttention(nn.Module):
    """Attention of edge ij to the edges ik of its first node, biased by the edge jk (alg. 13).

    With `ending`, edge ij attends to the edges kj of its second node, biased by ki: the same on the
    transpose (alg. 14). Without `third_edge` there is no bias: plain axial attention.
    """

    def __init__(
        self, dim: int, heads: int, head_dim: int, *, ending: bool = False, third_edge: bool = True
    ):
        super().__init__()
        self.ending = ending
        self.norm, self.look = nn.LayerNorm(dim), GatedAttention(dim, heads, head_dim)
        self.bias = Linear(dim, heads, bias=False) if third_edge else None

    def forward(self, z: PairTensor, valid: Bool[Tensor, "b r"] | None) -> PairTensor:
        edges = self.norm(z.transpose(1, 2) if self.ending else z)
        bias = None if self.bias is None else self.bias(edges).movedim(-1, 1)[:, None]
        read = self.look(edges, None if valid is None else valid[:, None], bias)
        return read.transpose(1, 2) if self.ending else read


class TriangleProduct(nn.Module):
    """sum_k a_ik * b_jk over the outgoing edges, or a_ki * b_kj if `incoming` (alg. 11, 12)."""

    def __init__(self, dim: int, hidden_dim: int, *, incoming: bool = False):
        super().__init__()
        self.incoming = incoming
        self.norm, self.inner_norm = nn.LayerNorm(dim), nn.LayerNorm(hidden_dim)
        self.edges = Linear(dim, 2 * hidden_dim)
        self.edge_gates = build_open_gate(dim, 2 * hidden_dim)
        self.gate, self.out = build_open_gate(dim, dim), build_zero_linear(hidden_dim, dim)

    def forward(self, z: PairTensor, valid: Bool[Tensor, "b r"] | None) -> PairTensor:
        x = self.norm(z)
        gated_edges = self.edge_gates(x).sigmoid() * self.edges(x)
        if valid is not None:  # a padded node has no triangles
            gated_edges = gated_edges * (valid[:, :, None] & valid[:, None]).unsqueeze(-1)
        a, b = gated_edges.movedim(-1, 1).chunk(2, 1)  # [b c r r]
        edge_product = a.mT @ b if self.incoming else a @ b.mT
        return self.gate(x).sigmoid() * self.out(self.inner_norm(edge_product.movedim(1, -1)))


class OuterProduct(nn.Module):
    """z_ij = W mean_s a_si (x) b_sj, from columns i and j of the alignment (alg. 10)."""

    def __init__(self, dim: int, pair_dim: int, hidden_dim: int):
        super().__init__()
        self.norm, self.both = nn.LayerNorm(dim), Linear(dim, 2 * hidden_dim)
        self.out = build_zero_linear(hidden_dim**2, pair_dim)

    def forward(
        self, m: Float[Tensor, "b s r c"], sequence_valid: Bool[Tensor, "b s"] | None = None
    ) -> PairTensor:
        a, b = self.both(self.norm(m)).chunk(2, -1)
        n_sequences: Tensor | int = m.shape[1]
        if sequence_valid is not None:
            a, n_sequences = (
                a * sequence_valid[..., None, None],
                sequence_valid.sum(1).clamp(min=1)[:, None, None],
            )
        # one product for all pairs: [b, r c, s] @ [b, s, r c]
        rows, columns = a.flatten(2).mT, b.flatten(2)
        size = m.shape[2]
        outer = (rows @ columns / n_sequences).unflatten(1, (size, -1)).unflatten(-1, (size, -1))
        return self.out(outer.transpose(2, 3).flatten(3))


class EvoformerBlock(nn.Module):
    """One block: rows, columns, pairs, triangles (alg. 6). In the paper 256, 128, 8 and 4 heads.

    `dropout` acts on the output of row attention, with one mask for all sequences. `pair_dropout`
    acts on the output of the triangle layers, with one mask for all rows, or for all columns in
    attention around the ending node.

    `triangles` chooses the layers for pairs. "both", "product" and "attention" cost O(r^3). "axial"
    is attention without the third edge: it costs O(r^3) too, and a wider transition gives it the
    same number of weights. "none" costs O(r^2); a pair then never reads another pair.
    """

    def __init__(
        self,
        dim: int = 256,
        pair_dim: int = 128,
        heads: int = 8,
        pair_heads: int = 4,
        head_dim: int = 32,
        *,
        dropout: float = 0.15,
        pair_dropout: float = 0.25,
        triangles: TriangleUpdates = "both",
    ):
        super().__init__()
        if triangles not in get_args(TriangleUpdates):
            choices = ", ".join(get_args(TriangleUpdates))
            raise InputError(f"triangles must be one of {choices}, not {triangles!r}")
        check_dropout(dropout)
        check_dropout(pair_dropout)
        self.dropout, self.pair_dropout = dropout, pair_dropout
        self.rows = RowAttention(dim, pair_dim, heads, head_dim)
        self.columns = ColumnAttention(dim, heads, head_dim)
        self.transition = build_transition(dim, 4 * dim)
        self.outer = OuterProduct(dim, pair_dim, head_dim)
        products = [
            TriangleProduct(pair_dim, pair_dim, incoming=incoming) for incoming in BOTH_DIRECTIONS
        ]
        third_edge = triangles != "axial"
        edges = [
            TriangleAttention(pair_dim, pair_heads, head_dim, ending=ending, third_edge=third_edge)
            for ending in BOTH_DIRECTIONS
        ]
        has_products = triangles in ("both", "product")
        self.products = nn.ModuleList(products if has_products else ())
        self.edges = nn.ModuleList(edges if triangles not in ("product", "none") else ())
        transition_dim = 4 * pair_dim
        if triangles == "axial":
            # of the products and of the two biases from the third edge
            spare_parameters = sum(map(parameter_count, products)) + 2 * pair_dim * pair_heads
            transition_dim += round(spare_parameters / (2 * pair_dim + 1))
        self.pair_transition = build_transition(pair_dim, transition_dim)

    def forward(
        self,
        m: Float[Tensor, "b s r c"],
        z: PairTensor,
        valid: Bool[Tensor, "b r"] | None = None,
        sequence_valid: Bool[Tensor, "b s"] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the new m and z; `valid` marks real residues, `sequence_valid` real sequences."""
        m = m + self.drop_shared(self.rows(m, z, valid), self.dropout, 1)
        m = m + self.columns(m, sequence_valid)
        m = m + self.transition(m)
        z = z + self.outer(m, sequence_valid)
        for product in self.products:
            z = z + self.drop_shared(product(z, valid), self.pair_dropout, 1)
        for axis, edges in enumerate(self.edges, 1):
            z = z + self.drop_shared(edges(z, valid), self.pair_dropout, axis)
        return m, z + self.pair_transition(z)

    def drop_shared(self, x: Tensor, rate: float, shared_axis: int) -> Tensor:
        """Apply dropout with one mask for all positions of an axis."""
        if not self.training or not rate:
            return x
        mask_shape = [1 if axis == shared_axis else n for axis, n in enumerate(x.shape)]
        return x * (torch.rand(mask_shape, device=x.device) >= rate).to(x) / (1 - rate)


def build_transition(dim: int, hidden_dim: int) -> nn.Sequential:
    return nn.Sequential(
        nn.LayerNorm(dim), Linear(dim, hidden_dim), nn.ReLU(), build_zero_linear(hidden_dim, dim)
    )


def build_open_gate(dim: int, out_dim: int) -> nn.Linear:
    layer = Linear(dim, out_dim)
    nn.init.zeros_(layer.weight)
    nn.init.ones_(layer.bias)
    return layer


def build_zero_linear(dim: int, out_dim: int) -> nn.Linear:
    """Build the last linear map of a residual branch, with weights and bias of 0."""
    layer = Linear(dim, out_dim)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def parameter_count(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())
