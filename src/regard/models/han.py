"""HAN: Yang et al. 2016, "Hierarchical attention networks for document classification" (NAACL),
section 2. A document is sentences of words.

    h_it    = [forward GRU; backward GRU] over E x_it           the words of sentence i     2.2
    alpha_i = softmax_t(u_w . tanh(W_w h_it + b_w))             which words matter          eq. 5, 6
    s_i     = sum_t alpha_it h_it                                                           eq. 7
    h_i     = [forward GRU; backward GRU] over s_i              the sentences
    alpha   = softmax_i(u_s . tanh(W_s h_i + b_s))              which sentences matter      eq. 8, 9
    v       = sum_i alpha_i h_i                                                             eq. 10

u_w and u_s are learned. pooling="mean" puts means in place of both attentions: the paper's HN-AVE.
b: documents   s: sentences   w: words   n: sentences that have a word   d: width, 2 hidden_dim
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attend.check import check_dropout
from regard.encode.cell import GRU
from regard.encode.dropout import dropout
from regard.encode.embed import Embedding
from regard.encode.head import make_pooling
from regard.encode.recurrent import Recurrent
from regard.encode.states import States


class Han(nn.Module):
    """`dim`: word vectors; `hidden_dim`: each GRU; `align_dim`: of u_w and u_s; as in the paper.

    `dropout`, on word vectors and sentence vectors, is not in the paper. `observe` knows the two
    attentions as "word_attention" and "sentence_attention".
    """

    def __init__(
        self,
        size: int,
        *,
        dim: int = 200,
        hidden_dim: int = 50,
        align_dim: int | None = None,
        pooling: Literal["attention", "mean"] = "attention",
        dropout: float = 0.0,
    ):
        super().__init__()
        check_dropout(dropout)
        if pooling not in ("attention", "mean"):
            raise ValueError(f"pooling must be 'attention' or 'mean', not {pooling!r}")
        self.dropout = dropout
        self.width = self.pooled_width = width = 2 * hidden_dim
        # differs: eq. 3 has one bias in h~, torch's GRU another one beside U h (it starts at 0)
        self.words = Embedding(size, dim)
        self.word_recurrent = Recurrent(GRU, dim, hidden_dim, bidirectional=True)
        self.word_attention = make_pooling(pooling, width, hidden_dim=align_dim)
        self.sentence_recurrent = Recurrent(GRU, width, hidden_dim, bidirectional=True)
        self.sentence_attention = make_pooling(pooling, width, hidden_dim=align_dim)

    def encode(self, ids: Int[Tensor, "b s w"], valid: Bool[Tensor, "b s w"]) -> States:
        """A state for each sentence and one vector for the document; words are padded on the right.

        A sentence without a word is not there, wherever it stands: its state is zero, nobody looks
        at it, and the sentences around it are neighbours.
        """
        there = valid.any(-1)
        sentences = self.sentences(ids[there], valid[there])
        # the n-th sentence that is there: in `there` with gaps, in `packed` without
        packed = torch.arange(there.shape[1], device=ids.device) < there.sum(1, keepdim=True)
        states, _ = self.sentence_recurrent(laid_out(sentences, packed), packed)
        states = laid_out(states[packed], there)
        return States(states, there, self.sentence_attention(states, there))

    def sentences(
        self, ids: Int[Tensor, "n w"], valid: Bool[Tensor, "n w"]
    ) -> Float[Tensor, "n d"]:
        """A vector for each sentence."""
        if not len(ids):
            return self.words.weight.new_zeros(0, self.width)
        states, _ = self.word_recurrent(self.drop(self.words(ids)), valid)
        return self.drop(self.word_attention(states, valid))

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


def laid_out(rows: Float[Tensor, "n *d"], there: Bool[Tensor, "b s"]) -> Float[Tensor, "b s *d"]:
    """Rows of those sentences that are there, each in its place; zeros where none is.

    So the weights that `observe` saw of words, [n 1 w], become [b s 1 w].
    """
    laid = rows.new_zeros(*there.shape, *rows.shape[1:])
    return laid.masked_scatter(there.view(*there.shape, *[1] * (rows.ndim - 1)), rows)
