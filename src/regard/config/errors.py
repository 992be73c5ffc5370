"""Errors of pydantic as one plain line: the key, what was expected, a suggestion."""

import json
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Literal, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from regard.config.base import Config

TYPE_NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
MAX_QUOTED_CHARACTERS = 60
LIMIT_PHRASES = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}


class SettingPath(NamedTuple):
    """A place in the settings: the dotted key, its annotation, the field, and sibling tables."""

    key: str
    config_class: type[Config]
    field: FieldInfo | None
    sibling_classes: Sequence[type[Config]]
    """The other kinds that this table could have been."""


def first_error(errors: Sequence[ErrorDetails], config_class: type[Config]) -> tuple[str, str]:
    """Return the key and the message of the first error; unknown keys come first, since they may
    cause the others.
    """
    # A list whose entry is wrong is called too short besides.
    parent_locations = {
        error["loc"][:length] for error in errors for length in range(len(error["loc"]))
    }
    errors = [error for error in errors if error["loc"] not in parent_locations]
    unknown_keys_first = sorted(errors, key=lambda error: error["type"] != "extra_forbidden")
    keys = {find_setting(error["loc"], config_class).key for error in errors}
    path = find_setting(unknown_keys_first[0]["loc"], config_class)
    key, message = path.key, _message(unknown_keys_first[0], path)
    if unknown_keys_first[0]["type"].startswith("union_tag"):
        key = f"{key}.kind"
    suffix = f" (and {len(keys) - 1} more)" if len(keys) > 1 else ""
    return key, message + suffix


def find_setting(location: Sequence[int | str], config_class: type[Config]) -> SettingPath:
    """Return the place of an error; pydantic adds kinds and alternatives, which are no keys, to its
    location.
    """
    path = SettingPath("", config_class, None, ())
    annotation: object = config_class
    for location_part in location:
        if isinstance(location_part, int):
            annotation = get_args(annotation)[0] if get_args(annotation) else annotation
            path = path._replace(key=f"{path.key}.{location_part}")
        elif isinstance(annotation, type) and issubclass(annotation, Config):
            field = annotation.model_fields.get(location_part)
            key_part = (
                location_part
                if BARE_KEY.fullmatch(location_part) and len(location_part) <= MAX_QUOTED_CHARACTERS
                else quoted(location_part)
            )
            key = f"{path.key}.{key_part}" if path.key else key_part
            sibling_classes = (
                path.sibling_classes
                if path.field is None or path.config_class is not annotation
                else ()
            )
            path = SettingPath(key, annotation, field, sibling_classes)
            annotation = field.annotation if field else None
        else:
            table_classes = dict(classes_by_kind(annotation))
            if location_part in table_classes:
                other_classes = [
                    kind for name, kind in table_classes.items() if name != location_part
                ]
                annotation = table_classes[location_part]
                path = SettingPath(path.key, annotation, None, other_classes)
    return path


def classes_by_kind(annotation: object) -> Iterator[tuple[str, type[Config]]]:
    """Yield the tables that a setting accepts, with the `kind` that selects each."""
    for alternative in get_args(annotation) or [annotation]:
        if (
            isinstance(alternative, type)
            and issubclass(alternative, Config)
            and "kind" in alternative.model_fields
        ):
            yield alternative.model_fields["kind"].default, alternative


def _message(error: ErrorDetails, path: SettingPath) -> str:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_setting(path, str(error["loc"][-1]))
    if kind == "missing":
        help_text = path.field.description if path.field else ""
        return f"missing; expected {expected_type(path.field)}. {help_text}".rstrip(". ")
    if kind == "union_tag_invalid":
        tags = [tag.strip("' ") for tag in context["expected_tags"].split(",")]
        return choice_message(tags, context["tag"]) + _name_hint(path, context["tag"])
    if kind == "literal_error" and path.field:
        return choice_message(list(_literals(path.field.annotation)), value)
    if kind == "value_error":
        return str(context["error"])
    if limit := next((name for name in LIMIT_PHRASES if name in context), None):
        return f"must be {LIMIT_PHRASES[limit]} {context[limit]:g}, not {quoted(value)}"
    if kind in ("too_short", "string_too_short"):
        return "must not be empty"
    if path.field is not None:
        return f"expected {expected_type(path.field)}, not {quoted(value)}"
    return f"expected a table, not {quoted(value)}"


def _name_hint(path: SettingPath, name: str) -> str:
    """Return a hint if `name` is a public data set, which has a kind and a name."""
    tables = dict(classes_by_kind(path.field.annotation if path.field else None))
    names = tables["public"].model_fields.get("name") if "public" in tables else None
    if names is None or name not in _literals(names.annotation):
        return ""
    return f'; set {path.key}.kind = "public" and {path.key}.name = "{name}"'


def _unknown_setting(path: SettingPath, name: str) -> str:
    kind = path.config_class.model_fields.get("kind")
    is_only_kind = kind is not None and len(get_args(kind.annotation)) == 1
    of_kind = f" of {kind.default!r}" if kind and is_only_kind else ""
    if near := get_close_matches(name, path.config_class.model_fields, 1):
        return f"unknown setting{of_kind}; did you mean {near[0]!r}?"
    for sibling_class in path.sibling_classes:
        if name in sibling_class.model_fields:
            return (
                f"unknown setting{of_kind}; kind "
                f"{sibling_class.model_fields['kind'].default!r} has it"
            )
    return f"unknown setting{of_kind}; there are {', '.join(path.config_class.model_fields)}"


def choice_message(choices: Sequence[object], value: object) -> str:
    choice_list = ", ".join(map(quoted, choices))
    near = get_close_matches(str(value), [str(choice) for choice in choices], 1)
    hint = f"; did you mean {quoted(near[0])}?" if near else ""
    return f"must be one of {choice_list}, not {quoted(value)}{hint}"


def _literals(annotation: object) -> Iterator[object]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for part in get_args(annotation):
            yield from _literals(part)


def expected_type(field: FieldInfo | None) -> str:
    return _type_phrase(field.annotation) if field else "a table"


def _type_phrase(annotation: object) -> str:
    if annotation in TYPE_NAMES:
        return TYPE_NAMES[annotation]
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(map(quoted, parts))
    if origin in (Union, UnionType):
        phrases = dict.fromkeys(_type_phrase(part) for part in parts if part is not NoneType)
        return " or ".join(phrases)
    if origin is tuple:
        count = "" if parts[-1] is Ellipsis else f" of {len(parts)}"
        return f"a list{count}, each {_type_phrase(parts[0])}"
    if hasattr(annotation, "__metadata__"):
        return _type_phrase(parts[0])
    return "a table"


def quoted(value: object) -> str:
    """Return a value as TOML writes it, on one line and shortened."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if not text.isprintable():
        text = json.dumps(value, default=str)
    return text if len(text) <= MAX_QUOTED_CHARACTERS else f"{text[: MAX_QUOTED_CHARACTERS - 3]}..."
