"""The API of regard itself: /api/runs."""

from collections.abc import AsyncGenerator, Sequence
from typing import Annotated

from fastapi import APIRouter, File, Path, Query, Request, Response, UploadFile
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, Field

from regard.data.corpus import Record
from regard.errors import InputError
from regard.explain.counterfactual import predict_edited
from regard.files import JsonObject
from regard.run import Run
from regard.serve.limits import ApiError, Limits
from regard.serve.native_requests import (
    AttentionBody,
    CounterfactualBody,
    MapFormat,
    OneInputBody,
    PredictBody,
    ScoreBody,
    check_characters,
    check_count,
    check_map_size,
    input_records,
)
from regard.serve.schema import MAP_FORMATS, STREAM, error_responses
from regard.serve.served import InputValue, ServedRun, preview
from regard.serve.work import finish, in_thread, server_event, stream_texts
from regard.tasks.base import Prediction
from regard.view.attention_map import AttentionMap
from regard.view.export import as_json, as_npz
from regard.view.page import html_page, viewer_data

RunName = Annotated[str, Path(description="Name of a run, from GET /api/runs.")]


class PredictionsAnswer(BaseModel):
    """The predictions of a request, in the order of its inputs."""

    predictions: list[JsonObject] = Field(examples=[[{"text": "1994-05-03"}]])


class NativeRoutes:
    """The routes below /api."""

    def __init__(self, runs: dict[str, ServedRun], limits: Limits):
        self.runs, self.limits = runs, limits

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(prefix="/api", tags=["runs"], responses=error_responses())
        add = router.add_api_route
        add("/runs", self.list_runs, methods=["GET"], summary="List the runs of this server.")
        add("/runs/{name}", self.describe_run, methods=["GET"], summary="Describe a run.")
        add(
            "/runs/{name}/examples",
            self.list_examples,
            methods=["GET"],
            summary="List examples of the data of a run.",
        )
        add(
            "/runs/{name}/predict",
            self.predict,
            methods=["POST"],
            summary="Predict for one or many inputs.",
            responses=STREAM,
            response_model=PredictionsAnswer,
        )
        add(
            "/runs/{name}/predict-file",
            self.predict_file,
            methods=["POST"],
            summary="Predict for uploaded images.",
            response_model=PredictionsAnswer,
        )
        add(
            "/runs/{name}/attention",
            self.attention,
            methods=["POST"],
            summary="Return the attention of one input.",
            response_model=None,
            responses=MAP_FORMATS,
        )
        add(
            "/runs/{name}/details",
            self.details,
            methods=["POST"],
            summary="Return more about one input, such as the likeliest next words.",
        )
        add(
            "/runs/{name}/counterfactual",
            self.counterfactual,
            methods=["POST"],
            summary="Predict with edited attention.",
        )
        add(
            "/runs/{name}/score",
            self.score,
            methods=["POST"],
            summary="Score records with targets.",
        )
        return router

    def find_run(self, name: str) -> ServedRun:
        if name not in self.runs:
            raise ApiError(404, f"there is no run {name!r}; GET /api/runs lists them")
        return self.runs[name]

    async def read_inputs(
        self,
        request: Request,
        served: ServedRun,
        inputs: Sequence[InputValue],
        examples: Sequence[int],
        prefix: str | Sequence[str] | None,
    ) -> list[Record]:
        """Return the records of a request; images and data are read in a thread."""
        if not served.reads_images and not examples:
            return input_records(served, inputs, examples, prefix)
        work = in_thread(lambda: input_records(served, inputs, examples, prefix))
        return await finish(request, self.limits, work)

    async def read_input(self, request: Request, served: ServedRun, body: OneInputBody) -> Record:
        """Return the one record of a request."""
        if (body.input is None) == (body.example is None):
            raise ApiError(422, "give an input or an example")
        inputs = [] if body.input is None else [body.input]
        examples = [] if body.example is None else [body.example]
        return (await self.read_inputs(request, served, inputs, examples, body.prefix))[0]

    async def list_runs(self) -> list[JsonObject]:
        return [served.describe() for served in self.runs.values()]

    async def describe_run(self, name: RunName) -> JsonObject:
        return self.find_run(name).describe()

    async def list_examples(self, request: Request, name: RunName) -> list[JsonObject]:
        served = self.find_run(name)
        examples = await finish(request, self.limits, in_thread(lambda: served.examples))
        return [
            {"index": n, "values": served.form_values(record), **preview(record)}
            for n, record in enumerate(examples)
        ]

    async def predict(
        self, request: Request, name: RunName, body: PredictBody
    ) -> Response | JsonObject:
        served = self.find_run(name)
        records = await self.read_inputs(request, served, body.inputs, body.examples, body.prefix)
        run = served.variant(body.set)
        if body.stream:
            if len(records) != 1:
                raise ApiError(422, "stream: give one input")
            events = native_events(stream_texts(run, records[0], self.limits))
            return StreamingResponse(events, media_type="text/event-stream")
        predictions = await finish(request, self.limits, served.batcher.predict(run, records))
        return {"predictions": [prediction_dict(prediction) for prediction in predictions]}

    async def predict_file(
        self, request: Request, name: RunName, files: Annotated[list[UploadFile], File()]
    ) -> JsonObject:
        served = self.find_run(name)
        fields = served.run.task.input_fields
        if len(fields) != 1 or fields[0].kind != "image":
            raise ApiError(422, "files: this run does not read images")
        check_count(len(files), self.limits)
        contents = [await file.read() for file in files]

        def read_files() -> list[Record]:
            return [
                served.image_record(data, f"file {number}")
                for number, data in enumerate(contents, 1)
            ]

        records = await finish(request, self.limits, in_thread(read_files))
        predictions = await finish(
            request, self.limits, served.batcher.predict(served.run, records)
        )
        return {"predictions": [prediction_dict(prediction) for prediction in predictions]}

    async def attention(
        self,
        request: Request,
        name: RunName,
        body: AttentionBody,
        format: Annotated[MapFormat, Query()] = "json",  # noqa: A002
    ) -> Response:
        served = self.find_run(name)
        run, record = served.variant(body.set), await self.read_input(request, served, body)
        check_map_size(served, record)

        def compute_map() -> AttentionMap:
            if body.target is None:
                return run.task.output_map(record)
            return run.attention(record, body.target)

        attention_map = await finish(request, self.limits, in_thread(compute_map))
        return map_response(attention_map, body.format or format, self.limits)

    async def details(self, request: Request, name: RunName, body: OneInputBody) -> JsonObject:
        served = self.find_run(name)
        record = await self.read_input(request, served, body)
        task = served.run.task
        return await finish(request, self.limits, in_thread(lambda: task.details(record)))

    async def counterfactual(
        self, request: Request, name: RunName, body: CounterfactualBody
    ) -> JsonObject:
        served = self.find_run(name)
        run, record = served.variant(body.set), await self.read_input(request, served, body)
        if not body.ablate and not body.force:
            raise ApiError(422, "give heads to ablate or links to force")
        if body.ablate and not run.task.has_attention():
            raise ApiError(400, "ablate: this run has no attention")
        if body.force and not run.task.accepts_links:
            raise ApiError(400, f"force: the task {run.task.name} has no links between words")
        original, edited = await finish(
            request,
            self.limits,
            in_thread(lambda: edited_predictions(run, record, body)),
        )
        return {"original": prediction_dict(original), "edited": prediction_dict(edited)}

    async def score(self, request: Request, name: RunName, body: ScoreBody) -> JsonObject:
        served = self.find_run(name)
        fields = served.run.task.input_fields
        if not fields or served.reads_images:
            raise ApiError(422, "score: records of this run cannot be sent; use `regard score`")
        check_count(len(body.records), self.limits)
        check_characters(sum(len(str(record)) for record in body.records), self.limits)
        return dict(
            await finish(
                request, self.limits, in_thread(lambda: score_records(served, body.records))
            )
        )


def edited_predictions(
    run: Run, record: Record, body: CounterfactualBody
) -> tuple[Prediction, Prediction]:
    """Return both predictions; errors name the fields of the request, not options."""
    try:
        return predict_edited(run, record, body.ablate, body.force)
    except InputError as error:
        message = str(error).replace("--force-attention", "force").replace("--ablate", "ablate")
        raise InputError(message) from None


def score_records(served: ServedRun, records: Sequence[Record]) -> JsonObject:
    """Return the metrics of records, whose fields may be missing or of any type."""
    try:
        return dict(served.run.score(list(records)))
    except (KeyError, TypeError, AttributeError, IndexError):
        raise ApiError(422, "records: a field is missing or has a wrong type") from None


def prediction_dict(prediction: Prediction) -> JsonObject:
    return {**prediction.as_dict(), "text": prediction.text}


async def native_events(items: AsyncGenerator[str | Prediction]) -> AsyncGenerator[str]:
    """Yield events: `text` with the text so far, then `prediction` or `error`."""
    try:
        async for item in items:
            if isinstance(item, str):
                yield server_event({"text": item}, "text")
            else:
                yield server_event(prediction_dict(item), "prediction")
    except InputError as error:
        yield server_event({"error": {"message": str(error)}}, "error")
    except TimeoutError:
        yield server_event({"error": {"message": "no answer in time"}}, "error")
    finally:
        await items.aclose()


def map_response(attention_map: AttentionMap, format_name: str, limits: Limits) -> Response:
    tokens = max(len(attention_map.queries.tokens), len(attention_map.keys.tokens))
    if tokens > limits.max_map_tokens:
        raise ApiError(413, f"{tokens} tokens; a map has at most {limits.max_map_tokens}")
    if format_name == "npz":
        headers = {"Content-Disposition": 'attachment; filename="attention.npz"'}
        return Response(as_npz(attention_map), media_type="application/zip", headers=headers)
    if format_name == "viewer":
        return JSONResponse(viewer_data(attention_map))
    if format_name == "html":
        return Response(html_page(attention_map), media_type="text/html")
    return Response(as_json(attention_map), media_type="application/json")
