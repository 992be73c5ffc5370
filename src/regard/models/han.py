"""HAN: Yang et al. 2016, "Hierarchical attention networks for document classification" (NAACL),
section 2. A document is a list of sentences.

    h_it    = [forward GRU; backward GRU] over E x_it           the words of sentence i     2.2
    alpha_i = softmax_t(u_w . tanh(W_w h_it + b_w))             which words matter          eq. 5, 6
    s_i     = sum_t alpha_it h_it                                                           eq. 7
    h_i     = [forward GRU; backward GRU] over s_i              the sentences
    alpha   = softmax_i(u_s . tanh(W_s h_i + b_s))              which sentences matter      eq. 8, 9
    v       = sum_i alpha_i h_i                                                             eq. 10

u_w and u_s are learned. pooling="mean" replaces both attentions by means: the paper's HN-AVE.
b: documents   s: sentences   w: words   n: sentences with a word   d: width, 2 hidden_dim
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.validation import check_dropout
from regard.errors import InputError
from regard.layers.cells import GRU
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.encoder_states import EncoderStates
from regard.layers.output_heads import build_pooling
from regard.layers.recurrent import Recurrent


class Han(nn.Module):
    """The encoder of the equations above, with the sizes of the paper.

    Widths: `dim` of word vectors, `hidden_dim` of each GRU, `align_dim` of u_w and u_s. `dropout`
    acts on word and sentence vectors; it is not in the paper. `observe` records the two attentions
    as "word_attention" and "sentence_attention".
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
            raise InputError(f"pooling must be 'attention' or 'mean', not {pooling!r}")
        self.dropout = dropout
        self.width = self.pooled_width = width = 2 * hidden_dim
        # differs: eq. 3 has one bias in h~; torch's GRU has a second one at U h (it starts at 0)
        self.words = Embedding(size, dim)
        self.word_recurrent = Recurrent(GRU, dim, hidden_dim, bidirectional=True)
        self.word_attention = build_pooling(pooling, width, hidden_dim=align_dim)
        self.sentence_recurrent = Recurrent(GRU, width, hidden_dim, bidirectional=True)
        self.sentence_attention = build_pooling(pooling, width, hidden_dim=align_dim)

    def encode(self, ids: Int[Tensor, "b s w"], valid: Bool[Tensor, "b s w"]) -> EncoderStates:
        """Return a state for each sentence and a vector for the document.

        Words are padded on the right. A sentence without a word can be anywhere. It is skipped: its
        state is zero, its weight is zero, and its neighbors follow each other.
        """
        has_words = valid.any(-1)
        sentences = self.sentences(ids[has_words], valid[has_words])
        # the positions of sentences: with gaps in `has_words`, without gaps in `packed`
        packed = torch.arange(has_words.shape[1], device=ids.device) < has_words.sum(
            1, keepdim=True
        )
        states, _ = self.sentence_recurrent(scatter_rows(sentences, packed), packed)
        states = scatter_rows(states[packed], has_words)
        return EncoderStates(states, has_words, self.sentence_attention(states, has_words))

    def sentences(
        self, ids: Int[Tensor, "n w"], valid: Bool[Tensor, "n w"]
    ) -> Float[Tensor, "n d"]:
        """Return a vector for each sentence."""
        if not len(ids):
            return self.words.weight.new_zeros(0, self.width)
        states, _ = self.word_recurrent(self.drop(self.words(ids)), valid)
        return self.drop(self.word_attention(states, valid))

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


def scatter_rows(
    rows: Float[Tensor, "n *d"], has_words: Bool[Tensor, "b s"]
) -> Float[Tensor, "b s *d"]:
    """Put the rows of sentences with words at their positions; zeros elsewhere.

    It also converts recorded weights of words from [n 1 w] to [b s 1 w].
    """
    table = rows.new_zeros(*has_words.shape, *rows.shape[1:])
    return table.masked_scatter(has_words.view(*has_words.shape, *[1] * (rows.ndim - 1)), rows)
