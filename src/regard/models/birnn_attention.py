"""Liu & Lane 2016, "Attention-based recurrent neural network models for joint intent detection and
slot filling" (1609.01454), the aligned two-way model of section 3.2.

    h_i  = [forward LSTM; backward LSTM] over E x
    c_i  = sum_j a_ij h_j,  a_i = softmax_j(score(h_i, h_j))          what a word sees of the others
    slot_i from [h_i; c_i];  intent from sum_i b_i h_i,  b = softmax_i(u . tanh(W h_i + b))

`observe` knows the two attentions as "attention" and "pooling".
b: batch   t: positions   d: width of h
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from regard.attend.check import check_dropout
from regard.attend.make import make_attention
from regard.encode.cell import LSTM
from regard.encode.dropout import dropout
from regard.encode.embed import Embedding
from regard.encode.head import make_pooling
from regard.encode.recurrent import Recurrent
from regard.encode.states import States


class BiRnnAttention(nn.Module):
    """`dim`: word vectors; `hidden_dim`: each direction; in the paper 128 each, one layer.

    `dropout` acts on word vectors, between layers and on what is shown; `state_dropout` on h_{t-1}
    in products, one mask for a sequence.
    """

    def __init__(
        self,
        size: int,
        *,
        dim: int = 128,
        hidden_dim: int = 128,
        layers: int = 1,
        score: str = "additive",
        normalise: str = "softmax",
        dropout: float = 0.5,
        state_dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        self.dropout = dropout
        self.words = Embedding(size, dim)
        self.recurrent = Recurrent(
            LSTM,
            dim,
            hidden_dim,
            layers,
            True,
            dropout=dropout if layers > 1 else 0.0,
            state_dropout=state_dropout,
        )
        wide = self.recurrent.output_dim
        self.attention = make_attention(
            score, wide, wide, normalise=normalise, hidden_dim=hidden_dim
        )
        self.pooling = make_pooling("attention", wide, hidden_dim=hidden_dim)
        self.width, self.pooled_width = 2 * wide, wide

    def encode(self, ids: Int[Tensor, "b t"], valid: Bool[Tensor, "b t"]) -> States:
        """States are [h_i; c_i]; the vector of the whole is that of the intent."""
        states, _ = self.recurrent(self.drop(self.words(ids)), valid)
        states = self.drop(states)
        context = self.attention(states, self.attention.remember(states, valid))
        return States(torch.cat([states, context], -1), valid, self.pooling(states, valid))

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
