"""Random requests to every operation of the schema; `benchmarks/api_fuzz.py` sends many more."""

import random
from typing import Any

import httpx
import pytest

REQUESTS_PER_OPERATION = 12
TEXTS = ["", "the cat", "\x00", "L1", "x" * 50, "\u202e", "decode.kind=greedy", "en", "3.0"]
RUN_NAMES = ["translator", "writer", "talker", "judge"]


def random_value(rng: random.Random, schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """Return a value of a schema, or now and then one of another type."""
    if rng.random() < 0.1:
        return rng.choice([None, True, -1, 1e300, "", [], {}, [[]], {"a": [None]}])
    if "$ref" in schema:
        return random_value(rng, definitions[schema["$ref"].rpartition("/")[2]], definitions)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return random_value(rng, rng.choice(schema[key]), definitions)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {})
            chosen = [
                name
                for name in properties
                if name in schema.get("required", ()) or rng.random() < 0.4
            ]
            return {name: random_value(rng, properties[name], definitions) for name in chosen}
        case "array":
            items = schema.get("items", {})
            return [random_value(rng, items, definitions) for _ in range(rng.randrange(3))]
        case "integer" | "number":
            return rng.choice([0, 1, 2, 5, 100])
        case "boolean":
            return rng.random() < 0.3
        case "null":
            return None
    return rng.choice(TEXTS)


@pytest.fixture(scope="module")
def schema(server) -> dict[str, Any]:
    return httpx.get(f"{server.url}/openapi.json").json()


def test_every_answer_is_in_the_schema(server, schema, seed):
    rng, definitions = random.Random(seed), schema["components"]["schemas"]
    with httpx.Client(base_url=server.url, timeout=None) as client:  # noqa: S113
        for path, operations in schema["paths"].items():
            for method, operation in operations.items():
                content = operation.get("requestBody", {}).get("content", {})
                body_schema = content.get("application/json", {}).get("schema")
                for _ in range(REQUESTS_PER_OPERATION if body_schema else 1):
                    body = random_value(rng, body_schema, definitions) if body_schema else None
                    url = path.replace("{name}", rng.choice(RUN_NAMES))
                    answer = client.request(method, url, json=body)
                    case = (method, url, body, answer.text[:300])
                    assert str(answer.status_code) in operation["responses"], case
                    assert answer.status_code < 500, case
                    kind = answer.headers["content-type"].partition(";")[0]
                    assert kind in operation["responses"][str(answer.status_code)]["content"], case
