"""Several settings for one comparison: some configs, and each value of what is varied."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from regard.config.load import load
from regard.config.settings import Settings


def varied(words: Sequence[str], vary: Sequence[str] = ()) -> dict[str, Settings]:
    """Every config in `words`, changed by every `key=value` in them, once for each combination.

    `vary` holds words such as "model.score=dot,general"; an empty value leaves the setting as the
    config has it. The names are those of the files, with what is varied: "base,score=dot".
    """
    changes = [word for word in words if is_change(word)]
    paths = [Path(word) for word in words if not is_change(word)]
    if not paths:
        raise ValueError("command line: there is no CONFIG; name at least one TOML file")
    choices = [choice(word) for word in vary]
    found: dict[str, Settings] = {}
    for path in paths:
        for chosen in product(*choices):
            more = [(key, value) for key, value in chosen if value]
            name = ",".join([path.stem, *(short(key, value) for key, value in more)])
            if name in found:
                raise ValueError(f"two models are called {name!r}: rename a config, or vary less")
            found[name] = load(path, [*changes, *(f"{key}={value}" for key, value in more)])
    check_task(found)
    check_data(found)
    return found


def is_change(word: str) -> bool:
    return "=" in word and not word.endswith(".toml")


def choice(word: str) -> list[tuple[str, str]]:
    """One key with each of its values."""
    key, equals, values = word.partition("=")
    if not equals:
        raise ValueError(f"--vary {word!r}: write it as model.score=dot,general")
    return [(key.strip(), value.strip()) for value in values.split(",")]


def short(key: str, value: str) -> str:
    """For a name, which is the name of a folder too."""
    safe = re.sub(r"[^\w.+-]", "_", value)
    return f"{key.rpartition('.')[2]}={safe}"


def by_seed(found: Mapping[str, Settings]) -> dict[str, list[str]]:
    """Models that differ in their seed and in nothing else, where there are several.

    The key is what their names share; a seed that comes again counts once.
    """
    alike: dict[str, dict[int, str]] = {}
    for name, settings in found.items():
        rest = settings.model_dump_json(exclude={"seed"})
        alike.setdefault(rest, {}).setdefault(settings.seed, name)
    groups = [list(names.values()) for names in alike.values() if len(names) > 1]
    return {shared(names): names for names in groups}


def shared(names: Sequence[str]) -> str:
    first, *others = (name.split(",") for name in names)
    common = [part for part in first if all(part in other for other in others)]
    return ",".join(common) or "+".join(names)


def check_task(found: Mapping[str, Settings]) -> None:
    (first, one), *others = found.items()
    for name, other in others:
        if other.task != one.task:
            differ = f"{name}: is for {other.task!r}, but {first} is for {one.task!r}"
            raise ValueError(f"{differ}: models of one task are compared")


def check_data(found: Mapping[str, Settings]) -> None:
    """All on the same data, or there is nothing to compare."""
    (first, one), *others = found.items()
    for name, other in others:
        mine, theirs = (dict(flat(s.data.model_dump(), "data")) for s in (other, one))
        for key in [*mine, *theirs]:
            if mine.get(key) != theirs.get(key):
                differ = f"{name}: {key} is {mine.get(key)!r}, but {theirs.get(key)!r} in {first}"
                raise ValueError(f"{differ}: models are compared on the same data")


def flat(table: Mapping[str, Any], place: str) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{place}.{key}")
        else:
            yield f"{place}.{key}", value
