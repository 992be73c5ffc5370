"""Parse JSON and TOML of unknown origin; whatever is wrong is an `InputError` of one line."""

import json
import re
import tomllib
from pathlib import Path

from regard.errors import InputError
from regard.files import JsonObject

MAX_DEPTH = 100  # of lists and objects in each other
MAX_KEY_PARTS = 100  # of a dotted key of TOML
MAX_TOML_CHARACTERS = 1 << 22
MAX_REASON_CHARACTERS = 200
TOML_SEPARATORS = re.compile(r"[=\[\]{},#\n]")
QUOTED_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'')


def parse_json(text: str, location: str, hint: str = "") -> object:
    """Return the value of a JSON text; an error names `location`, and ends with `hint`.

    Nesting of more than 100 levels and halves of surrogate pairs are refused.

    >>> parse_json('{"a": [1, 2]}', "a.json")
    {'a': [1, 2]}
    """
    suffix = f"; {hint}" if hint else ""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        line = f":{error.lineno}" if "\n" in text.strip() else ""
        reason = f"{error.msg}, column {error.colno}"
        raise InputError(f"{location}{line}: not JSON ({reason}){suffix}") from None
    except RecursionError:
        raise InputError(f"{location}: more than {MAX_DEPTH} levels deep{suffix}") from None
    except ValueError as error:  # a number of too many digits
        raise InputError(f"{location}: not JSON ({one_line(error)}){suffix}") from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        check_depth(value, location)
    if "\\u" in text:
        check_unicode(value, location)
    return value


def parse_json_object(text: str, location: str, hint: str = "") -> JsonObject:
    """Return the object of a JSON text."""
    value = parse_json(text, location, hint)
    if not isinstance(value, dict):
        raise InputError(f"{location}: must hold a JSON object, not a {type(value).__name__}")
    return value


def read_json(path: Path, hint: str = "") -> object:
    """Return the value in a JSON file."""
    return parse_json(decode_utf8(path.read_bytes(), str(path)), str(path), hint)


def read_json_object(path: Path, hint: str = "") -> JsonObject:
    """Return the object in a JSON file."""
    return parse_json_object(decode_utf8(path.read_bytes(), str(path)), str(path), hint)


def parse_toml(text: str, name: str) -> JsonObject:
    """Return the tables of a TOML text; `name` stands in error messages."""
    if len(text) > MAX_TOML_CHARACTERS:
        raise InputError(f"{name}: more than {MAX_TOML_CHARACTERS:,} characters; not settings")
    for part in TOML_SEPARATORS.split(QUOTED_TEXT.sub('""', text)):
        if part.count(".") >= MAX_KEY_PARTS:  # tomllib needs the cube of this number of steps
            key = f"{part.strip()[:40]}…"
            raise InputError(
                f"{name}: a key of more than {MAX_KEY_PARTS} parts ({key}); shorten it"
            )
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(_toml_message(text, name, str(error))) from None
    except RecursionError:
        raise InputError(f"{name}: more than {MAX_DEPTH} levels deep; not settings") from None
    except ValueError as error:  # a number of too many digits, a date that does not exist
        raise InputError(f"{name}: not TOML: {one_line(error)}") from None
    check_depth(tables, name)
    return tables


def _toml_message(text: str, name: str, message: str) -> str:
    position = re.search(r" \(at line (\d+), column \d+\)$", message)
    line = position[1] if position else str(text.count("\n") + 1)
    return f"{name}:{line}: not TOML: {message[: position.start()] if position else message}"


def decode_utf8(data: bytes, location: str) -> str:
    """Return UTF-8 as text, without a byte order mark; an error names the line."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise InputError(f"{location}:{line}: {problem}") from None


def check_depth(value: object, location: str) -> None:
    """Refuse lists and objects that are nested too deeply for what works on them later."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        children: list[object] = []
        for item in level:
            if isinstance(item, dict):
                children.extend(child for child in item.values() if isinstance(child, dict | list))
            elif isinstance(item, list):
                children.extend(child for child in item if isinstance(child, dict | list))
        if not children:
            return
        level = children
    raise InputError(f"{location}: more than {MAX_DEPTH} levels deep")


def check_unicode(value: object, location: str) -> None:
    """Refuse escapes that write half of a surrogate pair, which is not a character."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(f"{location}: an escape like \\ud800 is half of a character") from None


def one_line(error: BaseException) -> str:
    """Return the reason that another library gives, as one line of bounded length."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return reason if len(reason) <= MAX_REASON_CHARACTERS else f"{reason[:MAX_REASON_CHARACTERS]}…"
