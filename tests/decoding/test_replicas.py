"""Batches on several threads: the same results in the same order, and nothing left behind."""

import sys
import threading
from collections.abc import Iterator

import pytest
import torch

from regard.decoding.listen import listen, notify_step
from regard.decoding.replicas import (
    SECONDS_TO_SWITCH,
    map_in_replicas,
    replica_count,
    share_of_tokens,
)
from regard.errors import InputError


def test_results_come_in_order_from_other_threads():
    barrier = threading.Barrier(2)

    def name(number: int) -> tuple[int, str]:
        barrier.wait()  # both threads work at the same time
        return number, threading.current_thread().name

    numbers, names = zip(*map_in_replicas(name, range(6), 2), strict=True)
    assert numbers == tuple(range(6))
    assert len(set(names)) == 2


def test_each_replica_uses_one_core_and_others_keep_theirs():
    threads = torch.get_num_threads()
    counts = list(map_in_replicas(lambda _: torch.get_num_threads(), range(4), 3))
    assert counts == [1] * 4
    assert torch.get_num_threads() == threads
    thread = threading.Thread(target=lambda: counts.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert counts[-1] == threads


def test_threads_change_often_while_replicas_work():
    usual = sys.getswitchinterval()
    intervals = list(map_in_replicas(lambda _: sys.getswitchinterval(), range(2), 2))
    assert intervals == [pytest.approx(SECONDS_TO_SWITCH)] * 2
    assert sys.getswitchinterval() == usual


def test_replicas_compute_without_gradients_like_their_caller():
    def modes(_: int) -> tuple[bool, bool]:
        return torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    assert set(map_in_replicas(modes, range(2), 2)) == {(True, False)}
    with torch.no_grad():
        assert set(map_in_replicas(modes, range(2), 2)) == {(False, False)}
    with torch.inference_mode():
        assert set(map_in_replicas(modes, range(2), 2)) == {(False, True)}


def endless_search(number: int) -> None:
    if number == 0:
        raise InputError("the first batch is bad")
    while True:
        notify_step(torch.zeros(1, 1, dtype=torch.long), 1)


def test_an_error_stops_all_replicas():
    with pytest.raises(InputError, match="the first batch is bad"):
        list(map_in_replicas(endless_search, range(5), 2))


def test_a_listener_hears_all_steps_and_can_stop_them():
    heard = list[list[int]]()

    def on_step(ids: list[int]) -> None:
        heard.append(ids)
        if len(heard) > 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), listen(on_step):
        list(map_in_replicas(endless_search, [1, 2], 2))
    assert not any(heard)


def test_a_caller_that_leaves_stops_all_replicas():
    def numbers(number: int) -> int:
        return number if number == 0 else endless_search(number) or number

    results: Iterator[int] = map_in_replicas(numbers, range(3), 2)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]


def test_a_replica_has_no_replicas():
    inner = list(map_in_replicas(lambda _: replica_count(None), range(2), 2))
    assert inner == [1, 1]
    nested = map_in_replicas(lambda _: list(map_in_replicas(str, range(3), 2)), range(2), 2)
    assert list(nested) == [["0", "1", "2"]] * 2


def test_a_bad_number_of_replicas():
    with pytest.raises(InputError, match="replicas must be 1 or more, not 0"):
        replica_count(0)


def test_shares():
    assert share_of_tokens([10] * 64, 2000, 2) == 330  # two batches
    assert share_of_tokens([10] * 640, 2000, 2) == 2000
    assert share_of_tokens([10] * 9, 2000, 2) == 2000  # too few to share
    assert share_of_tokens([], 2000, 2) == 2000
