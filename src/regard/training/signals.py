"""Signals that stop a training: it saves its state, and then ends.

SIGINT (Ctrl-C), SIGTERM (a batch system or container that stops) and SIGHUP (a closed terminal).
"""

import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class StopRequested(BaseException):
    """Raised by a stop signal while the trainer can be interrupted."""


class StopRequest:
    """The first stop signal that has arrived, if any."""

    def __init__(self, can_interrupt: Callable[[], bool]):
        self.can_interrupt = can_interrupt
        self.signal: signal.Signals | None = None
        self.terminals = [number for number in (1, 2) if is_terminal(number)]

    def is_set(self) -> bool:
        return self.signal is not None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Note a signal; the loop ends after its step, a second Ctrl-C at once."""
        del frame
        if number == getattr(signal, "SIGHUP", None):
            self.close_terminals()
        if self.signal is not None:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            return
        self.signal = signal.Signals(number)
        if self.can_interrupt():
            raise StopRequested

    def close_terminals(self) -> None:
        """Write to nowhere from now on: the terminal is gone, and writing to it would fail."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number in self.terminals:
            os.dup2(nowhere, number)
        os.close(nowhere)


@contextmanager
def catch_stop_signals(can_interrupt: Callable[[], bool]) -> Generator[StopRequest]:
    """Note stop signals while the block runs; restore the handlers at the end.

    A signal raises StopRequested if `can_interrupt()` is true, and is only noted otherwise. Signals
    that are ignored (`nohup`) stay ignored. Outside of the main thread, nothing is caught.
    """
    request = StopRequest(can_interrupt)
    handlers: dict[signal.Signals, signal._HANDLER] = {}
    if threading.current_thread() is threading.main_thread():
        for number in STOP_SIGNALS:
            handler = signal.getsignal(number)
            if handler not in (signal.SIG_IGN, None):
                handlers[number] = handler
                signal.signal(number, request.handle)
    try:
        yield request
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def exit_code(number: int) -> int:
    """Return the exit code of a program that a signal has stopped, as shells report it."""
    return 128 + number


def is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False
