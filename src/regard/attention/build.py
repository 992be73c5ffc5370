"""An attention from names: what the settings of a model say, in one place for all models."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any, cast

from torch import Tensor

from regard.attention.catalogue import NORMALIZERS, SCORES, AttentionComponent
from regard.attention.core import Attention
from regard.attention.scores import (
    Additive,
    Cosine,
    Dot,
    General,
    LocationScore,
    Salience,
    ScaledDot,
    Score,
)
from regard.attention.windows import PredictiveWindow

SCORE_ALIASES = {"concat": "additive"}  # Luong's name for the same function


def build_attention(
    score: str,
    query_dim: int,
    memory_dim: int,
    *,
    normalize: str = "softmax",
    hidden_dim: int | None = None,
    slots: int | None = None,
    heads: int | None = None,
    window: str | None = None,
    radius: int | float = 10,
    dropout: float = 0.0,
) -> Attention:
    """The attention with this score and this normalizer, by their names in the catalogue.

    `hidden_dim` is the additive score's inner width (by default the query's), `slots` how long a
    memory the location score knows, `heads` gives a score parameters for each head. The window
    "local_p" looks `radius` around a predicted slot; Luong's local-m is a mask, `mask.local`.
    """
    if window not in (None, "local_p"):
        raise ValueError(f"window must be 'local_p' or None, not {window!r}")
    return Attention(
        build_score(score, query_dim, memory_dim, hidden_dim, slots, heads),
        build_normalizer(normalize),
        None if window is None else PredictiveWindow(query_dim, radius),
        dropout,
    )


def build_score(
    name: str,
    query_dim: int,
    memory_dim: int,
    hidden_dim: int | None,
    slots: int | None,
    heads: int | None,
) -> Score:
    check_component_name("score", name, SCORES)
    match name:
        case "dot" | "scaled_dot":
            check_widths(name, query_dim, memory_dim, "as wide as")
            return Dot() if name == "dot" else ScaledDot()
        case "cosine":
            check_widths(name, query_dim - 1, memory_dim, "one wider than")
            return Cosine()
        case "general":
            return General(query_dim, memory_dim, heads)
        case "additive":
            return Additive(query_dim, memory_dim, hidden_dim or query_dim, heads=heads)
        case "salience":  # the query stands where Yang et al. 2016 have a learned vector
            return Salience(memory_dim, query_dim, heads)
        case "location":
            if slots is None:
                raise ValueError("slots is missing: the location score has a row for each slot")
            return LocationScore(query_dim, slots, heads)
        case _:
            raise NotImplementedError(f"score {name!r} is in the catalogue and not in build_score")


def build_normalizer(name: str) -> Callable[[Tensor], Tensor]:
    check_component_name("normalize", name, NORMALIZERS)
    component = load_component(NORMALIZERS[name])
    return cast(
        "Callable[[Tensor], Tensor]", component() if isinstance(component, type) else component
    )


def load_component(component: AttentionComponent) -> Any:
    module, _, name = component.implementation.partition(".")
    return getattr(import_module(f"regard.attention.{module}"), name)


def check_component_name(argument: str, name: str, names: Iterable[str]) -> None:
    if name in names:
        return
    suggestions = (
        [SCORE_ALIASES[name]] if name in SCORE_ALIASES else get_close_matches(name, names, 1)
    )
    hint = f"did you mean {suggestions[0]!r}?" if suggestions else f"there are {', '.join(names)}"
    raise ValueError(f"{argument}: there is no {name!r}; {hint}")


def check_widths(name: str, query_width: int, memory_width: int, relation: str) -> None:
    if query_width != memory_width:
        full_query_width = query_width + 1 if name == "cosine" else query_width
        raise ValueError(
            f"score {name!r} needs a query {relation} the memory's states, but they are "
            f"{full_query_width} "
            f"and {memory_width} wide; 'general' and 'additive' take any widths"
        )
