"""The bidirectional recurrent encoder: Graves & Schmidhuber 2005, "Framewise phoneme classification
with bidirectional LSTM and other neural network architectures", with the self-attentive sentence
vector of Lin et al. 2017, "A structured self-attentive sentence embedding" (1703.03130).

    h_t  = [forward cell; backward cell] over E x, in stacked layers
    a_r  = softmax_t(u_r . tanh(W h_t + b))                      Lin et al., eq. 5 and 6
    v    = [sum_t a_1t h_t; … ; sum_t a_rt h_t]                  one part for each of `hops`, eq. 7

Other poolings: the mean or the maximum of h_t, or the last state of each direction.
b: batch   t: positions   d: width   p: pooled_width
"""

from typing import Literal, get_args

from jaxtyping import Bool, Int
from torch import Tensor, nn

from regard.attention.validation import check_dropout, check_positive
from regard.errors import InputError
from regard.layers.cells import GRU, LSTM, Cell, Elman
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.encoder_states import EncoderStates
from regard.layers.output_heads import build_pooling
from regard.layers.recurrent import Recurrent

CELLS: dict[str, type[Cell]] = {"lstm": LSTM, "gru": GRU, "elman": Elman}
PoolingKind = Literal["last", "mean", "max", "attention"]


class BiRnn(nn.Module):
    """Recurrent layers and a pooling.

    Widths: `dim` of word vectors, `hidden_dim` of each direction, `align_dim` of W h_t. `dropout`
    acts on word vectors, between layers and on states. `state_dropout` acts on h_{t-1} in products,
    with one mask for a sequence. `observe` records the attention as "pooling".
    """

    def __init__(
        self,
        size: int,
        *,
        cell: Literal["lstm", "gru", "elman"] = "lstm",
        dim: int = 128,
        hidden_dim: int = 128,
        layers: int = 1,
        bidirectional: bool = True,
        pooling: PoolingKind = "attention",
        align_dim: int | None = None,
        hops: int = 1,
        dropout: float = 0.0,
        state_dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        check_positive("hops", hops)
        if cell not in CELLS:
            raise InputError(f"cell must be one of {', '.join(CELLS)}, not {cell!r}")
        if pooling not in get_args(PoolingKind):
            poolings = ", ".join(get_args(PoolingKind))
            raise InputError(f"pooling must be one of {poolings}, not {pooling!r}")
        if hops > 1 and pooling != "attention":
            raise InputError(f"hops {hops} needs pooling='attention', not {pooling!r}")
        self.dropout = dropout
        self.words = Embedding(size, dim)
        self.recurrent = Recurrent(
            CELLS[cell],
            dim,
            hidden_dim,
            layers,
            bidirectional,
            dropout=dropout if layers > 1 else 0.0,
            state_dropout=state_dropout,
        )
        self.width = self.recurrent.output_dim
        # differs: Lin et al. have no bias b; `Salience` has the one of Yang et al. 2016
        self.pooling = build_pooling(
            pooling,
            self.width,
            backward_dim=hidden_dim if bidirectional else 0,
            hidden_dim=align_dim,
            queries=hops,
        )
        self.pooled_width = self.width * hops

    def encode(self, ids: Int[Tensor, "b t"], valid: Bool[Tensor, "b t"]) -> EncoderStates:
        """Encode texts with padding on the right. A text without a word gives only zeros."""
        states, _ = self.recurrent(self.drop(self.words(ids)), valid)
        states = self.drop(states)
        return EncoderStates(states, valid, self.pooling(states, valid))

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
