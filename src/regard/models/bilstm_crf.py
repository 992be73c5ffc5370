"""Huang, Xu, Yu 2015, "Bidirectional LSTM-CRF models for sequence tagging" (1508.01991), with the
character CNN of Ma & Hovy 2016 (1603.01354).

    x_t  = [E w_t; max over positions of convolutions of the characters of w_t]
    h_t  = [forward LSTM; backward LSTM] over x
    p(y | x) by a conditional random field over W h_t + b: the task's head, `layers.crf`

b: batch   t: words   c: characters of a word
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from regard.attention.validation import check_dropout
from regard.layers.cells import LSTM
from regard.layers.character_cnn import CharacterCNN
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.encoder_states import EncoderStates
from regard.layers.recurrent import Recurrent


class BilstmCrf(nn.Module):
    """The encoder of the equations above; the task adds the CRF.

    Widths: `dim` of word vectors, `character_output_dim` of the character CNN, `hidden_dim` of each
    direction. The defaults are those of Ma & Hovy: character vectors of 30, thirty convolutions of
    width three, 200 cells. Dropout of 0.5 acts on inputs and outputs of the LSTM.
    """

    pooled_width = None

    def __init__(
        self,
        size: int,
        *,
        dim: int = 100,
        hidden_dim: int = 200,
        layers: int = 1,
        characters: int = 262,
        character_dim: int = 30,
        filters: Sequence[tuple[int, int]] = ((3, 30),),
        character_output_dim: int = 30,
        dropout: float = 0.5,
    ):
        super().__init__()
        check_dropout(dropout)
        self.dropout = dropout
        self.words = Embedding(size, dim)
        self.letters = CharacterCNN(
            characters,
            character_output_dim,
            filters=filters,
            character_dim=character_dim,
            highway_layers=0,
        )
        input_dim, layer_dropout = dim + character_output_dim, dropout if layers > 1 else 0.0
        self.recurrent = Recurrent(LSTM, input_dim, hidden_dim, layers, True, dropout=layer_dropout)
        self.width = self.recurrent.output_dim

    def encode(
        self,
        ids: Int[Tensor, "b t"],
        characters: Int[Tensor, "b t c"],
        valid: Bool[Tensor, "b t"],
    ) -> EncoderStates:
        letters = self.letters.embed_words(characters, valid)
        states, _ = self.recurrent(self.drop(torch.cat([self.words(ids), letters], -1)), valid)
        return EncoderStates(self.drop(states), valid)

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
