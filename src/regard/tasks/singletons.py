"""Words that training has seen once: they teach the vector of unknown words.

A vocabulary of all training words leaves the vector of <unk> untrained, yet dev and test have many
unknown words. In training, a word that occurs once becomes unknown with a probability, as in Lample
et al. 2016, sec. 4.2. Characters of the word stay as they are.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.text.special import SPECIALS, UNKNOWN

ID_INPUTS = ("ids", "question_ids")  # the inputs of encoders that are ids of words


class Singletons(NamedTuple):
    """Which ids occur once in the training data, and the probability that they become unknown."""

    mask: Bool[Tensor, " v"]
    rate: float

    def hide(self, inputs: dict[str, Tensor]) -> None:
        """Replace words of new inputs in place, by torch's global generator."""
        for name in ID_INPUTS:
            if name in inputs:
                ids = inputs[name]
                hidden = self.mask[ids] & (torch.rand(ids.shape) < self.rate)
                inputs[name] = ids.masked_fill(hidden, UNKNOWN)


def find_singletons(
    inputs: Iterable[Mapping[str, Tensor]], size: int, rate: float
) -> Singletons | None:
    """Return the ids below `size` that occur once in all inputs, or None if there are none."""
    counts = torch.zeros(size, dtype=torch.int64)
    for tensors in inputs:
        for name in ID_INPUTS:
            if name in tensors:
                counts += torch.bincount(tensors[name].flatten().cpu(), minlength=size)[:size]
    counts[: len(SPECIALS)] = 0
    mask = counts == 1
    return Singletons(mask, rate) if bool(mask.any()) else None
