"""Limits of requests; all are on by default."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of requests, and of the work that waits."""

    max_body_bytes: int = 10_000_000
    max_inputs: int = 128  # of one request
    max_characters: int = 50_000  # of all texts of one request
    max_image_pixels: int = 20_000_000
    max_new_tokens: int = 1024
    max_map_tokens: int = 1024  # queries and keys of one attention map
    max_waiting: int = 256  # inputs in the queue of a run
    max_batch: int = 32  # inputs that a model reads together
    timeout_seconds: float = 60.0
    body_seconds: float = 30.0  # for the whole body of a request to arrive
    rest_seconds: float = 10.0  # for the rest of a body that is refused
    retry_after_seconds: int = 1


class ApiError(Exception):
    """An answer with an error status: a message for the client, and perhaps a header."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}
