"""Several settings for one comparison: some configs, and each value of what is varied."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from regard.config.settings import Settings
from regard.errors import InputError
from regard.tasks.load import load_settings


def expand_sweep(arguments: Sequence[str], variations: Sequence[str] = ()) -> dict[str, Settings]:
    """Every config in `words`, changed by every `key=value` in them, once for each combination.

    `vary` holds words such as "model.score=dot,general"; an empty value leaves the setting as the
    config has it. The names are those of the files, with what is varied: "base,score=dot".
    """
    overrides = [argument for argument in arguments if is_override(argument)]
    paths = [Path(argument) for argument in arguments if not is_override(argument)]
    if not paths:
        raise InputError("command line: there is no CONFIG; name at least one TOML file")
    choices_per_key = [parse_variation(argument) for argument in variations]
    settings_by_name: dict[str, Settings] = {}
    for path in paths:
        for combination in product(*choices_per_key):
            varied_values = [(key, value) for key, value in combination if value]
            name = ",".join([path.stem, *(short_name(key, value) for key, value in varied_values)])
            if name in settings_by_name:
                raise InputError(f"two models are called {name!r}: rename a config, or vary less")
            settings_by_name[name] = load_settings(
                path, [*overrides, *(f"{key}={value}" for key, value in varied_values)]
            )
    check_same_task(settings_by_name)
    check_same_data(settings_by_name)
    return settings_by_name


def is_override(argument: str) -> bool:
    return "=" in argument and not argument.endswith(".toml")


def parse_variation(argument: str) -> list[tuple[str, str]]:
    """One key with each of its values."""
    key, equals, values = argument.partition("=")
    if not equals:
        raise InputError(f"--sweep {argument!r}: write it as model.score=dot,general")
    return [(key.strip(), value.strip()) for value in values.split(",")]


def short_name(key: str, value: str) -> str:
    """For a name, which is the name of a folder too."""
    safe_value = re.sub(r"[^\w.+-]", "_", value)
    return f"{key.rpartition('.')[2]}={safe_value}"


def seed_groups(settings_by_name: Mapping[str, Settings]) -> dict[str, list[str]]:
    """Models that differ in their seed and in nothing else, where there are several.

    The key is what their names share; a seed that comes again counts once.
    """
    names_by_settings: dict[str, dict[int, str]] = {}
    for name, settings in settings_by_name.items():
        settings_without_seed = settings.model_dump_json(exclude={"seed"})
        names_by_settings.setdefault(settings_without_seed, {}).setdefault(settings.seed, name)
    groups = [list(names.values()) for names in names_by_settings.values() if len(names) > 1]
    return {common_name(names): names for names in groups}


def common_name(names: Sequence[str]) -> str:
    first_parts, *other_parts = (name.split(",") for name in names)
    common_parts = [part for part in first_parts if all(part in parts for parts in other_parts)]
    return ",".join(common_parts) or "+".join(names)


def check_same_task(settings_by_name: Mapping[str, Settings]) -> None:
    (first_name, first_settings), *others = settings_by_name.items()
    for name, other in others:
        if other.task != first_settings.task:
            difference = (
                f"{name}: is for {other.task!r}, but {first_name} is for {first_settings.task!r}"
            )
            raise InputError(f"{difference}: models of one task are compared")


def check_same_data(settings_by_name: Mapping[str, Settings]) -> None:
    """All on the same data, or there is nothing to compare."""
    (first_name, first_settings), *others = settings_by_name.items()
    for name, other in others:
        values, first_values = (
            dict(flat_items(settings.data.model_dump(), "data"))
            for settings in (other, first_settings)
        )
        for key in [*values, *first_values]:
            if values.get(key) != first_values.get(key):
                difference = (
                    f"{name}: {key} is {values.get(key)!r}, but {first_values.get(key)!r} in "
                    f"{first_name}"
                )
                raise InputError(f"{difference}: models are compared on the same data")


def flat_items(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flat_items(value, f"{prefix}.{key}")
        else:
            yield f"{prefix}.{key}", value
