"""Parts of the OpenAPI schema that FastAPI cannot infer: errors, formats, the translation APIs."""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from regard.files import JsonObject
from regard.serve.served import CHAT

STATUS_DESCRIPTIONS = {
    400: "The input does not suit the run.",
    401: "The key is missing or wrong.",
    403: "The key is missing or wrong (LibreTranslate).",
    404: "There is no such run.",
    408: "The body did not arrive in time.",
    413: "The request is too large.",
    421: "The server does not answer for this host.",
    422: "The request has a wrong form.",
    429: "Too many requests are waiting.",
    503: "No answer in time.",
}
BODY_APIS = {"CompletionBody": "completions", "ChatBody": CHAT, "EmbeddingBody": "embeddings"}
Responses = dict[int | str, dict[str, object]]


class ErrorBody(BaseModel):
    """The error of a request."""

    error: dict[str, str | int | None]


class TranslationErrorBody(BaseModel):
    """The error of LibreTranslate, a text, or of Azure Translator, an object."""

    error: str | dict[str, str | int | None]


def error_responses(model: type[BaseModel] = ErrorBody) -> Responses:
    """Return the errors that any route may answer."""
    return {
        status: {"model": model, "description": description}
        for status, description in STATUS_DESCRIPTIONS.items()
    }


def media_types(*names: str) -> Responses:
    """Return a successful response with these types beside JSON."""
    content = {name: {"schema": {"type": "string"}} for name in names}
    return {200: {"description": "Successful Response", "content": content}}


STREAM = media_types("text/event-stream")
MAP_FORMATS = media_types("application/zip", "text/html")


def query_parameter(name: str, description: str) -> JsonObject:
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": description,
        "schema": {"type": "string"},
    }


AZURE_QUERY = [
    query_parameter("api-version", "3.0 for the API of Azure Translator; else LibreTranslate."),
    query_parameter("from", "Language of the texts (Azure)."),
    query_parameter("to", "Language to translate to (Azure); may be repeated."),
    query_parameter("includeAlignment", "true for links between words (Azure)."),
]
AZURE_TEXTS: JsonObject = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
}
TEXT_OR_TEXTS: JsonObject = {
    "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
}


def libre_body(required: list[str], properties: JsonObject) -> JsonObject:
    """Return the parameters and the body of a route of LibreTranslate that Azure has too."""
    schema: JsonObject = {"type": "object", "properties": properties, "required": required}
    form = {**schema, "properties": {name: {"type": "string"} for name in properties}}
    content = {
        "application/json": {"schema": {"anyOf": [schema, AZURE_TEXTS]}},
        "application/x-www-form-urlencoded": {"schema": form},
    }
    return {"parameters": AZURE_QUERY, "requestBody": {"required": False, "content": content}}


TRANSLATE = libre_body(
    ["q", "source", "target"],
    {
        "q": {**TEXT_OR_TEXTS, "description": "Text to translate, or a list of texts."},
        "source": {"type": "string", "description": "Language code, or auto.", "example": "en"},
        "target": {"type": "string", "description": "Language code.", "example": "de"},
        "format": {"type": "string", "enum": ["text"]},
        "alternatives": {"type": "integer", "minimum": 0, "maximum": 10},
        "api_key": {"type": "string"},
    },
)
DETECT = libre_body(["q"], {"q": {"type": "string"}, "api_key": {"type": "string"}})


def name_runs(schema: JsonObject, apis: Mapping[str, Sequence[str]]) -> None:
    """Add the names of the runs to the schema of an application, where a client gives one.

    `apis` are the interfaces of each run.
    """
    for path, operations in schema["paths"].items():
        for operation in operations.values() if "{name}" in path else ():
            for parameter in operation["parameters"]:
                if parameter["name"] == "name":
                    parameter["schema"]["enum"] = list(apis)
    for body, api in BODY_APIS.items():
        names = [name for name, offered in apis.items() if api in offered]
        if names:
            schema["components"]["schemas"][body]["properties"]["model"]["enum"] = names
