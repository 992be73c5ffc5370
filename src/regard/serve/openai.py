"""The API of OpenAI: /v1/models, /v1/completions, /v1/chat/completions, /v1/embeddings."""

import base64
import secrets
import struct
import time
from collections.abc import AsyncGenerator, Callable, Sequence

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from regard.data.corpus import Record
from regard.errors import InputError
from regard.files import JsonObject
from regard.run import Run
from regard.serve.limits import ApiError, Limits
from regard.serve.native_requests import check_count
from regard.serve.openai_requests import (
    ChatBody,
    CompletionBody,
    EmbeddingBody,
    SamplingBody,
    TokenIds,
    to_turns,
    unused_message,
)
from regard.serve.schema import STREAM, error_responses
from regard.serve.served import CHAT, ServedRun
from regard.serve.work import finish, in_thread, server_event, stream_texts
from regard.tasks.base import Prediction
from regard.tasks.generation import TextPrediction
from regard.tasks.protocols import TextCompleter, TextEmbedder

WARNING_HEADER = "X-Regard-Warning"


class Generation:
    """The common part of completions and chat: the run, its records, its answers."""

    def __init__(
        self,
        served: ServedRun,
        body: SamplingBody,
        records: Sequence[Record],
        max_tokens: int | None,
        prompt_tokens: int,
    ):
        body.check_supported()
        self.served, self.body, self.records = served, body, records
        self.stop, self.prompt_tokens = body.stop_texts(), prompt_tokens
        limit = served.limits.max_new_tokens
        if max_tokens is not None and max_tokens > limit:
            raise ApiError(400, f"max_tokens: at most {limit}")
        self.run: Run = served.variant(body.overrides(max_tokens))
        self.id = f"regard-{secrets.token_hex(12)}"
        self.created = int(time.time())
        decode = getattr(self.run.settings, "decode", None)
        self.max_length: int = getattr(decode, "max_length", limit)

    def header(self, kind: str) -> JsonObject:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.served.name,
        }

    def cut(self, text: str) -> tuple[str, bool]:
        """Return the text before the first stop text, and whether there was one."""
        ends = [end for stop in self.stop if (end := text.find(stop)) >= 0]
        return (text[: min(ends)], True) if ends else (text, False)

    def finish_reason(self, prediction: Prediction, was_cut: bool) -> str:
        return "length" if not was_cut and token_count(prediction) >= self.max_length else "stop"

    def usage(self, predictions: Sequence[Prediction]) -> JsonObject:
        new_tokens = sum(token_count(prediction) for prediction in predictions)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": new_tokens,
            "total_tokens": self.prompt_tokens + new_tokens,
        }

    async def stream(
        self,
        kind: str,
        to_choice: Callable[[str, str | None], JsonObject],
        opening: JsonObject | None = None,
        warnings: JsonObject | None = None,
    ) -> AsyncGenerator[str]:
        """Yield the events of a streamed answer: texts as they are written, then [DONE].

        A text that may still change is held back, as is the beginning of a stop text.
        """
        header = self.header(kind)
        if opening is not None:
            yield server_event({**header, "choices": [opening], **(warnings or {})})
        items, sent = stream_texts(self.run, self.records[0], self.served.limits), ""
        prediction, was_cut = None, False
        try:
            async for item in items:
                text, was_cut = self.cut(item if isinstance(item, str) else output_text(item))
                is_last = was_cut or isinstance(item, Prediction)
                ready = text if is_last else text[: self.safe_length(text)]
                if ready.startswith(sent) and ready != sent and (is_last or self.is_monotone()):
                    yield server_event({**header, "choices": [to_choice(ready[len(sent) :], None)]})
                    sent = ready
                if is_last:
                    prediction = item if isinstance(item, Prediction) else None
                    break
            reason = "stop" if prediction is None else self.finish_reason(prediction, was_cut)
            yield server_event({**header, "choices": [to_choice("", reason)]})
            if (self.body.stream_options or {}).get("include_usage"):
                used = [] if prediction is None else [prediction]
                yield server_event({**header, "choices": [], "usage": self.usage(used)})
        except (InputError, TimeoutError) as error:
            yield server_event({"error": error_body(str(error) or "no answer in time", 400)})
        finally:
            await items.aclose()
        yield server_event("[DONE]")

    def is_monotone(self) -> bool:
        """Return whether the search never takes a token back."""
        return getattr(getattr(self.run.settings, "decode", None), "kind", "beam") != "beam"

    def safe_length(self, text: str) -> int:
        """Return the length of the text before what may be the beginning of a stop text."""
        for start in range(max(0, len(text) - max(map(len, self.stop), default=0)), len(text)):
            if any(stop.startswith(text[start:]) for stop in self.stop):
                return start
        return len(text)


class OpenAIRoutes:
    """The routes below /v1."""

    def __init__(self, runs: dict[str, ServedRun], limits: Limits):
        self.runs, self.limits = runs, limits

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(prefix="/v1", tags=["openai"], responses=error_responses())
        add = router.add_api_route
        add("/models", self.list_models, methods=["GET"], summary="List the runs as models.")
        add(
            "/models/{name:path}", self.describe_model, methods=["GET"], summary="Describe a model."
        )
        add(
            "/completions",
            self.complete,
            methods=["POST"],
            summary="Continue texts.",
            response_model=None,
            responses=STREAM,
        )
        add(
            "/chat/completions",
            self.chat,
            methods=["POST"],
            summary="Reply to a conversation.",
            response_model=None,
            responses=STREAM,
        )
        add("/embeddings", self.embed, methods=["POST"], summary="Return a vector for each text.")
        return router

    def find_run(self, name: str, api: str) -> ServedRun:
        if name not in self.runs:
            raise ApiError(404, f"the model {name!r} does not exist; GET /v1/models lists them")
        if api not in self.runs[name].apis():
            raise ApiError(400, f"the model {name!r} does not support {api}")
        return self.runs[name]

    async def list_models(self) -> JsonObject:
        return {"object": "list", "data": [model_entry(name) for name in self.runs]}

    async def describe_model(self, name: str) -> JsonObject:
        if name not in self.runs:
            raise ApiError(404, f"the model {name!r} does not exist; GET /v1/models lists them")
        return model_entry(name)

    async def complete(self, request: Request, body: CompletionBody) -> Response | JsonObject:
        served = self.find_run(body.model, "completions")
        if body.logprobs or body.suffix or (body.best_of or 1) > (body.n or 1):
            raise ApiError(400, "logprobs, suffix and best_of are not supported; leave them out")
        prompts = to_texts(served, body.prompt)
        copies = body.n or 1
        check_count(len(prompts) * copies, self.limits)
        records = [served.to_record(prompt, "prompt") for prompt in prompts for _ in range(copies)]
        generation = Generation(
            served, body, records, body.max_tokens, sum(map(len, encode(served, prompts)))
        )
        if body.stream:
            if len(records) > 1:
                raise ApiError(400, "stream: give one prompt and n = 1")
            opening = completion_choice(0, prompts[0], None) if body.echo else None
            events = generation.stream(
                "text_completion", lambda text, why: completion_choice(0, text, why), opening
            )
            return StreamingResponse(events, media_type="text/event-stream")
        predictions = await finish(
            request, self.limits, served.batcher.predict(generation.run, records)
        )
        choices = list[JsonObject]()
        for index, prediction in enumerate(predictions):
            text, was_cut = generation.cut(output_text(prediction))
            reason = generation.finish_reason(prediction, was_cut)
            echo = prompts[index // copies] if body.echo else ""
            choices.append(completion_choice(index, echo + text, reason))
        usage = generation.usage(predictions)
        return {**generation.header("text_completion"), "choices": choices, "usage": usage}

    async def chat(
        self, request: Request, response: Response, body: ChatBody
    ) -> Response | JsonObject:
        served = self.find_run(body.model, CHAT)
        if body.logprobs:
            raise ApiError(400, "logprobs is not supported; leave it out")
        warning = unused_message(body.messages)
        headers = {WARNING_HEADER: warning} if warning else {}
        warnings: JsonObject = {"warnings": [warning]} if warning else {}
        turns, copies = to_turns(body.messages), body.n or 1
        [field] = served.run.task.input_fields
        record = served.to_record({field.name: turns}, "messages")
        max_tokens = body.max_completion_tokens or body.max_tokens
        generation = Generation(
            served, body, [record] * copies, max_tokens, sum(map(len, encode(served, turns)))
        )
        if body.stream:
            if copies > 1:
                raise ApiError(400, "stream: n must be 1")
            events = generation.stream(
                "chat.completion.chunk",
                lambda text, why: chunk_choice({"content": text} if text else {}, why),
                chunk_choice({"role": "assistant", "content": ""}, None),
                warnings,
            )
            return StreamingResponse(events, media_type="text/event-stream", headers=headers)
        predictions = await finish(
            request, self.limits, served.batcher.predict(generation.run, generation.records)
        )
        choices = list[JsonObject]()
        for index, prediction in enumerate(predictions):
            text, was_cut = generation.cut(output_text(prediction))
            message = {"role": "assistant", "content": text, "refusal": None}
            reason = generation.finish_reason(prediction, was_cut)
            choice = {"index": index, "message": message, "finish_reason": reason}
            choices.append({**choice, "logprobs": None})
        answer = {**generation.header("chat.completion"), "choices": choices, **warnings}
        response.headers.update(headers)
        return {**answer, "usage": generation.usage(predictions)}

    async def embed(self, request: Request, body: EmbeddingBody) -> JsonObject:
        served = self.find_run(body.model, "embeddings")
        task = served.run.task
        if body.dimensions is not None:
            raise ApiError(400, "dimensions is not supported; leave it out")
        texts = to_texts(served, body.input)
        check_count(len(texts), self.limits)
        if not isinstance(task, TextEmbedder):
            raise ApiError(400, f"the model {body.model!r} does not support embeddings")
        vectors = await finish(request, self.limits, in_thread(lambda: task.embed(texts)))
        data = [
            {"object": "embedding", "index": index, "embedding": to_embedding(row, body)}
            for index, row in enumerate(vectors.tolist())
        ]
        tokens = sum(map(len, encode(served, texts)))
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "model": body.model, "data": data, "usage": usage}


def model_entry(name: str) -> JsonObject:
    return {"id": name, "object": "model", "created": 0, "owned_by": "regard"}


def completion_choice(index: int, text: str, reason: str | None) -> JsonObject:
    return {"index": index, "text": text, "finish_reason": reason, "logprobs": None}


def chunk_choice(delta: JsonObject, reason: str | None) -> JsonObject:
    return {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}


def error_body(message: str, status: int) -> JsonObject:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"message": message, "type": kind, "param": None, "code": None}


def to_embedding(row: list[float], body: EmbeddingBody) -> list[float] | str:
    if body.encoding_format == "base64":
        return base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode()
    return row


def output_text(prediction: Prediction) -> str:
    """Return what the model has written, without the prompt."""
    if isinstance(prediction, TextPrediction) and prediction.outputs:
        return prediction.best.text
    return prediction.text


def token_count(prediction: Prediction) -> int:
    if isinstance(prediction, TextPrediction) and prediction.outputs:
        return len(prediction.best.ids)
    return len(prediction.text.split())


def encode(served: ServedRun, texts: Sequence[str]) -> list[list[int]]:
    """Return the ids of texts, to count them."""
    tokenizer = getattr(served.run.task, "text", None)
    if tokenizer is None:
        return [list(range(len(text.split()))) for text in texts]
    return tokenizer.encode_ids(list(texts))


def to_texts(served: ServedRun, value: str | list[str] | TokenIds | list[TokenIds]) -> list[str]:
    """Return the texts of a prompt; ids are decoded with the vocabulary of the run."""
    items: Sequence[object] = value if isinstance(value, list) else [value]
    if items and all(isinstance(item, int) for item in items):
        items = [items]
    if not items:
        raise ApiError(400, "give at least one text")
    texts = [item if isinstance(item, str) else decode_ids(served, item) for item in items]
    if sum(map(len, texts)) > served.limits.max_characters:
        raise ApiError(413, f"more than {served.limits.max_characters:,} characters")
    return texts


def decode_ids(served: ServedRun, ids: object) -> str:
    task = served.run.task
    if not isinstance(task, TextCompleter) or not isinstance(ids, list):
        raise ApiError(400, f"the model {served.name!r} reads texts, not ids")
    if any(not 0 <= token_id < task.text.size for token_id in ids):
        raise ApiError(400, f"an id is not in the vocabulary of {task.text.size} tokens")
    return task.text.decode(ids)
