"""The attention core: scores, normalizers, masks, windows, memory, multi-head, edits.

    energy  = score(query, memory.keys)       scores, masks
    weights = normalize(energy)               normalizers, windows
    context = weights @ memory.values         memory

>>> import torch
>>> from regard.attention import Attention, General, sparsemax
>>> attention = Attention(General(query_dim=4, memory_dim=6), normalize=sparsemax)
>>> memory = attention.remember(torch.randn(1, 3, 6))
>>> attention(torch.randn(1, 2, 4), memory).shape
torch.Size([1, 2, 6])

Names are imported when they are first used.
"""

TYPE_CHECKING = False  # the name that type checkers know; importing typing would cost time

if TYPE_CHECKING:
    from regard.attention.core import Attention
    from regard.attention.masks import Mask, causal, local, padding, strictly_causal
    from regard.attention.memory import Memory
    from regard.attention.multihead import MultiHead
    from regard.attention.normalizers import StraightThrough, entmax15, softmax, sparsemax
    from regard.attention.observe import replace, scale, zero
    from regard.attention.reinforce import ReinforceSampler
    from regard.attention.scores import (
        Additive,
        Cosine,
        Dot,
        General,
        LocationScore,
        Salience,
        ScaledDot,
        Score,
        Trilinear,
    )
    from regard.attention.windows import PredictiveWindow

__all__ = [
    "Additive",
    "Attention",
    "Cosine",
    "Dot",
    "General",
    "LocationScore",
    "Mask",
    "Memory",
    "MultiHead",
    "PredictiveWindow",
    "ReinforceSampler",
    "Salience",
    "ScaledDot",
    "Score",
    "StraightThrough",
    "Trilinear",
    "causal",
    "entmax15",
    "local",
    "padding",
    "replace",
    "scale",
    "softmax",
    "sparsemax",
    "strictly_causal",
    "zero",
]

MODULES = {
    "core": ("Attention",),
    "masks": ("Mask", "causal", "local", "padding", "strictly_causal"),
    "memory": ("Memory",),
    "multihead": ("MultiHead",),
    "normalizers": ("StraightThrough", "entmax15", "softmax", "sparsemax"),
    "observe": ("replace", "scale", "zero"),
    "reinforce": ("ReinforceSampler",),
    "scores": (
        *("Additive", "Cosine", "Dot", "General", "LocationScore"),
        *("Salience", "ScaledDot", "Score", "Trilinear"),
    ),
    "windows": ("PredictiveWindow",),
}
MODULE_OF_NAME = {name: module for module, names in MODULES.items() for name in names}


def __getattr__(name: str):
    """Import a public name when it is first used."""
    if name not in MODULE_OF_NAME:
        raise AttributeError(f"module 'regard.attention' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"regard.attention.{MODULE_OF_NAME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
