"""TOML and `key=value` -> settings. What is wrong is said in one line: file, key, remedy."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from regard.config.base import Config
from regard.config.errors import BARE_KEY, choice_message, classes_by_kind, first_error
from regard.config.presets import preset_paths
from regard.config.settings import Settings
from regard.config.train import ALTERNATIVES
from regard.errors import InputError
from regard.files import JsonObject
from regard.parsing import decode_utf8, parse_toml
from regard.tasks.catalogue import DEFAULT_TASK, TASKS
from regard.tasks.run_folder import from_portable


def load_settings(path: Path | str, overrides: Iterable[str] = ()) -> Settings:
    """Return the settings in a TOML file or of a preset, changed by overrides.

    >>> load_settings("multi30k-transformer", ["train.steps=900"]).train.steps
    900
    """
    path = Path(path)
    if not path.exists() or path.is_dir():
        path = _preset_path(path)
    text = decode_utf8(path.read_bytes(), str(path))
    return parse_settings(from_portable(text, path.parent), overrides, name=str(path))


def parse_settings(text: str, overrides: Iterable[str] = (), *, name: str = "settings") -> Settings:
    """Return the settings in TOML; `name` stands in error messages."""
    return resolve_settings(parse_toml(text, name), overrides, name=name)


def resolve_settings(
    raw: Mapping[str, object], overrides: Iterable[str] = (), *, name: str = "settings"
) -> Settings:
    """Return settings from plain tables; settings that are left out have their default.

    >>> resolve_settings({"task": "classify", "model": {"kind": "han"}}).model.dim
    200
    """
    values = deepcopy(dict(raw))
    # Kinds first: a new kind discards settings of the file, not those of the command line.
    overrides = sorted(overrides, key=lambda word: not _is_kind(word.partition("=")[0]))
    changed_keys = [_apply_override(values, word) for word in overrides]
    settings_class = _settings_class(values, name)
    try:
        return settings_class.model_validate(values)
    except ValidationError as error:
        key_path, message = first_error(error.errors(include_url=False), settings_class)
        from_command_line = any(
            f"{key_path}.".startswith(f"{key}.") or f"{key}.".startswith(f"{key_path}.")
            for key in changed_keys
        )
        source = "command line" if from_command_line else name
        raise InputError(f"{source}: {f'{key_path}: ' if key_path else ''}{message}") from None


def override_settings(settings: Settings, overrides: Iterable[str]) -> Settings:
    """Return settings changed by words such as `decode.width=10`."""
    return resolve_settings(settings.model_dump(), overrides)


def _settings_class(values: Mapping[str, object], name: str) -> type[Settings]:
    """Which settings there are depends on the task."""
    task = values.get("task", DEFAULT_TASK)
    if isinstance(task, str) and task in TASKS:
        return TASKS[task].settings_class()
    raise InputError(f"{name}: task: {choice_message(list(TASKS), task)}")


def _preset_path(path: Path) -> Path:
    available = preset_paths()
    if str(path) in available:  # a folder of this name may well be the run that was made of it
        return available[str(path)]
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give a TOML file")
    close_matches = get_close_matches(str(path), available, 1)
    hint = f"did you mean {close_matches[0]!r}?" if close_matches else "`regard init` writes one"
    raise InputError(f"{path}: there is no such file or preset; {hint}")


def _apply_override(values: JsonObject, word: str) -> str:
    """Set one value in the tree; its key comes back."""
    key, equals, value = word.partition("=")
    key = key.strip()
    parts = key.split(".")
    if not equals or not all(BARE_KEY.fullmatch(part) for part in parts):
        raise InputError(f"command line: {word!r} is no setting; write it as train.steps=50")
    table: Any = values
    for depth, part in enumerate(parts[:-1]):
        table = _child_entry(table, part, key)
        if not isinstance(table, dict | list):
            parent_key = ".".join(parts[: depth + 1])
            raise InputError(f"command line: {key}: {parent_key} is no table, but {table!r}")
    if isinstance(table, list):
        _child_entry(table, parts[-1], key)
        table[int(parts[-1])] = _parse_value(value)
        return key
    if parts[:-1] == ["train"]:
        table.pop(ALTERNATIVES.get(parts[-1], ""), None)
    if len(parts) > 1 and _is_kind(key):
        _discard_settings(table, parts[:-1], value.strip(), values.get("task", DEFAULT_TASK))
    table[parts[-1]] = _parse_value(value)
    return key


def _is_kind(key: str) -> bool:
    return key.strip().rpartition(".")[2] == "kind"


def _discard_settings(table: JsonObject, path: Sequence[str], kind: str, task: object) -> None:
    """Discard the settings of a table that its new kind does not have.

    A new kind of data shares nothing with the old one: `held_out` may be a share or a number.
    """
    if not isinstance(task, str) or task not in TASKS:
        return
    field = _table_field(TASKS[task].settings_class(), path)
    if field is None or table.get("kind", getattr(field.default, "kind", None)) == kind:
        return
    new_class = dict(classes_by_kind(field.annotation)).get(kind)
    if new_class is not None and field.discriminator:
        kept = () if "data" in path else new_class.model_fields
        for name in [name for name in table if name not in kept]:
            del table[name]


def _table_field(config_class: type[Config], path: Sequence[str]) -> FieldInfo | None:
    """Return the field of a table, such as train.optimizer, if it is one of a fixed table."""
    field = config_class.model_fields.get(path[0])
    if field is None or len(path) == 1:
        return field
    return (
        _table_field(type(field.default), path[1:]) if isinstance(field.default, Config) else None
    )


def _child_entry(entries: Any, part: str, key: str) -> Any:
    """Return the entry below; a missing table is added."""
    if isinstance(entries, dict):
        return entries.setdefault(part, {})
    if not part.isdigit() or int(part) >= len(entries):
        raise InputError(f"command line: {key}: {part!r} must be a number below {len(entries)}")
    return entries[int(part)]


def _parse_value(text: str) -> Any:
    """As TOML would read it, else as it is: `50` is a number, `multi30k` a text."""
    try:
        parsed = parse_toml(f"value = {text.strip()}", "command line")
    except InputError:
        return text
    return parsed["value"] if set(parsed) == {"value"} else text
