"""Write settings as complete TOML, with the help text of each setting as a comment."""

import json
import re
from collections.abc import Iterator, Mapping
from textwrap import wrap

from pydantic.fields import FieldInfo

from regard.config.base import Config

COMMENT_WIDTH = 98
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def dumps(settings: Config) -> str:
    """Return TOML that `parse_settings` reads back as equal settings."""
    return "\n".join(_table_lines(settings, "")).strip("\n") + "\n"


def _table_lines(table: Config, path: str) -> Iterator[str]:
    fields = {
        name: field
        for name, field in type(table).model_fields.items()
        if not _is_unused(field, getattr(table, name))
    }
    subtables: dict[str, tuple[Config, ...]] = {}
    for name in sorted(fields, key=lambda name: name != "kind"):  # which comes first
        value = getattr(table, name)
        values = value if isinstance(value, tuple) else (value,)
        if values and isinstance(values[0], Config):
            subtables[name] = values
        else:
            yield from _setting_lines(table, name, fields[name], value)
    for name, tables in subtables.items():
        subpath = f"{path}.{name}" if path else name
        is_array = isinstance(getattr(table, name), tuple)
        for subtable in tables:
            yield ""
            yield from _comment_lines(fields[name].description)
            yield f"[[{subpath}]]" if is_array else f"[{subpath}]"
            yield from _table_lines(subtable, subpath)


def _is_unused(field: FieldInfo, value: object) -> bool:
    """Return whether the task ignores this setting, and nobody has set it."""
    return (field.description or "").startswith("Unused") and value == field.default


def _setting_lines(table: Config, name: str, field: FieldInfo, value: object) -> Iterator[str]:
    yield from _comment_lines(field.description or type(table).__doc__)
    if value is None:
        yield f"# {name} = (not set)"
    else:
        yield f"{name} = {_to_toml(value)}"


def _comment_lines(text: str | None) -> Iterator[str]:
    for line in wrap(text or "", COMMENT_WIDTH):
        yield f"# {line}"


def _to_toml(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _to_toml_string(value)
        case Mapping():
            items = (f"{_to_toml_key(key)} = {_to_toml(item)}" for key, item in value.items())
            return f"{{ {', '.join(items)} }}" if value else "{}"
        case list() | tuple():
            return f"[{', '.join(map(_to_toml, value))}]"
        case _:
            raise TypeError(f"TOML has no {type(value).__name__}")


def _to_toml_key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else _to_toml_string(key)


def _to_toml_string(text: str) -> str:
    # JSON's escapes are TOML's, and TOML wants one more.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
