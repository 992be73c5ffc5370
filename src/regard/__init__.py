"""Train, run and look inside attention models."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

PLACES = {"AttentionMap": "regard.view.map"}


def __getattr__(name: str) -> Any:
    """What is asked for is imported then: `import regard` costs nothing."""
    if name not in PLACES:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    return getattr(import_module(PLACES[name]), name)
