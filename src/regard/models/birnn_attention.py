"""Liu & Lane 2016, "Attention-based recurrent neural network models for joint intent detection and
slot filling" (1609.01454), the aligned bidirectional model of section 3.2.

    h_i  = [forward LSTM; backward LSTM] over E x
    c_i  = sum_j a_ij h_j,  a_i = softmax_j(score(h_i, h_j))          attention to all words
    slot_i from [h_i; c_i];  intent from sum_i b_i h_i,  b = softmax_i(u . tanh(W h_i + b))

`observe` records the two attentions as "attention" and "pooling".
b: batch   t: positions   d: width of h
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from regard.attention.build import build_attention
from regard.attention.validation import check_dropout
from regard.layers.cells import LSTM
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.encoder_states import EncoderStates
from regard.layers.output_heads import build_pooling
from regard.layers.recurrent import Recurrent


class BiRnnAttention(nn.Module):
    """The encoder of the equations above; the task adds the classifiers of slots and intent.

    Widths: `dim` of word vectors, `hidden_dim` of each direction; in the paper 128 each, one layer.
    `dropout` acts on word vectors, between layers and on h_i. `state_dropout` acts on h_{t-1} in
    products, with one mask for a sequence.
    """

    def __init__(
        self,
        size: int,
        *,
        dim: int = 128,
        hidden_dim: int = 128,
        layers: int = 1,
        score: str = "additive",
        normalize: str = "softmax",
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
        state_dim = self.recurrent.output_dim
        self.attention = build_attention(
            score, state_dim, state_dim, normalize=normalize, hidden_dim=hidden_dim
        )
        self.pooling = build_pooling("attention", state_dim, hidden_dim=hidden_dim)
        self.width, self.pooled_width = 2 * state_dim, state_dim

    def encode(self, ids: Int[Tensor, "b t"], valid: Bool[Tensor, "b t"]) -> EncoderStates:
        """Encode texts: states are [h_i; c_i], and the pooled vector is for the intent."""
        states, _ = self.recurrent(self.drop(self.words(ids)), valid)
        states = self.drop(states)
        context = self.attention(states, self.attention.remember(states, valid))
        return EncoderStates(torch.cat([states, context], -1), valid, self.pooling(states, valid))

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
