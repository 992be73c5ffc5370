"""Dynamic batching: together when several wait, with the answers of each alone."""

import asyncio
import threading

import pytest

from regard.errors import InputError
from regard.run import Run
from regard.serve.batcher import Batcher
from regard.serve.limits import ApiError, Limits
from regard.tasks.base import Prediction


class SlowTask:
    """A task that waits for a signal, and remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.go = threading.Event()

    def predict(self, records):
        self.batches.append([record["text"] for record in records])
        assert self.go.wait(60)
        if any(record["text"] == "bad" for record in records):
            raise InputError("bad text")
        return [Prediction(record["text"].upper()) for record in records]


class FakeRun(Run):
    """A run that has a task and nothing else."""

    def __init__(self) -> None:
        self.task = SlowTask()


def records(*texts: str) -> list[dict[str, str]]:
    return [{"text": text} for text in texts]


async def run_calls(batcher: Batcher, run: FakeRun, calls: list[list[dict[str, str]]]) -> list:
    """Start the first call, let the others wait behind it, then let all go."""
    tasks = [asyncio.create_task(batcher.predict(run, calls[0]))]
    while not run.task.batches:
        assert not tasks[0].done()
        await asyncio.sleep(0.001)
    tasks += [asyncio.create_task(batcher.predict(run, call)) for call in calls[1:]]
    await asyncio.sleep(0.01)
    run.task.go.set()
    return await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def batcher():
    batcher = Batcher("test", Limits(max_waiting=6, max_batch=4))
    yield batcher
    batcher.close()


def texts(result: list[Prediction]) -> list[str]:
    return [prediction.text for prediction in result]


def test_waiting_requests_are_predicted_together(batcher):
    run = FakeRun()
    calls = [records("a"), records("b"), records("c", "d"), records("e", "f")]
    results = asyncio.run(run_calls(batcher, run, calls))
    assert [texts(result) for result in results] == [["A"], ["B"], ["C", "D"], ["E", "F"]]
    assert run.task.batches == [["a"], ["b", "c", "d"], ["e", "f"]]


def test_equal_inputs_of_two_requests_are_predicted_once(batcher):
    run = FakeRun()
    results = asyncio.run(run_calls(batcher, run, [records("a"), records("b"), records("b")]))
    assert [texts(result) for result in results] == [["A"], ["B"], ["B"]]
    assert run.task.batches == [["a"], ["b"]]


def test_a_request_that_repeats_an_input_is_alone(batcher):
    run = FakeRun()
    asyncio.run(run_calls(batcher, run, [records("a"), records("b", "b"), records("c")]))
    assert run.task.batches == [["a"], ["b", "b"], ["c"]]


def test_one_bad_request_does_not_harm_the_others(batcher):
    run = FakeRun()
    results = asyncio.run(run_calls(batcher, run, [records("a"), records("bad"), records("c")]))
    assert texts(results[0]) == ["A"]
    assert isinstance(results[1], InputError)
    assert texts(results[2]) == ["C"]


def test_a_full_queue_answers_429(batcher):
    run = FakeRun()
    calls = [records("a"), records("b", "c", "d", "e"), records("f", "g", "h")]
    results = asyncio.run(run_calls(batcher, run, calls))
    assert isinstance(results[2], ApiError)
    assert (results[2].status, results[2].headers) == (429, {"Retry-After": "1"})


def test_a_cancelled_request_is_not_predicted(batcher):
    run = FakeRun()

    async def cancel_second() -> None:
        first = asyncio.create_task(batcher.predict(run, records("a")))
        while not run.task.batches:
            assert not first.done()
            await asyncio.sleep(0.001)
        second = asyncio.create_task(batcher.predict(run, records("b")))
        await asyncio.sleep(0.01)
        second.cancel()
        await asyncio.sleep(0.01)
        run.task.go.set()
        await first

    asyncio.run(cancel_second())
    batcher.close()
    assert run.task.batches == [["a"]]


def test_a_closed_queue_finishes_and_takes_no_more(batcher):
    batcher.close()
    with pytest.raises(ApiError, match="shutting down"):
        asyncio.run(batcher.predict(FakeRun(), records("a")))
