"""Masks: predicates on positions. True means "may attend". Padding is in `Memory.valid`."""

from collections.abc import Callable

from jaxtyping import Bool, Int
from torch import Tensor

from regard.attention.validation import check_positive

MaskRule = Callable[[Tensor, Tensor], Tensor]


class Mask:
    """mask(query positions [q 1], slot positions [1 k]) -> may attend [q k].

    Combine masks with `&`, `|` and `~`. `Mask(rule)` takes any function of positions.

    >>> import torch
    >>> even = Mask(lambda query, slot: slot % 2 == 0)
    >>> positions = torch.arange(3)
    >>> (causal & even)(positions[:, None], positions[None, :])
    tensor([[ True, False, False],
            [ True, False, False],
            [ True, False,  True]])
    """

    def __init__(self, rule: MaskRule):
        self.rule = rule

    def __call__(
        self, query: Int[Tensor, "q 1"], slot: Int[Tensor, "1 k"]
    ) -> Bool[Tensor, "*b #q #k"]:
        return self.rule(query, slot)

    def __and__(self, other: "Mask") -> "Mask":
        return Mask(lambda query, slot: self(query, slot) & other(query, slot))

    def __or__(self, other: "Mask") -> "Mask":
        return Mask(lambda query, slot: self(query, slot) | other(query, slot))

    def __invert__(self) -> "Mask":
        return Mask(lambda query, slot: ~self(query, slot))


causal = Mask(lambda query, slot: slot <= query)  # the position itself and all before it
strictly_causal = Mask(lambda query, slot: slot < query)  # only positions before it


def local(radius: int) -> Mask:
    """|slot - t| <= D  (Luong et al. 2015, sec. 3.2, "local-m": a window around the step t).

    >>> import torch
    >>> local(1)(torch.tensor([[2]]), torch.arange(5)[None])
    tensor([[False,  True,  True,  True, False]])
    """
    check_positive("radius", radius)
    return Mask(lambda query, slot: (slot - query).abs() <= radius)


def padding(lengths: Int[Tensor, " *b"]) -> Mask:
    """slot < length of the row: the function of `valid`, as a mask that can be combined.

    >>> import torch
    >>> padding(torch.tensor([2]))(torch.tensor([[0]]), torch.arange(3)[None])
    tensor([[[ True,  True, False]]])
    """
    return Mask(lambda _, slot: slot < lengths[..., None, None])
