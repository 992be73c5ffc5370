"""The trunk of AlphaFold 2: states of the aligned sequences and of pairs of residues.

Jumper et al. 2021, "Highly accurate protein structure prediction with AlphaFold", supplement 1.6.

    m_si = E x_si + F x_1i                                            algorithm 3
    z_ij = A x_1i + B x_1j + R clip(i - j, -k, k) (+ W f_ij)          algorithms 3, 4 and 5
    m, z = blocks of: row attention of m, biased by z; column attention of m; z += outer product
           of m; triangle products and attention of z (layers/evoformer.py)     algorithm 6
    states = LN(W m_1),   pairs = LN(z)

x_s are the letters of the aligned sequences; the first is the sequence to fold. f_ij are given
features of a pair, such as a distance (in the paper from templates, algorithm 2).

# differs: no extra alignment, no templates, no recycling, no structure module. The outputs are
# normalized, as the heads of the tasks expect. The inputs are letters only, without profiles.
b: alignments   s: sequences   r: residues   d: dim   p: pair_dim   f: features
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.validation import check_positive, check_valid
from regard.errors import InputError
from regard.kernels.linear import Linear
from regard.layers.block_stack import BlockStack
from regard.layers.embedding import Embedding
from regard.layers.encoder_states import PairStates
from regard.layers.evoformer import EvoformerBlock, TriangleUpdates


class Msa(BlockStack):
    """Embeddings and Evoformer blocks.

    `max_relative_position` is k; with 0, the order of residues is unknown. `features` is the number
    of given features of a pair. `head_dim` is the width of each head and of the outer product.
    `observe` records rows, columns and edges of each of the `blocks`.
    """

    def __init__(
        self,
        size: int,
        features: int = 0,
        *,
        dim: int = 64,
        pair_dim: int = 32,
        heads: int = 4,
        pair_heads: int = 4,
        head_dim: int = 16,
        layers: int = 4,
        max_relative_position: int = 32,
        triangles: TriangleUpdates = "both",
        dropout: float = 0.15,
        pair_dropout: float = 0.25,
    ):
        super().__init__()
        check_positive("layers", layers)
        if max_relative_position < 0:
            raise InputError(
                f"max_relative_position must be 0 or more, not {max_relative_position}"
            )
        self.width, self.pooled_width, self.pair_width = dim, None, pair_dim
        self.max_relative_position, self.features = max_relative_position, features
        self.letters, self.query_letters = Embedding(size, dim), Embedding(size, dim)
        self.left, self.right = Embedding(size, pair_dim), Embedding(size, pair_dim)
        self.relative_position = (
            Embedding(2 * max_relative_position + 1, pair_dim) if max_relative_position else None
        )
        self.feature_projection = Linear(features, pair_dim) if features else None
        self.blocks = nn.ModuleList(
            EvoformerBlock(
                *(dim, pair_dim, heads, pair_heads, head_dim),
                dropout=dropout,
                pair_dropout=pair_dropout,
                triangles=triangles,
            )
            for _ in range(layers)
        )
        self.single = Linear(dim, dim)
        self.norm, self.pair_norm = nn.LayerNorm(dim), nn.LayerNorm(pair_dim)

    def encode(
        self,
        ids: Int[Tensor, "b s r"],
        valid: Bool[Tensor, "b r"],
        sequence_valid: Bool[Tensor, "b s"] | None = None,
        pair_features: Float[Tensor, "b r r f"] | None = None,
    ) -> PairStates:
        """Return states of the residues of the first sequence, and of all their pairs.

        `valid` marks real residues, `sequence_valid` real sequences; padding of both is on the
        right.
        """
        check_valid(valid, ids[:, 0].shape)
        if (pair_features is None) != (self.feature_projection is None):
            expected = f"{self.features} features per pair" if self.features else "None"
            raise InputError(f"pair_features must be {expected} for this model")
        m, z = self.embed(ids, pair_features)
        for block in self.blocks:
            m, z = self.block_function(block)(m, z, valid, sequence_valid)
        return PairStates(self.norm(self.single(m[:, 0])), valid, self.pair_norm(z))

    def embed(self, ids: Tensor, pair_features: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return m and z for the first block."""
        first = ids[:, 0]
        m = self.letters(ids) + self.query_letters(first)[:, None]
        z = self.left(first)[:, :, None] + self.right(first)[:, None]
        if self.relative_position is not None:
            positions = torch.arange(ids.shape[2], device=ids.device)
            offsets = (positions[:, None] - positions).clamp(
                -self.max_relative_position, self.max_relative_position
            )
            z = z + self.relative_position(offsets + self.max_relative_position)
        return (
            m,
            z
            if pair_features is None or self.feature_projection is None
            else z + self.feature_projection(pair_features),
        )
