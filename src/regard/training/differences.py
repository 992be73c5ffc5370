"""Compare the settings of a saved run with those that it is to be trained with."""

from regard.config.settings import Settings
from regard.files import JsonObject
from regard.tasks.sweep import flat_items

MAX_NAMED_SETTINGS = 5
FREE_SETTINGS = ("steps", "epochs", "patience", "keep_checkpoints", "keep_finished")
FREE_SETTINGS += ("device", "sharding")


def settings_without_duration(settings: Settings) -> JsonObject:
    """Return the settings that may not change when a training is resumed.

    The length of the training, what it keeps, its device, and the metrics may change.
    """
    values = settings.model_dump(exclude={"metrics"})
    for name in FREE_SETTINGS:
        values["train"].pop(name)
    return values


def setting_differences(saved: Settings, given: Settings) -> str:
    """Return the settings that prevent a resume, as `key: old -> new`, or an empty text."""
    old, new = (dict(flat_items(settings_without_duration(s), "")) for s in (saved, given))
    lines = [
        f"{key.removeprefix('.')}: {old.get(key)!r} -> {new.get(key)!r}"
        for key in {**old, **new}
        if old.get(key) != new.get(key)
    ]
    count = len(lines) - MAX_NAMED_SETTINGS
    others = f", and {count} more" if count > 0 else ""
    return ", ".join(lines[:MAX_NAMED_SETTINGS]) + others
