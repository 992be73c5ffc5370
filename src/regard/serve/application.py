"""The application: routes, errors in the form that each client expects, and the page."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException

import regard
from regard.errors import InputError
from regard.files import JsonObject
from regard.run import Run
from regard.serve.azure import is_azure
from regard.serve.gate import INTERNAL_ERROR, KEY_COOKIE, Gate
from regard.serve.limits import ApiError, Limits
from regard.serve.metrics import ServerMetrics
from regard.serve.native import NativeRoutes
from regard.serve.openai import OpenAIRoutes, error_body
from regard.serve.schema import name_runs
from regard.serve.served import ServedRun
from regard.serve.site import page_html, page_policy
from regard.serve.translation import TranslationRoutes

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]", "testserver"})
LIBRE_PATHS = {"/translate", "/detect", "/languages", "/frontend/settings"}
MAX_MESSAGE_CHARACTERS = 500  # of an error; it may quote the request
DESCRIPTION = """Predictions, attention and counterfactuals of the runs of this server.

`/v1` speaks OpenAI's protocol; `/translate` those of LibreTranslate and Azure Translator."""


def build_app(
    runs: Mapping[str, Run],
    *,
    limits: Limits | None = None,
    key: str | None = None,
    hosts: frozenset[str] | None = LOCAL_HOSTS,
    languages: Mapping[str, tuple[str, str]] | None = None,
) -> Gate:
    """Return an ASGI application that serves runs under their names.

    `hosts` are the names that requests may call the server by; None accepts any. `languages` are
    those of source and target of runs that translate, where the data does not say them.
    """
    limits, metrics = limits or Limits(), ServerMetrics()
    served = {
        name: ServedRun(
            name,
            run,
            limits,
            languages=(languages or {}).get(name),
            on_batch=metrics.batches.labels(name).observe,
            on_waiting=metrics.waiting.labels(name).set,
        )
        for name, run in runs.items()
    }

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        for served_run in served.values():
            served_run.batcher.close()

    app = FastAPI(
        title="regard",
        version=regard.__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # these pages would load scripts from another host
        redoc_url=None,
    )
    app.include_router(NativeRoutes(served, limits).router())
    app.include_router(OpenAIRoutes(served, limits).router())
    app.include_router(TranslationRoutes(served, limits, key).router())
    add_pages(app, metrics, key)
    add_error_handlers(app)
    name_runs(app.openapi(), {name: run.apis() for name, run in served.items()})
    return Gate(app, limits, metrics, key=key, hosts=hosts)


def add_pages(app: FastAPI, metrics: ServerMetrics, key: str | None) -> None:
    """Add the page, and what supervisors and monitoring ask for."""

    @app.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        response = HTMLResponse(page_html(), headers={"Content-Security-Policy": page_policy()})
        if key is not None and "key" in request.query_params:
            response.set_cookie(KEY_COOKIE, key, httponly=True, samesite="strict")
        return response

    @app.get("/health", tags=["server"], summary="Say that the server is alive.")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/ready", tags=["server"], summary="Say that all runs are loaded.")
    async def ready() -> dict[str, str]:
        return {"status": "ready"}

    @app.get("/metrics", include_in_schema=False)
    async def show_metrics() -> Response:
        return Response(metrics.render(), media_type="text/plain; version=0.0.4")


def add_error_handlers(app: FastAPI) -> None:
    """Convert exceptions to answers; a fault of the client is never a 5xx."""

    @app.exception_handler(ApiError)
    async def on_api_error(request: Request, error: ApiError) -> JSONResponse:
        return error_response(request, error.status, error.message, error.headers)

    @app.exception_handler(InputError)
    async def on_input_error(request: Request, error: InputError) -> JSONResponse:
        return error_response(request, 400, str(error))

    @app.exception_handler(HTTPException)
    async def on_http_error(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers or {})
        return error_response(request, error.status_code, str(error.detail), headers)

    @app.exception_handler(Exception)  # a bug, which the gate logs
    async def on_bug(request: Request, _: Exception) -> JSONResponse:
        return error_response(request, 500, INTERNAL_ERROR)

    @app.exception_handler(RequestValidationError)
    async def on_validation_error(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body")
        return error_response(request, 422, f"{place}: {first['msg']}" if place else first["msg"])


def error_response(
    request: Request, status: int, message: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return an error in the form of the API that the request belongs to."""
    message = message[:MAX_MESSAGE_CHARACTERS].encode(errors="backslashreplace").decode()
    content: JsonObject = {"error": error_body(message, status)}
    if request.url.path in LIBRE_PATHS:
        content = {"error": message}
        if is_azure(request):
            content = {"error": {"code": status * 1000, "message": message}}
    return JSONResponse(content, status, headers)
