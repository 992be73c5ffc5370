"""The APIs of LibreTranslate and of Azure Translator v3, for runs that translate.

Both have /translate, /languages and /detect; a request of Azure has `api-version` in its query.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.datastructures import FormData, UploadFile

from regard.files import JsonObject
from regard.serve.gate import matches_key
from regard.serve.limits import ApiError, Limits
from regard.serve.schema import (
    AZURE_QUERY,
    DETECT,
    TRANSLATE,
    TranslationErrorBody,
    error_responses,
)
from regard.serve.served import ServedRun
from regard.serve.work import finish, in_thread
from regard.tasks.base import Prediction
from regard.tasks.generation import TextPrediction

AZURE_VERSION = "3.0"
AUTO = "auto"
MAX_ALTERNATIVES = 10
MAX_AZURE_TEXTS, MAX_AZURE_CHARACTERS = 1000, 50_000


class DetectedLanguage(NamedTuple):
    """A language code, and how sure the detection is, from 0 to 1."""

    code: str
    confidence: float


class Translators:
    """The served runs that translate, by their pair of languages."""

    def __init__(self, runs: Mapping[str, ServedRun]):
        self.runs = {
            served.languages: served
            for served in runs.values()
            if served.languages and "translation" in served.apis()
        }

    @property
    def sources(self) -> list[str]:
        return list(dict.fromkeys(source for source, _ in self.runs))

    def targets(self, source: str) -> list[str]:
        return [target for pair_source, target in self.runs if pair_source == source]

    def find(self, source: str, target: str) -> ServedRun:
        if (source, target) not in self.runs:
            raise ApiError(400, f"{source} to {target} is not supported")
        return self.runs[source, target]

    def detect(self, text: str) -> list[DetectedLanguage]:
        """Return the likely languages of a text among those that can be translated."""
        from py3langid import rank

        scores = {code: log_prob for code, log_prob in rank(text) if code in self.sources}
        if not scores:
            return [DetectedLanguage(code, 1 / len(self.sources)) for code in self.sources]
        best = max(scores.values())
        shares = {code: math.exp(log_prob - best) for code, log_prob in scores.items()}
        total = sum(shares.values())
        return [DetectedLanguage(code, share / total) for code, share in shares.items()]


class TranslationRoutes:
    """The routes of LibreTranslate and Azure Translator."""

    def __init__(self, runs: Mapping[str, ServedRun], limits: Limits, key: str | None):
        self.translators, self.limits, self.key = Translators(runs), limits, key

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(tags=["translation"], responses=error_responses(TranslationErrorBody))
        add = router.add_api_route
        add(
            "/translate",
            self.translate,
            methods=["POST"],
            summary="Translate texts.",
            openapi_extra=TRANSLATE,
        )
        add(
            "/detect",
            self.detect,
            methods=["POST"],
            summary="Detect the language of a text.",
            openapi_extra=DETECT,
        )
        add(
            "/languages",
            self.languages,
            methods=["GET"],
            summary="List the languages.",
            openapi_extra={"parameters": AZURE_QUERY[:1]},
        )
        add(
            "/frontend/settings",
            self.frontend_settings,
            methods=["GET"],
            summary="Settings for LibreTranslate's page.",
        )
        return router

    async def read_values(self, request: Request) -> dict[str, str | list[str]]:
        values = await request_values(request)
        if request.scope.get("regard.key_is_missing") and not matches_key(
            str(values.get("api_key", "")), self.key
        ):
            raise ApiError(403, "a key is needed: api_key")
        return values

    async def translate(self, request: Request) -> JSONResponse:
        if is_azure(request):
            check_azure_key(request)
            return JSONResponse(await translate_azure(request, self.translators, self.limits))
        return JSONResponse(
            await translate_libre(
                request, await self.read_values(request), self.translators, self.limits
            )
        )

    async def detect(self, request: Request) -> JSONResponse:
        if is_azure(request):
            check_azure_key(request)
            texts = await azure_texts(request)
            return JSONResponse([azure_detection(self.translators.detect(text)) for text in texts])
        values = await self.read_values(request)
        text = values.get("q")
        if not isinstance(text, str) or not text:
            raise ApiError(400, "q is missing: give a text")
        found = self.translators.detect(text[: self.limits.max_characters])
        return JSONResponse([libre_detection(language) for language in found])

    async def languages(self, request: Request) -> JSONResponse:
        codes = list(dict.fromkeys(code for pair in self.translators.runs for code in pair))
        if is_azure(request):
            entries = {
                code: {"name": language_name(code), "nativeName": language_name(code), "dir": "ltr"}
                for code in codes
            }
            return JSONResponse({"translation": entries})
        return JSONResponse(
            [
                {
                    "code": code,
                    "name": language_name(code),
                    "targets": self.translators.targets(code),
                }
                for code in self.translators.sources
            ]
        )

    async def frontend_settings(self) -> JsonObject:
        source, target = next(iter(self.translators.runs), ("", ""))
        return {
            "charLimit": self.limits.max_characters,
            "frontendTimeout": 500,
            "apiKeys": self.key is not None,
            "keyRequired": self.key is not None,
            "suggestions": False,
            "filesTranslation": False,
            "supportedFilesFormat": [],
            "language": {
                "source": {"code": source, "name": language_name(source)},
                "target": {"code": target, "name": language_name(target)},
            },
        }


def is_azure(request: Request) -> bool:
    return "api-version" in request.query_params


def check_azure_key(request: Request) -> None:
    if request.scope.get("regard.key_is_missing"):
        raise ApiError(401, "the key is missing or wrong: Ocp-Apim-Subscription-Key")


def language_name(code: str) -> str:
    """Return the English name of a language code, or the code itself."""
    from babel import Locale, UnknownLocaleError

    try:
        return Locale.parse(code, sep="-").get_display_name("en") or code
    except (UnknownLocaleError, ValueError):
        return code


# --- LibreTranslate


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


async def read_json(request: Request) -> object:
    try:
        return await request.json()
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise ApiError(400, "the body is not JSON") from None


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


def check_size(texts: Sequence[str], max_texts: int, max_characters: int) -> None:
    if len(texts) > max_texts:
        raise ApiError(400, f"{len(texts)} texts; at most {max_texts} at once")
    if sum(map(len, texts)) > max_characters:
        raise ApiError(400, f"more than {max_characters:,} characters")


def best_language(translators: Translators, text: str) -> DetectedLanguage:
    found = translators.detect(text)
    if not found:
        raise ApiError(400, "no run of this server translates")
    return found[0]


def libre_detection(language: DetectedLanguage) -> JsonObject:
    return {"confidence": round(100 * language.confidence, 1), "language": language.code}


async def translate_text(
    request: Request, served: ServedRun, text: str, count: int, limits: Limits
) -> list[str]:
    """Return translations of one text, best first; paragraphs are translated one by one."""
    overrides = []
    if count > 1:
        overrides = ["decode.kind=beam", f"decode.width={max(5, count)}", f"decode.n_best={count}"]
    lines = text.split("\n")
    records = [served.to_record(line, "q") for line in lines if line.strip()]
    if not records:
        return [text] * count
    run = served.variant(overrides)
    predictions = iter(await finish(request, limits, served.batcher.predict(run, records)))
    ranked = [outputs_of(next(predictions)) if line.strip() else [line] for line in lines]
    return [
        "\n".join(outputs[min(rank, len(outputs) - 1)] for outputs in ranked)
        for rank in range(count)
    ]


def outputs_of(prediction: Prediction) -> list[str]:
    if isinstance(prediction, TextPrediction) and prediction.outputs:
        return [output.text for output in prediction.outputs]
    return [prediction.text]


# --- Azure Translator


async def azure_texts(request: Request) -> list[str]:
    """Return the texts of a request: [{"text": ...}, ...]."""
    content = await read_json(request)
    if not isinstance(content, list) or not content:
        raise ApiError(400, "the body must be a list of objects with a text")
    texts = list[str]()
    for item in content:
        lowered = {str(k).lower(): v for k, v in item.items()} if isinstance(item, dict) else {}
        if not isinstance(lowered.get("text"), str):
            raise ApiError(400, "each object of the body needs a text")
        texts.append(lowered["text"])
    return texts


async def translate_azure(
    request: Request, translators: Translators, limits: Limits
) -> list[JsonObject]:
    """Return the answer of Azure's /translate."""
    query = request.query_params
    if query["api-version"] != AZURE_VERSION:
        raise ApiError(400, f"api-version must be {AZURE_VERSION}")
    targets = query.getlist("to")
    if not targets:
        raise ApiError(400, "to is missing: give a language code")
    if query.get("textType", "plain").lower() != "plain":
        raise ApiError(400, "textType: only plain is supported")
    texts = await azure_texts(request)
    check_size(texts * len(targets), MAX_AZURE_TEXTS, MAX_AZURE_CHARACTERS)
    answers = list[JsonObject]()
    for text in texts:
        source = query.get("from")
        detected = None if source else best_language(translators, text)
        code = source or (detected.code if detected else "")
        translations = [
            {
                "to": target,
                **await translate_for_azure(request, translators.find(code, target), text, limits),
            }
            for target in targets
        ]
        answer: JsonObject = {"translations": translations}
        if detected:
            score = round(detected.confidence, 2)
            answer["detectedLanguage"] = {"language": detected.code, "score": score}
        answers.append(answer)
    return answers


async def translate_for_azure(
    request: Request, served: ServedRun, text: str, limits: Limits
) -> JsonObject:
    """Return one translation, with the alignment and lengths that were asked for."""
    [translated] = await translate_text(request, served, text, 1, limits)
    translation: JsonObject = {"text": translated}
    query = request.query_params
    if query.get("includeAlignment", "").lower() == "true":
        links = await finish(
            request, limits, in_thread(lambda: word_links(served, text, translated))
        )
        translation["alignment"] = {"proj": links}
    if query.get("includeSentenceLength", "").lower() == "true":
        translation["sentLen"] = {"srcSentLen": [len(text)], "transSentLen": [len(translated)]}
    return translation


def word_links(served: ServedRun, source: str, target: str) -> str:
    """Return links of words by their characters, such as "0:4-0:3 6:9-5:8"; both ends count."""
    aligner = served.run.task.aligner() if served.run.task.has_attention() else None
    if aligner is None or "\n" in source or not source.strip() or not target.strip():
        return ""
    [[links]] = aligner.links([(source, target)], [aligner.default_selection()])
    source_words, target_words = (
        [(match.start(), match.end() - 1) for match in re.finditer(r"\S+", text)]
        for text in (source, target)
    )
    return " ".join(
        "{}:{}-{}:{}".format(*source_words[a], *target_words[b])
        for a, b in sorted(links)
        if a < len(source_words) and b < len(target_words)
    )


def azure_detection(languages: Sequence[DetectedLanguage]) -> JsonObject:
    best = languages[0] if languages else DetectedLanguage("und", 0.0)
    return {
        "language": best.code,
        "score": round(best.confidence, 2),
        "isTranslationSupported": bool(languages),
        "isTransliterationSupported": False,
    }
