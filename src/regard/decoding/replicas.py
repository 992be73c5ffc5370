"""Work on several batches at once, each on a thread of its own that uses one core.

Two cores do more on two batches than together on one: nothing has to be handed over between them.
All replicas share the weights of the model. The threads are kept for the next call, and all
callers of the process share them, such as the requests to a server.
"""

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Barrier, Event, Lock, local
from typing import TypeVar

import torch

from regard.decoding.listen import StepListener, current_listener, listen
from regard.errors import InputError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

MIN_TEXTS_PER_SHARE = 8
# A replica takes Python's lock for each operation of torch. One that waits for it demands it after
# this time: with Python's 5 ms, replicas with short operations are slower than a single thread.
SECONDS_TO_SWITCH = 5e-5

_pools: dict[int, ThreadPoolExecutor] = {}  # by the number of their threads
_pools_lock = Lock()
_thread = local()
_switches = {"users": 0, "usual": 0.0}  # the calls that need short switches, and Python's interval


class StoppedError(Exception):
    """Ends the search of a replica whose results nobody waits for."""


def replica_count(setting: int | None) -> int:
    """Return the number of batches at once: the setting, or one for each thread of torch."""
    if setting is not None and setting < 1:
        raise InputError(f"replicas must be 1 or more, not {setting}")
    if getattr(_thread, "is_replica", False):
        return 1
    return torch.get_num_threads() if setting is None else setting


def share_of_tokens(lengths: Sequence[int], tokens_per_batch: int, replicas: int) -> int:
    """Return the tokens of a batch, so that each replica gets a batch if there is enough work.

    The weights are read once for each batch, so a few texts stay together.
    """
    shares = min(replicas, len(lengths) // MIN_TEXTS_PER_SHARE)
    if shares < 2:
        return tokens_per_batch
    return min(tokens_per_batch, sum(lengths) // shares + max(lengths))


def map_in_replicas(
    function: Callable[[ItemT], ResultT], items: Sequence[ItemT], replicas: int
) -> Iterator[ResultT]:
    """Yield the results of `function` in the order of the items.

    The listener of this thread hears each step of every replica, without its ids. An exception,
    also one in this thread, stops all replicas at their next step.
    """
    if replicas < 2 or len(items) < 2 or getattr(_thread, "is_replica", False):
        yield from map(function, items)
        return
    is_stopped, is_inference = Event(), torch.is_inference_mode_enabled()
    listener, has_gradient = current_listener(), torch.is_grad_enabled()

    def work(item: ItemT) -> ResultT:
        with (
            torch.inference_mode(is_inference),
            torch.set_grad_enabled(has_gradient),
            listen(step_listener(is_stopped, listener)),
        ):
            return function(item)

    futures = [find_pool(replicas).submit(work, item) for item in items]
    with short_switches():
        try:
            for future in futures:
                yield future.result()
        finally:
            is_stopped.set()
            for future in futures:
                future.cancel()
            wait(futures)


@contextmanager
def short_switches() -> Generator[None]:
    """Let threads change often, until the last of all such blocks ends."""
    with _pools_lock:
        if not _switches["users"]:
            _switches["usual"] = sys.getswitchinterval()
            sys.setswitchinterval(min(SECONDS_TO_SWITCH, _switches["usual"]))
        _switches["users"] += 1
    try:
        yield
    finally:
        with _pools_lock:
            _switches["users"] -= 1
            if not _switches["users"]:
                sys.setswitchinterval(_switches["usual"])


def step_listener(is_stopped: Event, listener: StepListener | None) -> StepListener:
    """Return what a replica does after each step: stop, or tell the listener of its caller."""

    def on_step(ids: list[int]) -> None:  # noqa: ARG001
        if is_stopped.is_set():
            raise StoppedError
        if listener is not None:
            listener([])

    return on_step


def find_pool(size: int) -> ThreadPoolExecutor:
    """Return threads on which torch uses one core each.

    torch keeps this number for each thread, and for threads that start later. So all threads start
    here, before the number for others is restored.
    """
    with _pools_lock:
        if size not in _pools:
            threads_before, barrier = torch.get_num_threads(), Barrier(size + 1)
            pool = ThreadPoolExecutor(size, "regard-replica", start_replica, (barrier,))
            for _ in range(size):
                pool.submit(int)
            barrier.wait()
            torch.set_num_threads(threads_before)
            _pools[size] = pool
        return _pools[size]


def start_replica(barrier: Barrier) -> None:
    _thread.is_replica = True
    torch.set_num_threads(1)
    torch.get_num_threads()  # at its first use in a thread, torch takes over the general number
    barrier.wait()


def forget_pools() -> None:
    """Forget threads that a forked process does not have."""
    global _pools_lock
    _pools_lock = Lock()
    _pools.clear()
    if _switches["users"]:
        _switches["users"] = 0
        sys.setswitchinterval(_switches["usual"])


os.register_at_fork(after_in_child=forget_pools)
