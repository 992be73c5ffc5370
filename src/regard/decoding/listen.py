"""Listen to a search from outside: read outputs while they grow, or stop the search."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import local

from jaxtyping import Int
from torch import Tensor

StepListener = Callable[[list[int]], None]
"""Called after each step with the ids of the best output so far; of several inputs, with none."""

_thread = local()


@contextmanager
def listen(on_step: StepListener, *, reads_outputs: bool = False) -> Generator[None]:
    """Call `on_step` after each step of every search of this thread inside a `with` block.

    An exception in `on_step` ends the search: this is how a server stops work that nobody awaits.
    A listener that `reads_outputs` needs a search that shows every step.
    """
    previous = current_listener(), has_reader()
    _thread.on_step, _thread.has_reader = on_step, reads_outputs
    try:
        yield
    finally:
        _thread.on_step, _thread.has_reader = previous


def has_reader() -> bool:
    """Return whether the listener of this thread reads outputs while they grow."""
    return getattr(_thread, "has_reader", False)


def notify_pause() -> None:
    """Tell the listener of this thread that a search may stop here; it has no output to show."""
    on_step = getattr(_thread, "on_step", None)
    if on_step is not None:
        on_step([])


def current_listener() -> StepListener | None:
    """Return the listener of this thread."""
    return getattr(_thread, "on_step", None)


def notify_step(history: Int[Tensor, "n t"], count: int) -> None:
    """Tell the listener of this thread about a step of a search with `count` outputs."""
    on_step = current_listener()
    if on_step is not None:
        on_step(history[0].tolist() if count == 1 else [])
