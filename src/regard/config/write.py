"""Settings -> TOML, complete, with the help text of every setting above it."""

import json
import re
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from pydantic.fields import FieldInfo

from regard.config.table import Table

WIDTH = 98
BARE = re.compile(r"[A-Za-z0-9_-]+")


def dumps(settings: Table) -> str:
    """What `load` reads back as the same settings."""
    return "\n".join(_table(settings, "")).strip("\n") + "\n"


def _table(table: Table, path: str) -> Iterator[str]:
    fields = type(table).model_fields
    inner: dict[str, tuple[Table, ...]] = {}
    for name in sorted(fields, key=lambda name: name != "kind"):  # which comes first
        value = getattr(table, name)
        several = value if isinstance(value, tuple) else (value,)
        if several and isinstance(several[0], Table):
            inner[name] = several
        else:
            yield from _setting(table, name, fields[name], value)
    for name, tables in inner.items():
        below = f"{path}.{name}" if path else name
        listed = isinstance(getattr(table, name), tuple)
        for one in tables:
            yield ""
            yield from _comment(fields[name].description)
            yield f"[[{below}]]" if listed else f"[{below}]"
            yield from _table(one, below)


def _setting(table: Table, name: str, field: FieldInfo, value: Any) -> Iterator[str]:
    yield from _comment(field.description or type(table).__doc__)
    if value is None:
        yield f"# {name} = (not set)"
    else:
        yield f"{name} = {_value(value)}"


def _comment(text: str | None) -> Iterator[str]:
    for line in wrap(text or "", WIDTH):
        yield f"# {line}"


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _text(value)
        case Mapping():
            each = (f"{_key(key)} = {_value(one)}" for key, one in value.items())
            return f"{{ {', '.join(each)} }}" if value else "{}"
        case _:
            return f"[{', '.join(map(_value, value))}]"


def _key(key: str) -> str:
    return key if BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    # JSON's escapes are TOML's, and TOML wants one more.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
