"""Sequences of an alignment and pairs of residues, side by side: the trunk of AlphaFold 2.

Jumper et al. 2021, "Highly accurate protein structure prediction with AlphaFold", supplement 1.6.

    m_si = E x_si + F x_1i                                            algorithm 3
    z_ij = A x_1i + B x_1j + R clip(i - j, -k, k) (+ W f_ij)          algorithms 3, 4 and 5
    m, z = blocks of: rows of m look, biased by z; columns of m look; z += outer product of m;
           triangles of z multiply and look (encode/evoformer.py)     algorithm 6
    states = LN(W m_1),   pairs = LN(z)

x_s are letters of the aligned sequences, the first of which is the one that is asked about; f_ij is
what is known of a pair before, such as a distance (there it comes from templates, algorithm 2).

# differs: no extra alignment, no templates, no recycling, no structure module; what leaves is
# normed, because heads are put on it that expect it; letters alone are read, without profiles.
b: alignments   s: sequences   r: residues   d: dim   p: pair_dim   f: features
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attend.check import check_positive, check_valid
from regard.encode.embed import Embedding
from regard.encode.evoformer import Evoformer, Triangles
from regard.encode.states import PairStates


class Msa(nn.Module):
    """`relative` is how far apart residues still differ in place: k; 0: their order is not seen.

    `features` are told of each pair from outside. `head_dim` is that of every attention, and of the
    outer product. `observe` knows rows, columns and edges of each of the `blocks`.
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
        relative: int = 32,
        triangles: Triangles = "both",
        dropout: float = 0.15,
        pair_dropout: float = 0.25,
    ):
        super().__init__()
        check_positive("layers", layers)
        if relative < 0:
            raise ValueError(f"relative must be 0 or more, not {relative}")
        self.width, self.pooled_width, self.pair_width = dim, None, pair_dim
        self.relative, self.features = relative, features
        self.letters, self.asked = Embedding(size, dim), Embedding(size, dim)
        self.left, self.right = Embedding(size, pair_dim), Embedding(size, pair_dim)
        self.apart = Embedding(2 * relative + 1, pair_dim) if relative else None
        self.told = nn.Linear(features, pair_dim) if features else None
        self.blocks = nn.ModuleList(
            Evoformer(
                *(dim, pair_dim, heads, pair_heads, head_dim),
                dropout=dropout,
                pair_dropout=pair_dropout,
                triangles=triangles,
            )
            for _ in range(layers)
        )
        self.single = nn.Linear(dim, dim)
        self.norm, self.pair_norm = nn.LayerNorm(dim), nn.LayerNorm(pair_dim)

    def encode(
        self,
        ids: Int[Tensor, "b s r"],
        valid: Bool[Tensor, "b r"],
        real: Bool[Tensor, "b s"] | None = None,
        told: Float[Tensor, "b r r f"] | None = None,
    ) -> PairStates:
        """States of the residues of the first sequence, and of all pairs of them.

        `real` are sequences that there are, `valid` residues; padding is on the right of both.
        """
        check_valid(valid, ids[:, 0].shape)
        if (told is None) != (self.told is None):
            wanted = f"{self.features} features of each pair" if self.features else "no features"
            raise ValueError(f"this model takes {wanted}: make told fit")
        m, z = self.embed(ids, told)
        for block in self.blocks:
            m, z = block(m, z, valid, real)
        return PairStates(self.norm(self.single(m[:, 0])), valid, self.pair_norm(z))

    def embed(self, ids: Tensor, told: Tensor | None) -> tuple[Tensor, Tensor]:
        """What the first block reads."""
        first = ids[:, 0]
        m = self.letters(ids) + self.asked(first)[:, None]
        z = self.left(first)[:, :, None] + self.right(first)[:, None]
        if self.apart is not None:
            places = torch.arange(ids.shape[2], device=ids.device)
            apart = (places[:, None] - places).clamp(-self.relative, self.relative)
            z = z + self.apart(apart + self.relative)
        return m, z if told is None or self.told is None else z + self.told(told)
