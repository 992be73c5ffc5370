"""Build an attention from the names in a model's settings."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib import import_module

from torch import Tensor, nn

from regard.attention.catalogue import NORMALIZERS, SCORES, AttentionComponent
from regard.attention.core import Attention
from regard.attention.scores import (
    Additive,
    Cosine,
    Dot,
    LocationScore,
    Salience,
    ScaledDot,
    Score,
)
from regard.attention.windows import PredictiveWindow
from regard.errors import InputError

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
    """Build an attention from the names of its score and its normalizer in the catalogue.

    `hidden_dim` is the inner width of the additive score (default: the width of the query).
    `slots` is the maximum number of slots of the location score. With `heads`, a score has separate
    parameters for each head. The window "local_p" covers the slots within `radius` of a predicted
    position. Luong's local-m is a mask: `masks.local`.
    """
    if window not in (None, "local_p"):
        raise InputError(f"window must be 'local_p' or None, not {window!r}")
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
        case "additive":
            return Additive(query_dim, memory_dim, hidden_dim or query_dim, heads=heads)
        case "salience":  # the query replaces the learned vector u of Yang et al. 2016
            return Salience(memory_dim, query_dim, heads)
        case "location":
            if slots is None:
                raise InputError("slots is missing; the location score has one row for each slot")
            return LocationScore(query_dim, slots, heads)
        case _:  # a score with the constructor (query_dim, memory_dim, heads)
            return score_class(name)(query_dim, memory_dim, heads)


def score_class(name: str) -> Callable[[int, int, int | None], Score]:
    """Import the class of a score."""
    module, _, class_name = SCORES[name].implementation.partition(".")
    return getattr(import_module(f"regard.attention.{module}"), class_name)


def build_normalizer(name: str) -> Callable[[Tensor], Tensor]:
    check_component_name("normalize", name, NORMALIZERS)
    component = load_component(NORMALIZERS[name])
    return component() if isinstance(component, type) else component


def load_component(component: AttentionComponent) -> type[nn.Module] | Callable[[Tensor], Tensor]:
    """Import the class or the function that implements a component."""
    module, _, name = component.implementation.partition(".")
    return getattr(import_module(f"regard.attention.{module}"), name)


def check_component_name(argument: str, name: str, names: Iterable[str]) -> None:
    if name in names:
        return
    suggestions = (
        [SCORE_ALIASES[name]] if name in SCORE_ALIASES else get_close_matches(name, names, 1)
    )
    hint = f"did you mean {suggestions[0]!r}?" if suggestions else f"choose from {', '.join(names)}"
    raise InputError(f"{argument}: unknown name {name!r}; {hint}")


def check_widths(name: str, query_width: int, memory_width: int, relation: str) -> None:
    if query_width != memory_width:
        full_query_width = query_width + 1 if name == "cosine" else query_width
        raise InputError(
            f"score {name!r} needs a query {relation} the states of the memory, but their widths "
            f"are {full_query_width} and {memory_width}; 'general' and 'additive' take any widths"
        )
