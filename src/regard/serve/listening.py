"""The socket and the options of uvicorn."""

import socket

import uvicorn

from regard.errors import InputError
from regard.serve.gate import Gate
from regard.serve.protocol import TimedProtocol

SHUTDOWN_SECONDS = 30
KEEP_ALIVE_SECONDS = 5
HEALTH_SECONDS = 30  # for a busy worker to answer its parent
MAX_HEADER_BYTES = 64_000
MAX_UNACCEPTED = 1024  # connections that wait for a process
MAX_CONNECTIONS = 1000  # of each process; more get status 503


def open_socket(host: str, port: int) -> socket.socket:
    """Bind an address, so that a port in use is an error of one line before runs are announced."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once only where the protocol is named; else answers wait 40 ms for the client
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"{host}:{port}: {reason}; choose another --host or --port") from None
    listener.listen(MAX_UNACCEPTED)  # a client that comes early waits, and is not refused
    listener.set_inheritable(True)
    return listener


def server_config(
    app: Gate | str,
    *,
    workers: int = 1,
    protocol: type[TimedProtocol] = TimedProtocol,
) -> uvicorn.Config:
    """Return the options of uvicorn; `app` is an application, or the name of its factory."""
    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        workers=workers,
        timeout_worker_healthcheck=HEALTH_SECONDS,
        http=protocol,
        ws="none",
        lifespan="on",
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
