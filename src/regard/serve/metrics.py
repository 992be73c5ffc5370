"""Counters for Prometheus: requests, batches, and what waits.

With several workers, each writes its numbers to files of a shared folder. Any of them answers with
the sums of all, also of workers that have died.
"""

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

SHARED_METRICS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # the folder; prometheus_client reads it
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class ServerMetrics:
    """The metrics of one server process; none of them holds text of a user."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "regard_requests_total",
            "Requests by route, method and status.",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "regard_request_seconds",
            "Duration of requests by route, in seconds.",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.batches = Histogram(
            "regard_batch_inputs",
            "Inputs that a model read together, by run.",
            ["run"],
            buckets=BATCH_SIZES,
            registry=self.registry,
        )
        self.waiting = Gauge(
            "regard_waiting_inputs",
            "Inputs in the queue, by run.",
            ["run"],
            registry=self.registry,
            multiprocess_mode="livesum",
        )

    def render(self) -> bytes:
        """Return the metrics in the text format of Prometheus, added up over all workers."""
        if SHARED_METRICS_VARIABLE not in os.environ:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
        return generate_latest(registry)
