"""ELMo: Peters et al. 2018, "Deep contextualized word representations" (1802.05365).

    x_k      = character CNN of word k                                   two highways, a projection
    forward  = LSTM layers from first to last word, backward = others from last to first        3.1
               h' = P (o tanh c'), both clipped; from the second layer on, each adds its input
    p(w_{k+1} | … w_k) = softmax(V forward_k + b),  p(w_{k-1} | w_k …) = softmax(V backward_k + b)
    h_{k,0}  = [x_k; x_k],  h_{k,j} = [forward_{k,j}; backward_{k,j}]
    ELMo_k   = gamma sum_j softmax(s)_j h_{k,j}                                              eq. 1

The two directions share only the character CNN and the softmax. A sentence begins and ends with a
special token, so that both directions predict all of its words.
# differs: the full softmax is computed (the paper samples). Every sentence starts from zeros (the
# released model continues from the last batch). The norm before the mix is per position.
b: batch   t: words and two special tokens   c: characters of a word   v: size   d: dim
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.validation import check_dropout, check_positive
from regard.errors import InputError
from regard.kernels.linear import Linear
from regard.layers.cells import LSTM
from regard.layers.character_cnn import CharacterCNN
from regard.layers.dropout import dropout
from regard.layers.encoder_states import EncoderStates
from regard.layers.recurrent import Recurrent, reversed_indices
from regard.layers.scalar_mix import ScalarMix

# (width, count) of the released model: 2048 filters in total
FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


class ElmoOutput(NamedTuple):
    """Inputs of the softmax: `ahead[:, i]` predicts word i + 1, `back[:, i]` predicts word i."""

    ahead: Float[Tensor, "b u d"]
    back: Float[Tensor, "b u d"]


class Elmo(nn.Module):
    """The model of the equations above; the defaults have 93.6 million weights below the softmax.

    `size` is the number of predicted words (None: no softmax), `characters` the number of character
    ids (262 in `text.spelling`). `dim` is the output width of a layer in each direction,
    `hidden_dim` that of its cells. `state_clip` bounds cells and projections. `layer_norm`
    normalizes each layer before the mix. `dropout` acts on the inputs of LSTMs and softmax.
    """

    pooled_width = None

    def __init__(
        self,
        size: int | None = None,
        *,
        characters: int = 262,
        character_dim: int = 16,
        filters: Sequence[tuple[int, int]] = FILTERS,
        highway_layers: int = 2,
        dim: int = 512,
        hidden_dim: int = 4096,
        layers: int = 2,
        state_clip: float | None = 3.0,
        layer_norm: bool = False,
        dropout: float = 0.1,
    ):
        super().__init__()
        check_dropout(dropout)
        check_positive("layers", layers)
        if hidden_dim < dim:
            raise InputError(f"hidden_dim must be at least dim ({dim}), not {hidden_dim}")
        self.dropout, self.width = dropout, 2 * dim
        self.words = CharacterCNN(
            characters,
            dim,
            filters=filters,
            character_dim=character_dim,
            highway_layers=highway_layers,
        )
        cell = partial(
            LSTM, projection_dim=dim if dim < hidden_dim else None, state_clip=state_clip
        )
        self.ahead, self.back = (
            nn.ModuleList(Recurrent(cell, dim, hidden_dim) for _ in range(layers)) for _ in range(2)
        )
        self.output = None if size is None else Linear(dim, size)
        self.mix = ScalarMix(layers + 1, layer_norm)

    def teacher_forced(
        self, characters: Int[Tensor, "b t c"], valid: Bool[Tensor, "b t"]
    ) -> ElmoOutput:
        """Return the inputs of `output` for the language model loss, both with `valid[:, 1:]`.

        The targets of `ahead` are ids[:, 1:], those of `back` are ids[:, :-1].
        """
        _, ahead, back = self.read(characters, valid)
        return ElmoOutput(self.drop(ahead[-1][:, :-1]), self.drop(back[-1][:, 1:]))

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        if self.output is None:
            raise InputError("model has no softmax; build it with the size of the vocabulary")
        return self.output(states)

    def encode(self, characters: Int[Tensor, "b t c"], valid: Bool[Tensor, "b t"]) -> EncoderStates:
        """Return the mix for the words between the special tokens: two positions fewer."""
        return EncoderStates(self.mix(self.all_layers(characters, valid)), valid[:, 2:])

    def all_layers(
        self, characters: Int[Tensor, "b t c"], valid: Bool[Tensor, "b t"]
    ) -> Float[Tensor, "b l u wide"]:
        """Return h_{k,j} for the words between the special tokens, with j = 0 first."""
        words, ahead, back = self.read(characters, valid)
        pairs = zip([words, *ahead], [words, *back], strict=True)
        return torch.stack([torch.cat(pair, -1)[:, 1:-1] for pair in pairs], 1)

    def read(self, characters: Tensor, valid: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Return x, and the outputs of each layer in both directions, [b t d]; 0 at padding."""
        words = self.words.embed_words(characters, valid)
        order = reversed_indices(valid)[..., None].expand_as(words)
        ahead = self.run_layers(self.ahead, words, valid)
        back = self.run_layers(self.back, words.gather(1, order), valid)
        return words, ahead, [states.gather(1, order) for states in back]

    def run_layers(self, layers: Iterable[nn.Module], x: Tensor, valid: Tensor) -> list[Tensor]:
        outputs: list[Tensor] = []
        for layer in layers:
            x = self.drop(x)
            states, _ = layer(x, valid)
            x = states + x if outputs else states  # no residual around the first layer
            outputs.append(x)
        return outputs

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
