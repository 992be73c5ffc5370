"""What pydantic found wrong, in words: which key, what was expected, what it may have meant."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from regard.config.table import Table

WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
BARE = re.compile(r"[A-Za-z0-9_-]+")
LONGEST = 60
LIMITS = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}


class Place(NamedTuple):
    """Where in the tree: the key as one writes it, the table that holds it, the field if any."""

    key: str
    table: type[Table]
    field: FieldInfo | None
    siblings: Sequence[type[Table]]
    """The other kinds that this table could have been."""


def worst(errors: Sequence[Mapping[str, Any]], of: type[Table]) -> tuple[str, str]:
    """The key and the message of the first error; an unknown key may be behind all others."""
    # A list whose entry is wrong is called too short besides.
    above = {error["loc"][:length] for error in errors for length in range(len(error["loc"]))}
    errors = [error for error in errors if error["loc"] not in above]
    ordered = sorted(errors, key=lambda error: error["type"] != "extra_forbidden")
    keys = {find(error["loc"], of).key for error in errors}
    place = find(ordered[0]["loc"], of)
    key, message = place.key, _message(ordered[0], place)
    if ordered[0]["type"].startswith("union_tag"):
        key = f"{key}.kind"
    more = f" (and {len(keys) - 1} more)" if len(keys) > 1 else ""
    return key, message + more


def find(location: Sequence[int | str], of: type[Table]) -> Place:
    """Walk down the tables. Pydantic names kinds and alternatives too, which no file has."""
    place = Place("", of, None, ())
    here: Any = of
    for part in location:
        if isinstance(part, int):
            here = get_args(here)[0] if get_args(here) else here
            place = place._replace(key=f"{place.key}.{part}")
        elif isinstance(here, type) and issubclass(here, Table):
            field = here.model_fields.get(part)
            written = part if BARE.fullmatch(part) and len(part) <= LONGEST else shown(part)
            key = f"{place.key}.{written}" if place.key else written
            siblings = place.siblings if place.field is None or place.table is not here else ()
            place = Place(key, here, field, siblings)
            here = field.annotation if field else None
        else:
            kinds = dict(_kinds(here))
            if part in kinds:
                others = [kind for name, kind in kinds.items() if name != part]
                here = kinds[part]
                place = Place(place.key, here, None, others)
    return place


def _kinds(annotation: Any) -> Iterator[tuple[str, type[Table]]]:
    for one in get_args(annotation):
        if isinstance(one, type) and issubclass(one, Table) and "kind" in one.model_fields:
            yield one.model_fields["kind"].default, one


def _message(error: Mapping[str, Any], place: Place) -> str:
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(place, error["loc"][-1])
    if kind == "missing":
        help_text = place.field.description if place.field else ""
        return f"missing; expected {expected(place.field)}. {help_text}".rstrip(". ")
    if kind == "union_tag_invalid":
        tags = [tag.strip("' ") for tag in context["expected_tags"].split(",")]
        return choice(tags, context["tag"])
    if kind == "literal_error" and place.field:
        return choice(list(_literals(place.field.annotation)), given)
    if kind == "value_error":
        return str(context["error"])
    if limit := next((name for name in LIMITS if name in context), None):
        return f"must be {LIMITS[limit]} {context[limit]:g}, not {shown(given)}"
    if kind in ("too_short", "string_too_short"):
        return "must not be empty"
    if place.field is not None:
        return f"expected {expected(place.field)}, not {shown(given)}"
    return f"expected a table, not {shown(given)}"


def _unknown(place: Place, name: str) -> str:
    kind = place.table.model_fields.get("kind")
    own = f" of {kind.default!r}" if kind else ""
    if near := get_close_matches(name, place.table.model_fields, 1):
        return f"unknown setting{own}; did you mean {near[0]!r}?"
    for other in place.siblings:
        if name in other.model_fields:
            return f"unknown setting{own}; kind {other.model_fields['kind'].default!r} has it"
    return f"unknown setting{own}; there are {', '.join(place.table.model_fields)}"


def choice(choices: Sequence[Any], given: Any) -> str:
    listed = ", ".join(map(shown, choices))
    near = get_close_matches(str(given), [str(choice) for choice in choices], 1)
    hint = f"; did you mean {shown(near[0])}?" if near else ""
    return f"must be one of {listed}, not {shown(given)}{hint}"


def _literals(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for part in get_args(annotation):
            yield from _literals(part)


def expected(field: FieldInfo | None) -> str:
    return _words(field.annotation) if field else "a table"


def _words(annotation: Any) -> str:
    if annotation in WORDS:
        return WORDS[annotation]
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(map(shown, parts))
    if origin in (Union, UnionType):
        words = dict.fromkeys(_words(part) for part in parts if part is not NoneType)
        return " or ".join(words)
    if origin is tuple:
        count = "" if parts[-1] is Ellipsis else f" of {len(parts)}"
        return f"a list{count}, each {_words(parts[0])}"
    if hasattr(annotation, "__metadata__"):
        return _words(parts[0])
    return "a table"


def shown(value: Any) -> str:
    """As TOML would write it, but short, and on one line."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if not text.isprintable():
        text = json.dumps(value, default=str)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
