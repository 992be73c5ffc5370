"""The API of Azure Translator v3, whose requests have `api-version` in their query."""

from collections.abc import Sequence

from fastapi import Request

from regard.files import JsonObject
from regard.serve.limits import ApiError, Limits
from regard.serve.served import ServedRun
from regard.serve.translators import (
    DetectedLanguage,
    Translators,
    best_language,
    check_size,
    read_json,
    translate_text,
    word_links,
)
from regard.serve.work import finish, in_thread

AZURE_VERSION = "3.0"
MAX_AZURE_TEXTS, MAX_AZURE_CHARACTERS = 1000, 50_000


def is_azure(request: Request) -> bool:
    return "api-version" in request.query_params


def check_azure_key(request: Request) -> None:
    if request.scope.get("regard.key_is_missing"):
        raise ApiError(401, "the key is missing or wrong: Ocp-Apim-Subscription-Key")


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


def azure_detection(languages: Sequence[DetectedLanguage]) -> JsonObject:
    best = languages[0] if languages else DetectedLanguage("und", 0.0)
    return {
        "language": best.code,
        "score": round(best.confidence, 2),
        "isTranslationSupported": bool(languages),
        "isTransliterationSupported": False,
    }
