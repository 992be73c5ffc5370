"""The gate before every route: key, host, size of the body, log and metrics.

It is plain ASGI, so that it also guards streams and requests that match no route.
"""

import asyncio
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
MAX_LENGTH_DIGITS = 18  # of a content-length
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
        self.size_message = f"the body has more than {limits.max_body_bytes:,} bytes"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, answer = time.perf_counter(), GateResponse(send)
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
        try:
            if refusal := self.refusal(scope, headers):
                await answer.refuse(*refusal)
            else:
                await self.app(scope, self.bounded(receive), answer.send)
        except HTTPException as error:  # raised by `bounded` outside of a route
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
        host = headers.get("host", b"").decode("latin-1").rpartition(":")
        if self.hosts is not None and (host[0] or host[2]) not in self.hosts:
            return 421, "unknown host; start the server with --allow-host to accept it"
        length = headers.get("content-length", b"0")
        if not length.isdigit():
            return 400, "content-length is not a number"
        if len(length) > MAX_LENGTH_DIGITS or int(length) > self.limits.max_body_bytes:
            return 413, self.size_message
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

    def bounded(self, receive: Receive) -> Receive:
        """Return a `receive` that ends a body that is too large or too slow."""
        size, is_complete, seconds = 0, False, self.limits.body_seconds
        end = time.monotonic() + seconds

        async def receive_bounded() -> Message:
            nonlocal size, is_complete
            if is_complete:
                return await receive()
            try:
                async with asyncio.timeout(max(0.0, end - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                close = {"Connection": "close"}
                detail = f"the body did not arrive within {seconds:g} seconds"
                raise HTTPException(408, detail, close) from None
            if message["type"] == "http.disconnect":
                raise HTTPException(CLIENT_CLOSED_REQUEST, "the client has closed the connection")
            size += len(message.get("body", b""))
            if size > self.limits.max_body_bytes:
                raise HTTPException(413, self.size_message)
            is_complete = not message.get("more_body", False)
            return message

        return receive_bounded

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


class GateResponse:
    """The response of one request: its status, and headers that every response has."""

    def __init__(self, send: Send):
        self.send_raw, self.status = send, 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", []), *SECURITY_HEADERS]
        await self.send_raw(message)

    async def refuse(self, status: int, message: str) -> None:
        """Answer with an error, unless the response has begun."""
        if self.status:
            return
        body = json.dumps({"error": {"message": message, "type": "error", "code": status}}).encode()
        headers = [(b"content-type", b"application/json")]
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})
