"""ELMo: Peters et al. 2018, "Deep contextualized word representations" (1802.05365).

    x_k      = character CNN of word k                                   two highways, a projection
    forward  = LSTM layers from the first word on, backward = others from the last word back    3.1
               h' = P (o tanh c'), both clipped; from the second layer on, each adds its input
    p(w_{k+1} | … w_k) = softmax(V forward_k + b),  p(w_{k-1} | w_k …) = softmax(V backward_k + b)
    h_{k,0}  = [x_k; x_k],  h_{k,j} = [forward_{k,j}; backward_{k,j}]
    ELMo_k   = gamma sum_j softmax(s)_j h_{k,j}                                              eq. 1

The two directions share the character CNN and the softmax, and nothing else. A sentence comes with
the words that begin and end it, so that its first word is predicted too, and from both sides.
# differs: the whole softmax is computed (the paper samples); every sentence starts from zeros (the
# released model goes on from the batch before); the norm before the mix is of each position alone.
b: batch   t: words and two marks   c: characters of a word   v: size   d: dim
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.validation import check_dropout, check_positive
from regard.layers.cells import LSTM
from regard.layers.character_cnn import CharacterCNN
from regard.layers.dropout import dropout
from regard.layers.encoder_states import EncoderStates
from regard.layers.recurrent import Recurrent, reversed_indices
from regard.layers.scalar_mix import ScalarMix

# (width, how many) of the released model: 2048 in all
FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


class ElmoOutput(NamedTuple):
    """What the softmax sees: `ahead[:, i]` tells word i + 1, `back[:, i]` tells word i."""

    ahead: Float[Tensor, "b u d"]
    back: Float[Tensor, "b u d"]


class Elmo(nn.Module):
    """By default the paper's: 93.6 million weights below the softmax.

    `size` words can be predicted (None: it is not asked to), `characters` letters are known
    (`text.spelling` has 262). `dim` is what a layer shows in each direction, `hidden_dim` its
    cells. `clip` holds cells and projections; `norm` normalises each layer before the mix.
    `dropout` acts on what enters an LSTM and the softmax.
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
            raise ValueError(f"hidden_dim must be at least dim ({dim}), not {hidden_dim}")
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
        self.output = None if size is None else nn.Linear(dim, size)
        self.mix = ScalarMix(layers + 1, layer_norm)

    def teacher_forced(
        self, characters: Int[Tensor, "b t c"], valid: Bool[Tensor, "b t"]
    ) -> ElmoOutput:
        """For the loss of the language model, both with `valid[:, 1:]` and the weights `output`:

        `ahead` is to tell ids[:, 1:], `back` is to tell ids[:, :-1].
        """
        _, ahead, back = self.read(characters, valid)
        return ElmoOutput(self.drop(ahead[-1][:, :-1]), self.drop(back[-1][:, 1:]))

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        if self.output is None:
            raise ValueError("this model has no softmax: make it with the size of its vocabulary")
        return self.output(states)

    def encode(self, characters: Int[Tensor, "b t c"], valid: Bool[Tensor, "b t"]) -> EncoderStates:
        """The mix, for the words between the two marks: two positions fewer than came in."""
        return EncoderStates(self.mix(self.all_layers(characters, valid)), valid[:, 2:])

    def all_layers(
        self, characters: Int[Tensor, "b t c"], valid: Bool[Tensor, "b t"]
    ) -> Float[Tensor, "b l u wide"]:
        """h_{k,j} for the words between the two marks, the letters' layer first."""
        words, ahead, back = self.read(characters, valid)
        pairs = zip([words, *ahead], [words, *back], strict=True)
        return torch.stack([torch.cat(pair, -1)[:, 1:-1] for pair in pairs], 1)

    def read(self, characters: Tensor, valid: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """x, and what each layer shows in either direction, [b t d] each; 0 at padding."""
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
            x = states + x if outputs else states  # the letters' layer is not added
            outputs.append(x)
        return outputs

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
