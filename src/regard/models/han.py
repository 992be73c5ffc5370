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

from regard.attention.validation import check_dropout
from regard.layers.cells import GRU
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.encoder_states import EncoderStates
from regard.layers.output_heads import build_pooling
from regard.layers.recurrent import Recurrent


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
        self.word_attention = build_pooling(pooling, width, hidden_dim=align_dim)
        self.sentence_recurrent = Recurrent(GRU, width, hidden_dim, bidirectional=True)
        self.sentence_attention = build_pooling(pooling, width, hidden_dim=align_dim)

    def encode(self, ids: Int[Tensor, "b s w"], valid: Bool[Tensor, "b s w"]) -> EncoderStates:
        """A state for each sentence and one vector for the document; words are padded on the right.

        A sentence without a word is not there, wherever it stands: its state is zero, nobody looks
        at it, and the sentences around it are neighbours.
        """
        has_words = valid.any(-1)
        sentences = self.sentences(ids[has_words], valid[has_words])
        # the n-th sentence that is there: in `there` with gaps, in `packed` without
        packed = torch.arange(has_words.shape[1], device=ids.device) < has_words.sum(
            1, keepdim=True
        )
        states, _ = self.sentence_recurrent(scatter_rows(sentences, packed), packed)
        states = scatter_rows(states[packed], has_words)
        return EncoderStates(states, has_words, self.sentence_attention(states, has_words))

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


def scatter_rows(
    rows: Float[Tensor, "n *d"], has_words: Bool[Tensor, "b s"]
) -> Float[Tensor, "b s *d"]:
    """Rows of those sentences that are there, each in its place; zeros where none is.

    So the weights that `observe` saw of words, [n 1 w], become [b s 1 w].
    """
    table = rows.new_zeros(*has_words.shape, *rows.shape[1:])
    return table.masked_scatter(has_words.view(*has_words.shape, *[1] * (rows.ndim - 1)), rows)
