"""The routes of LibreTranslate and of Azure Translator v3, for runs that translate.

Both have /translate, /languages and /detect.
"""

from collections.abc import Mapping

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from regard.files import JsonObject
from regard.serve.azure import (
    azure_detection,
    azure_texts,
    check_azure_key,
    is_azure,
    translate_azure,
)
from regard.serve.gate import matches_key
from regard.serve.libretranslate import libre_detection, request_values, translate_libre
from regard.serve.limits import ApiError, Limits
from regard.serve.schema import (
    AZURE_QUERY,
    DETECT,
    TRANSLATE,
    TranslationErrorBody,
    error_responses,
)
from regard.serve.served import ServedRun
from regard.serve.translators import Translators, language_name


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
