"""Unmodified clients of other services against a live server."""

import base64
import time

import numpy as np
import pytest

from regard.errors import InputError
from regard.serve.batcher import Batcher
from regard.serve.limits import ApiError

openai = pytest.importorskip("openai")


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_openai_models(client):
    assert [model.id for model in client.models.list()] == [
        "translator",
        "writer",
        "talker",
        "judge",
    ]
    assert client.models.retrieve("writer").owned_by == "regard"
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        client.models.retrieve("nobody/..")


def test_openai_completion_equals_the_run(client, runs):
    answer = client.completions.create(model="writer", prompt=["the cat", "a bird"], max_tokens=4)
    expected = runs["writer"].override(["decode.max_length=4"]).predict(["the cat", "a bird"])
    assert [choice.text for choice in answer.choices] == [p.best.text for p in expected]
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.choices[0].finish_reason == "length"


def test_openai_stream_is_the_same_text(client):
    options = {"model": "writer", "prompt": "the cat", "max_tokens": 6}
    whole = client.completions.create(**options)
    chunks = list(
        client.completions.create(**options, stream=True, stream_options={"include_usage": True})
    )
    text = "".join(choice.text for chunk in chunks for choice in chunk.choices)
    assert text == whole.choices[0].text
    assert chunks[-1].usage == whole.usage
    assert [choice.finish_reason for choice in chunks[-2].choices] == ["length"]


def test_openai_seed_fixes_what_is_sampled(client):
    options = {"model": "writer", "prompt": "the", "temperature": 1.0, "n": 3, "max_tokens": 8}
    first, second = (client.completions.create(**options, seed=7) for _ in range(2))
    texts = [choice.text for choice in first.choices]
    assert texts == [choice.text for choice in second.choices]
    assert len(set(texts)) > 1


def test_openai_stop_text_ends_the_answer(client):
    whole = client.completions.create(model="writer", prompt="the cat", max_tokens=6)
    text = whole.choices[0].text
    stop = text[2]
    cut = client.completions.create(model="writer", prompt="the cat", max_tokens=6, stop=stop)
    assert cut.choices[0].text == text[: text.index(stop)]
    assert cut.choices[0].finish_reason == "stop"
    chunks = client.completions.create(
        model="writer", prompt="the cat", max_tokens=6, stop=[stop], stream=True
    )
    assert "".join(chunk.choices[0].text for chunk in chunks) == text[: text.index(stop)]


def test_openai_chat(client, runs):
    messages = [{"role": "user", "content": "the cat sat"}]
    answer = client.chat.completions.create(model="talker", messages=messages)
    assert answer.choices[0].message.content == runs["talker"]("the cat sat").text
    chunks = list(client.chat.completions.create(model="talker", messages=messages, stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == answer.choices[0].message.content


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ({"model": "judge", "prompt": "x"}, openai.BadRequestError, "does not support completions"),
        ({"model": "none", "prompt": "x"}, openai.NotFoundError, "does not exist"),
        ({"model": "writer", "prompt": "x" * 3000}, openai.APIStatusError, "characters"),
        ({"model": "writer", "prompt": "x", "logprobs": 3}, openai.BadRequestError, "logprobs"),
        (
            {"model": "writer", "prompt": "x", "presence_penalty": 1.0},
            openai.BadRequestError,
            "presence_penalty",
        ),
        (
            {"model": "writer", "prompt": "x", "max_tokens": 10**6},
            openai.BadRequestError,
            "max_tokens",
        ),
    ],
)
def test_openai_errors_are_its_own(client, call, error, message):
    with pytest.raises(error, match=message) as caught:
        client.completions.create(**call)
    assert 400 <= caught.value.status_code < 500


@pytest.mark.parametrize("role", ["system", "developer"])
def test_openai_instructions_are_reported_as_unused(client, runs, role):
    """Common clients send a system message; the answer and a header say that nothing reads it."""
    question = {"role": "user", "content": "the cat sat"}
    options = {"model": "talker", "messages": [{"role": role, "content": "be kind"}, question]}
    raw = client.chat.completions.with_raw_response.create(**options)
    answer = raw.parse()
    assert answer.choices[0].message.content == runs["talker"]("the cat sat").text
    [warning] = answer.warnings
    assert warning.startswith(f"messages: the model was trained without {role} messages")
    assert raw.headers["x-regard-warning"] == warning
    first, *others = client.chat.completions.create(**options, stream=True)
    assert first.warnings == [warning]
    assert not any(hasattr(chunk, "warnings") for chunk in others)
    plain = client.chat.completions.with_raw_response.create(model="talker", messages=[question])
    assert "x-regard-warning" not in plain.headers
    assert not hasattr(plain.parse(), "warnings")


@pytest.mark.parametrize("roles", [["system"], ["user", "user"], ["user", "assistant"], ["tool"]])
def test_openai_chat_refuses_other_orders(client, roles):
    messages = [{"role": role, "content": "hello"} for role in roles]
    with pytest.raises(openai.BadRequestError, match="must alternate"):
        client.chat.completions.create(model="talker", messages=messages)


@pytest.mark.parametrize("encoding", [None, "float", "base64"])
def test_openai_embeddings(client, runs, encoding):
    """The client asks for base64 unless it is told otherwise, and decodes it."""
    texts = ["the cat sat", "a bird"]
    options = {} if encoding is None else {"encoding_format": encoding}
    answer = client.embeddings.create(model="judge", input=texts, **options)
    rows = [item.embedding for item in answer.data]
    if encoding == "base64":
        rows = [np.frombuffer(base64.b64decode(row), "<f4") for row in rows]
    np.testing.assert_allclose(rows, runs["judge"].embed(texts), atol=1e-6)
    assert [item.index for item in answer.data] == [0, 1]
    assert answer.usage.total_tokens == answer.usage.prompt_tokens > 0


def test_openai_embeddings_of_other_runs_are_refused(client):
    with pytest.raises(openai.BadRequestError, match="does not support embeddings"):
        client.embeddings.create(model="translator", input="x")
    with pytest.raises(openai.BadRequestError, match="dimensions"):
        client.embeddings.create(model="judge", input="x", dimensions=2)


def test_openai_waits_when_the_queue_is_full(server, monkeypatch):
    """The client sends a request again after 429, not before the time that the server asks for."""
    times, predict = list[float](), Batcher.predict

    async def predict_later(self, run, records):
        times.append(time.monotonic())
        if len(times) == 1:
            raise ApiError(429, "too many requests are waiting", {"Retry-After": "1"})
        return await predict(self, run, records)

    monkeypatch.setattr(Batcher, "predict", predict_later)
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=2) as client:
        client.completions.create(model="writer", prompt="the", max_tokens=2)
    assert len(times) == 2
    assert times[1] - times[0] >= 0.99
    times.clear()
    with (
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client,
        pytest.raises(openai.RateLimitError, match="too many"),
    ):
        client.completions.create(model="writer", prompt="the", max_tokens=2)


def test_openai_error_in_a_stream(client, monkeypatch, runs):
    def fail(record, on_text):
        on_text("the ")
        raise InputError("the text is too long")

    monkeypatch.setattr(runs["talker"].task, "stream", fail)
    messages = [{"role": "user", "content": "the cat sat"}]
    with pytest.raises(openai.APIError, match="too long"):
        list(client.chat.completions.create(model="talker", messages=messages, stream=True))


def test_langchain(server, runs):
    langchain = pytest.importorskip("langchain_openai")
    options = {"base_url": f"{server.url}/v1", "api_key": "none"}
    chat = langchain.ChatOpenAI(model="talker", **options)
    assert chat.invoke("the cat sat").content == runs["talker"]("the cat sat").text
    assert "".join(part.content for part in chat.stream("the cat sat")) == (
        runs["talker"]("the cat sat").text
    )
    messages = [("system", "be kind"), ("human", "the cat sat")]
    assert chat.invoke(messages).content == runs["talker"]("the cat sat").text
    writer = langchain.OpenAI(model="writer", temperature=0, max_tokens=4, **options)
    expected = runs["writer"].override(["decode.max_length=4"])("the cat").best.text
    assert writer.batch(["the cat", "the cat"]) == [expected, expected]
    embeddings = langchain.OpenAIEmbeddings(
        model="judge", check_embedding_ctx_length=False, **options
    )
    np.testing.assert_allclose(
        embeddings.embed_query("the cat"), runs["judge"].embed(["the cat"])[0], atol=1e-6
    )


def test_openai_key(locked_server):
    with (
        openai.OpenAI(base_url=f"{locked_server.url}/v1", api_key="wrong", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError),
    ):
        client.models.list()
    with openai.OpenAI(base_url=f"{locked_server.url}/v1", api_key="secret") as client:
        assert list(client.models.list())


def test_libretranslatepy(server, runs):
    api = pytest.importorskip("libretranslatepy").LibreTranslateAPI(f"{server.url}/")
    assert api.translate("the cat sat", "en", "de") == runs["translator"]("the cat sat").text
    assert api.languages() == [{"code": "en", "name": "English", "targets": ["de"]}]
    assert api.detect("the cat sat")[0]["language"] == "en"


def test_deep_translator(server, runs):
    translators = pytest.importorskip("deep_translator")
    translator = translators.LibreTranslator(
        source="en", target="de", use_free_api=False, custom_url=f"{server.url}/", api_key="none"
    )
    assert translator.translate("the dog ran") == runs["translator"]("the dog ran").text


def test_azure_translator(server, runs):
    text = pytest.importorskip("azure.ai.translation.text")
    from azure.core.credentials import AzureKeyCredential

    client = text.TextTranslationClient(endpoint=server.url, credential=AzureKeyCredential("none"))
    [answer] = client.translate(
        body=["the cat sat"], to_language=["de"], from_language="en", include_alignment=True
    )
    assert answer.translations[0].text == runs["translator"]("the cat sat").text
    assert answer.translations[0].alignment is not None
    from azure.core.exceptions import HttpResponseError

    with pytest.raises(HttpResponseError, match="en to fr is not supported"):
        client.translate(body=["the cat sat"], to_language=["fr"], from_language="en")
