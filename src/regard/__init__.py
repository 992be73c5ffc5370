"""Train, run and look inside attention models."""

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """What is asked for is imported then: `import regard` costs nothing."""
    if name == "AttentionMap":
        from regard.view.map import AttentionMap

        return AttentionMap
    raise AttributeError(f"module 'regard' has no attribute {name!r}")
