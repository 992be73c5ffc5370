"""Train, run and look inside attention models."""

__version__ = "0.1.0"

PLACES = {"AttentionMap": "regard.view.attention_map"}


def __getattr__(name: str):
    """What is asked for is imported then: `import regard` costs nothing."""
    if name not in PLACES:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(PLACES[name]), name)
