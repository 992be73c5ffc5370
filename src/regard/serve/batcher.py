"""Dynamic batching: requests that wait at the same time are predicted together.

A thread takes what waits, up to `max_batch` inputs, as soon as it has finished the last batch. So a
lone request never waits for others, and a busy server reads many inputs at once. The tasks promise
that a prediction does not depend on its batch.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Thread

from regard.data.corpus import Record
from regard.decoding.listen import listen
from regard.run import Run
from regard.serve.limits import ApiError, Limits
from regard.tasks.base import Prediction

CountCallback = Callable[[int], None]
"""Called with a number of inputs."""


class CancelledWorkError(Exception):
    """Nobody awaits the result any more."""


@dataclass
class Job:
    """The inputs of one request, and where its predictions go."""

    run: Run
    records: Sequence[Record]
    future: "asyncio.Future[list[Prediction]]"

    def finish(self, predictions: list[Prediction] | Exception) -> None:
        """Deliver predictions or an exception to the loop of the request."""
        loop = self.future.get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._set, predictions)

    def _set(self, predictions: list[Prediction] | Exception) -> None:
        if self.future.done():
            return
        if isinstance(predictions, Exception):
            self.future.set_exception(predictions)
        else:
            self.future.set_result(predictions)


class Batcher:
    """The queue of one run, and the thread that works on it.

    `on_batch` gets the number of inputs of each batch, `on_waiting` of those in the queue.
    """

    def __init__(
        self,
        name: str,
        limits: Limits,
        on_batch: CountCallback | None = None,
        on_waiting: CountCallback | None = None,
    ):
        self.limits, self.on_batch, self.on_waiting = limits, on_batch, on_waiting
        self.jobs, self.waiting, self.is_closed = deque[Job](), 0, False
        self.condition = Condition()
        self.thread = Thread(target=self.work, name=f"batcher-{name}", daemon=True)
        self.thread.start()

    async def predict(self, run: Run, records: Sequence[Record]) -> list[Prediction]:
        """Return predictions; `run` is the run of this queue, perhaps with other settings."""
        job = Job(run, records, asyncio.get_running_loop().create_future())
        with self.condition:
            if self.is_closed:
                raise ApiError(503, "the server is shutting down")
            if self.waiting and self.waiting + len(records) > self.limits.max_waiting:
                retry = {"Retry-After": str(self.limits.retry_after_seconds)}
                raise ApiError(429, "too many requests are waiting; try again later", retry)
            self.jobs.append(job)
            self.count_waiting(len(records))
            self.condition.notify()
        return await job.future

    def count_waiting(self, change: int) -> None:
        self.waiting += change
        if self.on_waiting is not None:
            self.on_waiting(self.waiting)

    def close(self) -> None:
        """Finish what waits, take no more, and end the thread."""
        with self.condition:
            self.is_closed = True
            self.condition.notify()
        self.thread.join()

    def work(self) -> None:
        while jobs := self.next_jobs():
            self.process(jobs)

    def next_jobs(self) -> list[Job]:
        """Wait for jobs; return those of one batch, or none when the queue is closed and empty."""
        with self.condition:
            while not self.jobs and not self.is_closed:
                self.condition.wait()
            batch, size = list[Job](), 0
            while self.jobs and (not batch or self.fits(batch[0], self.jobs[0], size)):
                job = self.jobs.popleft()
                self.count_waiting(-len(job.records))
                batch.append(job)
                size += len(job.records)
            return batch

    def fits(self, first: Job, job: Job, size: int) -> bool:
        return job.run is first.run and size + len(job.records) <= self.limits.max_batch

    def process(self, jobs: Sequence[Job]) -> None:
        """Predict the jobs together; if that fails, each alone, so that one cannot harm others."""
        jobs = [job for job in jobs if not job.future.done()]
        if not jobs:
            return
        try:
            predictions = predict_together(jobs)
        except CancelledWorkError:
            return
        except Exception as error:  # the handler of the request decides what the client reads
            if len(jobs) == 1:
                jobs[0].finish(error)
            else:
                for job in jobs:
                    self.process([job])
            return
        if self.on_batch is not None:
            self.on_batch(sum(len(job.records) for job in jobs))
        for job, results in zip(jobs, predictions, strict=True):
            job.finish(results)


def predict_together(jobs: Sequence[Job]) -> list[list[Prediction]]:
    """Return the predictions of each job; equal inputs of different jobs are predicted once.

    A repeated input within one batch is sampled with another seed. So two jobs must share it, to
    get what each would get alone; a job that repeats an input itself is predicted alone.
    """

    def stop_if_nobody_waits(ids: list[int]) -> None:  # noqa: ARG001
        if all(job.future.done() for job in jobs):
            raise CancelledWorkError

    keys = [[record_key(record) for record in job.records] for job in jobs]
    if len(jobs) > 1 and any(len(set(job_keys)) < len(job_keys) for job_keys in keys):
        return [predictions for job in jobs for predictions in predict_together([job])]
    with listen(stop_if_nobody_waits):
        if len(jobs) == 1:
            return [list(jobs[0].run.task.predict(jobs[0].records))]
        unique = {
            key: record
            for job, job_keys in zip(jobs, keys, strict=True)
            for key, record in zip(job_keys, job.records, strict=True)
        }
        predicted = dict(zip(unique, jobs[0].run.task.predict(list(unique.values())), strict=True))
    return [[predicted[key] for key in job_keys] for job_keys in keys]


def record_key(record: Record) -> str:
    """Return a text that differs for different inputs; arrays count as themselves."""
    return json.dumps(record, default=id, sort_keys=True)
