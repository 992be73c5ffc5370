"""Work of requests: awaited with a time limit, and stopped when the client goes away."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from threading import Event
from typing import TypeVar

from fastapi import Request

from regard.data.corpus import Record
from regard.decoding.listen import listen
from regard.files import JsonObject
from regard.run import Run
from regard.serve.batcher import CancelledWorkError
from regard.serve.gate import CLIENT_CLOSED_REQUEST
from regard.serve.limits import ApiError, Limits
from regard.tasks.base import Prediction

ResultT = TypeVar("ResultT")


async def finish(request: Request, limits: Limits, work: Awaitable[ResultT]) -> ResultT:
    """Await work; cancel it when the client goes away or the time is over."""
    task = asyncio.ensure_future(work)
    watcher = asyncio.ensure_future(wait_for_disconnect(request))
    try:
        await asyncio.wait(
            {task, watcher}, timeout=limits.timeout_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if task.done():
            return task.result()
        if watcher.done():
            raise ApiError(CLIENT_CLOSED_REQUEST, "the client has closed the connection")
        retry = {"Retry-After": str(limits.retry_after_seconds)}
        raise ApiError(503, f"no answer within {limits.timeout_seconds:g} seconds", retry)
    finally:
        task.cancel()
        watcher.cancel()


async def wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def in_thread(function: Callable[[], ResultT]) -> ResultT:
    """Run a function in a thread; if the caller is cancelled, its searches end at their step."""
    is_cancelled = Event()

    def stop_if_cancelled(ids: list[int]) -> None:  # noqa: ARG001
        if is_cancelled.is_set():
            raise CancelledWorkError

    def work() -> ResultT:
        with listen(stop_if_cancelled):
            return function()

    try:
        return await asyncio.get_running_loop().run_in_executor(None, work)
    except asyncio.CancelledError:
        is_cancelled.set()
        raise


async def stream_texts(
    run: Run, record: Record, limits: Limits
) -> AsyncGenerator[str | Prediction]:
    """Yield the text as far as it is written, and at last the prediction."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[str | Prediction | Exception]()
    is_cancelled = Event()

    def put(item: str | Prediction | Exception) -> None:
        if is_cancelled.is_set():
            raise CancelledWorkError
        loop.call_soon_threadsafe(queue.put_nowait, item)

    def work() -> None:
        try:
            put(run.task.stream(record, put))
        except CancelledWorkError:
            return
        except Exception as error:  # delivered to the client by the handler
            put(error)

    loop.run_in_executor(None, work)
    try:
        async with asyncio.timeout(limits.timeout_seconds):
            while True:
                item = await queue.get()
                if isinstance(item, Exception):
                    raise item
                yield item
                if isinstance(item, Prediction):
                    return
    finally:
        is_cancelled.set()


def server_event(data: JsonObject | str, event: str | None = None) -> str:
    """Return one server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"event: {event}\ndata: {text}\n\n" if event else f"data: {text}\n\n"
