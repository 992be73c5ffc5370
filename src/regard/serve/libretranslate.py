"""The API of LibreTranslate: parameters from JSON, a form or the query."""

import json
from collections.abc import Mapping

from fastapi import Request
from starlette.datastructures import FormData, UploadFile

from regard.files import JsonObject
from regard.serve.limits import ApiError, Limits
from regard.serve.translators import (
    DetectedLanguage,
    Translators,
    best_language,
    check_size,
    read_json,
    translate_text,
)

AUTO = "auto"
MAX_ALTERNATIVES = 10


async def request_values(request: Request) -> dict[str, str | list[str]]:
    """Return parameters from JSON, a form or the query, as LibreTranslate takes them."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    values: dict[str, str | list[str]] = dict(request.query_params)
    if kind == "application/json":
        content = await read_json(request)
        if not isinstance(content, dict):
            raise ApiError(400, "the body must be an object of JSON")
        for name, value in content.items():
            is_list = isinstance(value, list) and all(isinstance(text, str) for text in value)
            values[name] = value if is_list or isinstance(value, str) else json.dumps(value)
    elif kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        form: FormData = await request.form()
        texts = {k: v for k, v in form.items() if not isinstance(v, UploadFile)}
        values |= {name: text.replace("\r\n", "\n") for name, text in texts.items()}
    return values


async def translate_libre(
    request: Request,
    values: Mapping[str, str | list[str]],
    translators: Translators,
    limits: Limits,
) -> JsonObject:
    """Return the answer of LibreTranslate's /translate."""
    text = values.get("q")
    if not text:
        raise ApiError(400, "q is missing: give a text, or a list of texts")
    texts = text if isinstance(text, list) else [text]
    source, target = (str(values.get(name, "")) for name in ("source", "target"))
    for name, code in (("source", source), ("target", target)):
        if not code:
            raise ApiError(400, f"{name} is missing: give a language code")
    if values.get("format", "text") != "text":
        raise ApiError(400, "format: only text is supported")
    count = alternative_count(values)
    check_size(texts, limits.max_inputs, limits.max_characters)
    detected = [best_language(translators, text) for text in texts] if source == AUTO else []
    sources = [language.code for language in detected] or [source] * len(texts)
    results = [
        await translate_text(request, translators.find(code, target), text, count + 1, limits)
        for code, text in zip(sources, texts, strict=True)
    ]
    answers: list[JsonObject] = []
    for index, (best, *others) in enumerate(results):
        answer: JsonObject = {"translatedText": best}
        if detected:
            answer["detectedLanguage"] = libre_detection(detected[index])
        if count:
            answer["alternatives"] = others
        answers.append(answer)
    if isinstance(text, str):
        return answers[0]
    return {name: [answer[name] for answer in answers] for name in answers[0]}


def alternative_count(values: Mapping[str, str | list[str]]) -> int:
    value = values.get("alternatives", "0")
    if not isinstance(value, str) or not value.isdecimal() or int(value) > MAX_ALTERNATIVES:
        raise ApiError(400, f"alternatives: give a number from 0 to {MAX_ALTERNATIVES}")
    return int(value)


def libre_detection(language: DetectedLanguage) -> JsonObject:
    return {"confidence": round(100 * language.confidence, 1), "language": language.code}
