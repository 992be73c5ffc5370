"""Models of proteins: an encoder with a head for each residue, or for each pair of residues.

b: proteins   r: residues   k: states, or bins of distances
"""

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor

from regard.data.formats.proteins import ALPHABET, UNKNOWN_RESIDUE
from regard.layers.output_heads import ClassifierHead, DistogramHead
from regard.models.msa import Msa
from regard.models.protocols import AnyEncoder
from regard.tasks.encoding import EncoderModel

RESIDUE_IDS = {letter: number for number, letter in enumerate(ALPHABET, 1)}  # 0 is padding
RESIDUE_ID_COUNT = len(ALPHABET) + 1
MAX_PAIRS_PER_BATCH = 2**17  # pairs of residues in a batch of prediction or evaluation


class ResidueClassifier(EncoderModel[AnyEncoder]):
    """An encoder with a head for each residue."""

    def __init__(
        self,
        encoder: AnyEncoder,
        states: int,
        *,
        hidden_dim: int | None = None,
        dropout: float = 0.0,
    ):
        super().__init__(encoder)
        self.head = ClassifierHead(encoder.width, states, hidden_dim=hidden_dim, dropout=dropout)

    def forward(self, inputs: Mapping[str, Tensor]) -> Float[Tensor, "b r k"]:
        return self.head(self.encoder.encode(**inputs).states)


class PairClassifier(EncoderModel[Msa]):
    """An encoder of pairs with a head for each of them."""

    def __init__(self, encoder: Msa, bins: int, *, dropout: float = 0.0):
        super().__init__(encoder)
        self.head = DistogramHead(encoder.pair_width, bins, dropout=dropout)

    def forward(self, inputs: Mapping[str, Tensor]) -> Float[Tensor, "b r r k"]:
        return self.head(self.encoder.encode(**inputs).pairs)


def residue_ids(letters: str) -> list[int]:
    """Return the id of each residue; an unusual letter has the id of an unknown residue."""
    return [RESIDUE_IDS.get(letter, RESIDUE_IDS[UNKNOWN_RESIDUE]) for letter in letters]
