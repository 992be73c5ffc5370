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

from regard.attend.check import check_dropout, check_positive
from regard.encode.cell import LSTM
from regard.encode.character import CharacterCNN
from regard.encode.dropout import dropout
from regard.encode.mix import Mix
from regard.encode.recurrent import Recurrent, turned
from regard.encode.states import States

# (width, how many) of the released model: 2048 in all
FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


class Forced(NamedTuple):
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
        highways: int = 2,
        dim: int = 512,
        hidden_dim: int = 4096,
        layers: int = 2,
        clip: float | None = 3.0,
        norm: bool = False,
        dropout: float = 0.1,
    ):
        super().__init__()
        check_dropout(dropout)
        check_positive("layers", layers)
        if hidden_dim < dim:
            raise ValueError(f"hidden_dim must be at least dim ({dim}), not {hidden_dim}")
        self.dropout, self.width = dropout, 2 * dim
        self.words = CharacterCNN(
            characters, dim, filters=filters, character_dim=character_dim, highways=highways
        )
        cell = partial(LSTM, projection_dim=dim if dim < hidden_dim else None, clip=clip)
        self.ahead, self.back = (
            nn.ModuleList(Recurrent(cell, dim, hidden_dim) for _ in range(layers)) for _ in range(2)
        )
        self.output = None if size is None else nn.Linear(dim, size)
        self.mix = Mix(layers + 1, norm)

    def forced(self, characters: Int[Tensor, "b t c"], valid: Bool[Tensor, "b t"]) -> Forced:
        """For the loss of the language model, both with `valid[:, 1:]` and the weights `output`:

        `ahead` is to tell ids[:, 1:], `back` is to tell ids[:, :-1].
        """
        _, ahead, back = self.read(characters, valid)
        return Forced(self.drop(ahead[-1][:, :-1]), self.drop(back[-1][:, 1:]))

    def logits(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        if self.output is None:
            raise ValueError("this model has no softmax: make it with the size of its vocabulary")
        return self.output(states)

    def encode(self, characters: Int[Tensor, "b t c"], valid: Bool[Tensor, "b t"]) -> States:
        """The mix, for the words between the two marks: two positions fewer than came in."""
        return States(self.mix(self.all_layers(characters, valid)), valid[:, 2:])

    def all_layers(
        self, characters: Int[Tensor, "b t c"], valid: Bool[Tensor, "b t"]
    ) -> Float[Tensor, "b l u wide"]:
        """h_{k,j} for the words between the two marks, the letters' layer first."""
        words, ahead, back = self.read(characters, valid)
        pairs = zip([words, *ahead], [words, *back], strict=True)
        return torch.stack([torch.cat(pair, -1)[:, 1:-1] for pair in pairs], 1)

    def read(self, characters: Tensor, valid: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """x, and what each layer shows in either direction, [b t d] each; 0 at padding."""
        words = self.words.placed(characters, valid)
        order = turned(valid)[..., None].expand_as(words)
        ahead = self.climb(self.ahead, words, valid)
        back = self.climb(self.back, words.gather(1, order), valid)
        return words, ahead, [states.gather(1, order) for states in back]

    def climb(self, layers: Iterable[nn.Module], x: Tensor, valid: Tensor) -> list[Tensor]:
        shown: list[Tensor] = []
        for layer in layers:
            x = self.drop(x)
            states, _ = layer(x, valid)
            x = states + x if shown else states  # the letters' layer is not added
            shown.append(x)
        return shown

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
