"""HTTP/1.1 of one connection, with time limits: for headers, for rests of bodies, for readers.

uvicorn limits the time between two requests only. A client that sends a byte from time to time, or
never reads its answer, would keep a connection forever.
"""

import asyncio
import json
import sys
from http import HTTPStatus
from typing import Any, Literal

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.serve.gate import Gate

HEADER_SECONDS = 10.0  # from the first byte of a request to the end of its headers
REST_SECONDS = 10.0  # for the rest of a body whose request is already answered
READ_SECONDS = 30.0  # without room in the buffer of an answer


class TimedProtocol(H11Protocol):
    """A connection that is closed when its client is too slow; its faults are in the log."""

    header_seconds = HEADER_SECONDS
    rest_seconds = REST_SECONDS
    read_seconds = READ_SECONDS
    deadline: asyncio.TimerHandle | None = None
    reader_deadline: asyncio.TimerHandle | None = None
    waits_for: Literal["headers", "rest"] | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.set_deadline()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.set_deadline()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self.deadline, self.reader_deadline):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def set_deadline(self) -> None:
        """Start a timer if the connection has begun to wait for its client, or stop it."""
        waits_for, seconds = None, 0.0
        if self.transport.is_closing():
            pass
        elif self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None:
            waits_for, seconds = "headers", self.header_seconds
        elif self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY:
            waits_for, seconds = "rest", self.rest_seconds
        if waits_for == self.waits_for:
            return
        if self.deadline is not None:
            self.deadline.cancel()
        self.waits_for, self.deadline = waits_for, None
        if waits_for is not None:
            self.deadline = self.loop.call_later(seconds, self.on_deadline)

    def on_deadline(self) -> None:
        if self.transport.is_closing():
            return
        if self.waits_for == "headers" and self.conn.our_state is h11.IDLE:
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, "the headers did not arrive in time")
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is not HTTP, with the status that h11 suggests."""
        error = sys.exc_info()[1]
        status = HTTPStatus(getattr(error, "error_status_hint", HTTPStatus.BAD_REQUEST))
        self.refuse(status, msg)
        self.transport.close()

    def refuse(self, status: HTTPStatus, message: str) -> None:
        """Write an error, unless an answer has begun, and log it."""
        gate, is_busy = self.app, bool(self.cycle) and not self.cycle.response_complete
        if isinstance(gate, Gate) and not is_busy:  # a request under way has its own line
            gate.record("unknown", "-", status, 0.0)
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        content = json.dumps({"error": {"message": message, "type": "error", "code": status}})
        head = (
            f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(content)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write((head + content).encode())

    # --- clients that do not read

    def pause_writing(self) -> None:
        super().pause_writing()
        self.reader_deadline = self.loop.call_later(self.read_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        if self.reader_deadline is not None:
            self.reader_deadline.cancel()
        super().resume_writing()
