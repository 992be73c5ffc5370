"""An attention from names: what the settings of a model say, in one place for all models."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any, cast

from torch import Tensor

from regard.attend.attention import Attention
from regard.attend.catalogue import NORMALISERS, SCORES, Piece
from regard.attend.score import Additive, Cosine, Dot, General, Location, Salience, ScaledDot, Score
from regard.attend.window import Predictive

OTHER_NAMES = {"concat": "additive"}  # Luong's name for the same function


def make_attention(
    score: str,
    query_dim: int,
    memory_dim: int,
    *,
    normalise: str = "softmax",
    hidden_dim: int | None = None,
    slots: int | None = None,
    heads: int | None = None,
    window: str | None = None,
    radius: int | float = 10,
    dropout: float = 0.0,
) -> Attention:
    """The attention with this score and this normaliser, by their names in the catalogue.

    `hidden_dim` is the additive score's inner width (by default the query's), `slots` how long a
    memory the location score knows, `heads` gives a score parameters for each head. The window
    "local_p" looks `radius` around a predicted slot; Luong's local-m is a mask, `mask.local`.
    """
    if window not in (None, "local_p"):
        raise ValueError(f"window must be 'local_p' or None, not {window!r}")
    return Attention(
        make_score(score, query_dim, memory_dim, hidden_dim, slots, heads),
        make_normaliser(normalise),
        None if window is None else Predictive(query_dim, radius),
        dropout,
    )


def make_score(
    name: str,
    query_dim: int,
    memory_dim: int,
    hidden_dim: int | None,
    slots: int | None,
    heads: int | None,
) -> Score:
    check_name("score", name, SCORES)
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
            return Location(query_dim, slots, heads)
        case _:
            raise NotImplementedError(f"score {name!r} is in the catalogue and not in make_score")


def make_normaliser(name: str) -> Callable[[Tensor], Tensor]:
    check_name("normalise", name, NORMALISERS)
    made = found(NORMALISERS[name])
    return cast("Callable[[Tensor], Tensor]", made() if isinstance(made, type) else made)


def found(piece: Piece) -> Any:
    module, _, name = piece.made_by.partition(".")
    return getattr(import_module(f"regard.attend.{module}"), name)


def check_name(argument: str, name: str, names: Iterable[str]) -> None:
    if name in names:
        return
    near = [OTHER_NAMES[name]] if name in OTHER_NAMES else get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
    raise ValueError(f"{argument}: there is no {name!r}; {hint}")


def check_widths(name: str, one: int, other: int, relation: str) -> None:
    if one != other:
        query = one + 1 if name == "cosine" else one
        raise ValueError(
            f"score {name!r} needs a query {relation} the memory's states, but they are {query} "
            f"and {other} wide; 'general' and 'additive' take any widths"
        )
