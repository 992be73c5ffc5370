"""TOML and `key=value` -> settings. What is wrong is said in one line: file, key, remedy."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from copy import deepcopy
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from regard.config.errors import BARE, choice, worst
from regard.config.presets import presets
from regard.config.settings import TASKS, Settings
from regard.config.table import Table
from regard.config.train import EITHER

DEFAULT = "translate"


def load(path: Path | str, overrides: Iterable[str] = ()) -> Settings:
    """The settings in a file, or of a preset, changed by words such as `train.steps=50`."""
    path = Path(path)
    if not path.exists() or path.is_dir():
        path = _preset(path)
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}:{line}: byte 0x{data[error.start]:02x} is not UTF-8") from None
    return loads(text, overrides, name=str(path))


def loads(text: str, overrides: Iterable[str] = (), *, name: str = "settings") -> Settings:
    """The settings in a text; `name` is what messages call it."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(_bad_toml(text, name, str(error))) from None
    return resolve(raw, overrides, name=name)


def resolve(
    raw: Mapping[str, Any], overrides: Iterable[str] = (), *, name: str = "settings"
) -> Settings:
    """The settings in plain dictionaries; what they leave out has its default."""
    whole = deepcopy(dict(raw))
    changed = [_override(whole, word) for word in overrides]
    of = _tree(whole, name)
    try:
        return of.model_validate(_with_kinds(whole, of))
    except ValidationError as error:
        place, message = worst(error.errors(include_url=False), of)
        by_hand = any(
            f"{place}.".startswith(f"{key}.") or f"{key}.".startswith(f"{place}.")
            for key in changed
        )
        where = "command line" if by_hand else name
        raise ValueError(f"{where}: {f'{place}: ' if place else ''}{message}") from None


def _tree(whole: Mapping[str, Any], name: str) -> type[Settings]:
    """Which settings there are depends on the task."""
    task = whole.get("task", DEFAULT)
    if isinstance(task, str) and task in TASKS:
        return TASKS[task]
    raise ValueError(f"{name}: task: {choice(list(TASKS), task)}")


def _preset(path: Path) -> Path:
    known = presets()
    if str(path) in known:  # a folder of this name may well be the run that was made of it
        return known[str(path)]
    if path.is_dir():
        raise ValueError(f"{path}: this is a folder; give a TOML file")
    near = get_close_matches(str(path), known, 1)
    hint = f"did you mean {near[0]!r}?" if near else "`regard init` writes one"
    raise ValueError(f"{path}: there is no such file or preset; {hint}")


def _bad_toml(text: str, name: str, message: str) -> str:
    at = re.search(r" \(at line (\d+), column \d+\)$", message)
    line = at[1] if at else str(text.count("\n") + 1)
    return f"{name}:{line}: not TOML: {message[: at.start()] if at else message}"


def _override(whole: dict[str, Any], word: str) -> str:
    """Set one value in the tree; its key comes back."""
    key, equals, value = word.partition("=")
    key = key.strip()
    parts = key.split(".")
    if not equals or not all(BARE.fullmatch(part) for part in parts):
        raise ValueError(f"command line: {word!r} is no setting; write it as train.steps=50")
    table: Any = whole
    for number, part in enumerate(parts[:-1]):
        table = _entry(table, part, key)
        if not isinstance(table, dict | list):
            above = ".".join(parts[: number + 1])
            raise ValueError(f"command line: {key}: {above} is no table, but {table!r}")
    if isinstance(table, list):
        _entry(table, parts[-1], key)
        table[int(parts[-1])] = _value(value)
        return key
    if parts[:-1] == ["train"]:
        table.pop(EITHER.get(parts[-1], ""), None)
    table[parts[-1]] = _value(value)
    return key


def _entry(entries: Any, part: str, key: str) -> Any:
    """What is below; a table that is not there yet is made."""
    if isinstance(entries, dict):
        return entries.setdefault(part, {})
    if not part.isdigit() or int(part) >= len(entries):
        raise ValueError(f"command line: {key}: {part!r} must be a number below {len(entries)}")
    return entries[int(part)]


def _value(text: str) -> Any:
    """As TOML would read it, else as it is: `50` is a number, `multi30k` a text."""
    try:
        found = tomllib.loads(f"value = {text.strip()}")
    except tomllib.TOMLDecodeError:
        return text
    return found["value"] if set(found) == {"value"} else text


def _with_kinds(raw: Any, of: type[Table]) -> Any:
    """A table that does not say its kind is of the default kind."""
    if not isinstance(raw, dict):
        return raw
    filled = dict(raw)
    for name, field in of.model_fields.items():
        default = field.default
        if isinstance(default, Table) and isinstance(raw.get(name), dict):
            table = _with_kinds(raw[name], type(default))
            if field.discriminator:
                table = {"kind": getattr(default, "kind", None), **table}
            filled[name] = table
    return filled
