"""The gate before every route: key, host, size of the body, log and metrics.

It is plain ASGI, so that it also guards streams and requests that match no route.
"""

import asyncio
import contextlib
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException

from regard.serve.limits import Limits
from regard.serve.metrics import ServerMetrics

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

KEY_COOKIE = "regard_key"
KNOWN_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
CLIENT_CLOSED_REQUEST = 499
INTERNAL_ERROR = "internal error; the log of the server has details"
MAX_HEADERS, MAX_HEADER_BYTES = 256, 64_000
MAX_LENGTH_DIGITS = 18  # of a content-length
EARLY_STATUSES = {401, 404, 413, 421}  # of answers that do not wait for the body
KEY_IN_BODY_PATHS = {"/translate", "/detect"}  # LibreTranslate's clients send their key in a form
SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"SAMEORIGIN"),
]
log = logging.getLogger("regard.serve")


def matches_key(candidate: str, key: str | None) -> bool:
    """Return whether a request has the key, in a time that does not depend on it."""
    candidate_bytes = candidate.encode(errors="surrogatepass")
    return key is None or hmac.compare_digest(candidate_bytes, key.encode())


def cookie_values(header: str, name: str) -> list[str]:
    """Return the values of a cookie; a malformed header has none."""
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return [value.strip('"') for pair_name, _, value in pairs if pair_name == name]


class Gate:
    """Checks each request before the application sees it, and logs it afterwards."""

    def __init__(
        self,
        app: AsgiApp,
        limits: Limits,
        metrics: ServerMetrics,
        *,
        key: str | None = None,
        hosts: frozenset[str] | None = None,
    ):
        self.app, self.limits, self.metrics = app, limits, metrics
        self.key, self.hosts = key, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, body = time.perf_counter(), RequestBody(receive, self.limits)
        answer = GateResponse(send, body)
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
        try:
            if refusal := self.refusal(scope, headers):
                await answer.refuse(*refusal)
            else:
                await self.app(scope, body.receive, answer.send)
        except HTTPException as error:  # raised by `body` outside of a route
            await answer.refuse(error.status_code, str(error.detail))
        except Exception:
            log.exception("request failed")
            await answer.refuse(500, INTERNAL_ERROR)
        finally:
            route = getattr(scope.get("route"), "path", "unknown")
            method = scope["method"] if scope["method"] in KNOWN_METHODS else "other"
            self.record(route, method, answer.status, time.perf_counter() - start)

    def refusal(self, scope: Scope, headers: dict[str, bytes]) -> tuple[int, str] | None:
        """Return status and message for a request that may not pass."""
        sizes = [len(name) + len(value) for name, value in scope["headers"]]
        if len(sizes) > MAX_HEADERS or sum(sizes) > MAX_HEADER_BYTES:
            return 431, f"more than {MAX_HEADERS} headers or {MAX_HEADER_BYTES:,} bytes of them"
        host = headers.get("host", b"").decode("latin-1").rpartition(":")
        if self.hosts is not None and (host[0] or host[2]) not in self.hosts:
            return 421, "unknown host; start the server with --allow-host to accept it"
        length = headers.get("content-length", b"0")
        if not length.isdigit():
            return 400, "content-length is not a number"
        if len(length) > MAX_LENGTH_DIGITS or int(length) > self.limits.max_body_bytes:
            return 413, size_message(self.limits)
        scope["regard.key_is_missing"] = self.key is not None and not self.has_key(scope, headers)
        if scope["regard.key_is_missing"] and scope["path"] not in KEY_IN_BODY_PATHS:
            return 401, "a key is needed: Authorization: Bearer KEY"
        return None

    def has_key(self, scope: Scope, headers: dict[str, bytes]) -> bool:
        """Return whether a header, the query or the cookie of the page has the key."""
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        candidates = [
            headers.get("authorization", b"").decode("latin-1").removeprefix("Bearer "),
            headers.get("x-api-key", b"").decode("latin-1"),
            headers.get("ocp-apim-subscription-key", b"").decode("latin-1"),
            *query.get("key", []),
            *query.get("api_key", []),
            *cookie_values(headers.get("cookie", b"").decode("latin-1"), KEY_COOKIE),
        ]
        return any(matches_key(candidate, self.key) for candidate in candidates)

    def record(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count and log a request; of what the user sent, only the route is known."""
        self.metrics.requests.labels(route, method, str(int(status))).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "route": route,
            "method": method,
            "status": int(status),
            "ms": round(1000 * seconds, 1),
        }
        log.info(json.dumps(line))


class RequestBody:
    """The body of a request, which may be too large or too slow."""

    def __init__(self, receive: Receive, limits: Limits):
        self.receive_raw, self.limits = receive, limits
        self.size, self.is_complete = 0, False
        self.end = time.monotonic() + limits.body_seconds

    async def receive(self) -> Message:
        """Return the next part; raise an error for a body beyond the limits."""
        if self.is_complete:
            return await self.receive_raw()
        try:
            async with asyncio.timeout(max(0.0, self.end - time.monotonic())):
                message = await self.receive_part()
        except TimeoutError:
            detail = f"the body did not arrive within {self.limits.body_seconds:g} seconds"
            raise HTTPException(408, detail, {"Connection": "close"}) from None
        if message["type"] == "http.disconnect":
            raise HTTPException(CLIENT_CLOSED_REQUEST, "the client has closed the connection")
        if self.size > self.limits.max_body_bytes:
            raise HTTPException(413, size_message(self.limits))
        return message

    async def receive_part(self) -> Message:
        message = await self.receive_raw()
        self.size += len(message.get("body", b""))
        self.is_complete = not message.get("more_body", False)
        return message

    async def discard_rest(self) -> None:
        """Read what a client still sends: a closed connection would hide the answer from it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.limits.rest_seconds):
                while not self.is_complete:
                    await self.receive_part()


def size_message(limits: Limits) -> str:
    return f"the body has more than {limits.max_body_bytes:,} bytes"


class GateResponse:
    """The response of one request: its status, and headers that every response has."""

    def __init__(self, send: Send, body: RequestBody):
        self.send_raw, self.body, self.status = send, body, 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", []), *SECURITY_HEADERS]
        is_last = message["type"] == "http.response.body" and not message.get("more_body")
        if is_last and not self.body.is_complete and self.status in EARLY_STATUSES:
            await self.send_raw({**message, "more_body": True})
            await self.body.discard_rest()
            message = {"type": "http.response.body"}
        await self.send_raw(message)

    async def refuse(self, status: int, message: str) -> None:
        """Answer with an error, unless the response has begun."""
        if self.status:
            return
        body = json.dumps({"error": {"message": message, "type": "error", "code": status}}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})
