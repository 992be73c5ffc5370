"""Counters for Prometheus: requests, batches, and what waits."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

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
            "regard_waiting_inputs", "Inputs in the queue, by run.", ["run"], registry=self.registry
        )

    def watch_queue(self, name: str, waiting: Callable[[], float]) -> None:
        self.waiting.labels(name).set_function(waiting)

    def render(self) -> bytes:
        """Return the metrics in the text format of Prometheus."""
        return generate_latest(self.registry)
