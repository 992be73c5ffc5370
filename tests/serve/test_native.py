"""The native API: predictions, attention, counterfactuals, limits and errors."""

import base64
import io
import json
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from PIL import Image

import regard
from regard.errors import InputError
from regard.serve.limits import ApiError
from regard.serve.native_requests import visible_token
from regard.serve.served import read_pixels
from regard.view.page import viewer_data


@pytest.fixture(scope="module")
def http(server):
    with httpx.Client(base_url=server.url, timeout=600) as client:
        yield client


def post(http: httpx.Client, path: str, **body: object) -> httpx.Response:
    return http.post(f"/api/runs/{path}", json=body)


def test_runs_describe_themselves(http):
    runs = {run["name"]: run for run in http.get("/api/runs").json()}
    assert list(runs) == ["translator", "writer", "talker", "judge"]
    assert runs["talker"]["apis"] == ["chat completions"]
    assert runs["translator"]["fields"][0]["name"] == "source"
    assert http.get("/api/runs/judge").json() == runs["judge"]


def test_predictions_are_those_of_the_run(http, runs):
    answer = post(http, "translator/predict", inputs=["the cat", {"source": "a bird"}]).json()
    expected = runs["translator"].predict(["the cat", "a bird"])
    assert [p["text"] for p in answer["predictions"]] == [p.text for p in expected]
    greedy = post(http, "writer/predict", inputs=["the"], set=["decode.max_length=2"]).json()
    expected = runs["writer"].override(["decode.max_length=2"])("the").text
    assert greedy["predictions"][0]["text"] == expected


def test_examples_of_the_data(http, runs):
    examples = http.get("/api/runs/translator/examples").json()
    assert examples[0]["source"] == "the cat sat"
    answer = post(http, "translator/predict", examples=[0]).json()
    assert answer["predictions"][0]["text"] == runs["translator"]("the cat sat").text


def test_a_stream_ends_with_the_prediction(http, runs):
    body = {"inputs": ["the cat"], "stream": True}
    with http.stream("POST", "/api/runs/translator/predict", json=body) as response:
        events = [line for line in response.iter_lines() if line]
    assert response.headers["content-type"].startswith("text/event-stream")
    assert events[-2] == "event: prediction"
    text = json.loads(events[-1].removeprefix("data: "))["text"]
    assert text == runs["translator"]("the cat").text


def test_attention_in_three_formats(http, runs):
    expected = runs["translator"].attention("the cat")
    answer = post(http, "translator/attention", input="the cat").json()
    np.testing.assert_allclose(answer["weights"][0], expected.layers[0].weights, atol=1e-6)
    npz = http.post("/api/runs/translator/attention?format=npz", json={"input": "the cat"})
    assert npz.content[:2] == b"PK"
    page = http.post("/api/runs/translator/attention?format=html", json={"input": "the cat"})
    assert page.text.startswith("<!doctype html>")


def test_attention_for_the_viewer(http, runs):
    answer = post(http, "translator/attention", input="the cat", format="viewer").json()
    expected = viewer_data(runs["translator"].attention("the cat"))
    assert answer == json.loads(json.dumps(expected))
    assert len(answer["choices"]) == len(answer["queries"]["tokens"])
    talk = post(http, "talker/attention", input="the cat", target="the", format="viewer").json()
    tokens, start = talk["queries"]["tokens"], talk["output_start"]
    assert tokens[start] == "</s>"
    assert "".join(tokens[start + 1 :]).strip("▁") == "the"


@pytest.mark.parametrize("name", ["translator", "writer", "talker"])
def test_a_prefix_begins_the_output(http, runs, name):
    plain = post(http, f"{name}/predict", inputs=["the cat"]).json()["predictions"][0]
    shown = post(http, f"{name}/attention", input="the cat", format="viewer").json()
    start = shown["output_start"]
    tokens = shown["queries"]["tokens"][start if name == "translator" else start + 1 :]
    again = post(http, f"{name}/predict", inputs=["the cat"], prefix=tokens[:2]).json()
    assert again["predictions"][0]["text"] == plain["text"]
    other = next(token for token, _ in shown["choices"][start] if token not in (tokens[0], "</s>"))
    chosen = post(http, f"{name}/predict", inputs=["the cat"], prefix=[other]).json()
    assert chosen["predictions"][0] != plain
    events = post(http, f"{name}/predict", inputs=["the cat"], prefix=[other], stream=True).text
    assert json.loads(events.split("data: ")[-1]) == chosen["predictions"][0]
    edited = post(http, f"{name}/counterfactual", input="the cat", prefix=[other], ablate=["L1"])
    assert edited.json()["original"] == chosen["predictions"][0]


def test_tokens_of_the_viewer_are_those_of_the_vocabulary():
    assert visible_token(r"a\u000ab") == "a\nb"
    assert visible_token(r"\u0041 \u12") == r"\u0041 \u12"


def test_a_counterfactual_has_both_predictions(http, runs):
    answer = post(http, "translator/counterfactual", input="the cat", ablate=["L1"]).json()
    assert answer["original"]["text"] == runs["translator"]("the cat").text
    assert set(answer) == {"original", "edited"}
    for name in ("writer", "talker"):
        answer = post(http, f"{name}/counterfactual", input="the cat", ablate=["L1.H2"]).json()
        assert answer["original"]["text"] == runs[name]("the cat").text
    word = runs["translator"]("the cat").text.split()[0]
    force = post(http, "translator/counterfactual", input="the cat", force=[f"{word}->cat"])
    assert force.json()["original"]["text"] == runs["translator"]("the cat").text


def test_scores(http):
    records = [{"source": "the cat sat", "target": "tas tac eht"}]
    assert post(http, "translator/score", records=records).json()["sentences"] == 1


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("nobody/predict", {"inputs": ["x"]}, 404, "there is no run 'nobody'"),
        ("translator/predict", {"inputs": []}, 422, "give at least one"),
        ("translator/predict", {"inputs": ["x"] * 9}, 413, "at most 8"),
        ("translator/predict", {"inputs": ["x" * 2001]}, 413, "2,000 characters"),
        ("translator/predict", {"inputs": [{"text": "x"}]}, 422, "'text' is none of source"),
        ("translator/predict", {"inputs": [3]}, 422, "inputs"),
        ("translator/predict", {"input": "x"}, 422, "input"),
        ("translator/predict", {"inputs": ["x"], "set": ["data.train=x"]}, 422, "decode."),
        ("translator/predict", {"inputs": ["x"], "set": ["decode.kind=none"]}, 400, "decode"),
        ("translator/predict", {"examples": [999]}, 404, "no example 999"),
        ("translator/attention", {}, 422, "an input or an example"),
        ("judge/predict", {"inputs": ["x"], "prefix": "y"}, 400, "does not write tokens"),
        ("talker/predict", {"inputs": ["x"], "prefix": ["nothing"]}, 400, "not in the vocabulary"),
        ("talker/predict", {"inputs": ["x"], "prefix": "the cat " * 30}, 400, "at most 8"),
        ("translator/counterfactual", {"input": "x"}, 422, "heads to ablate"),
        ("translator/counterfactual", {"input": "x", "ablate": ["L9"]}, 400, "L1 to L1"),
        ("judge/attention", {"input": "x", "target": "y"}, 400, "does not write text"),
        ("writer/counterfactual", {"input": "x", "ablate": ["L1.H3"]}, 400, "ablate L1.H3"),
        ("writer/counterfactual", {"input": "x", "force": ["a->b"]}, 400, "no links between words"),
        ("translator/counterfactual", {"input": "x", "force": ["a"]}, 400, "force a: write it as"),
        ("translator/counterfactual", {"input": "x", "force": ["a->b"]}, 400, "no word 'b'"),
    ],
)
def test_errors_have_a_status_and_one_line(http, path, body, status, message):
    response = post(http, path, **body)
    error = response.json()["error"]["message"]
    assert (response.status_code, message in error, "\n" in error) == (status, True, False), error


def test_malformed_and_large_bodies(http):
    headers = {"content-type": "application/json"}
    bad = http.post("/api/runs/judge/predict", content=b"{", headers=headers)
    assert bad.status_code == 422
    large = http.post("/api/runs/judge/predict", content=b"x" * 300_000, headers=headers)
    assert large.status_code == 413

    def chunks():
        yield from [b"x" * 50_000] * 6

    assert (
        http.post("/api/runs/judge/predict", content=chunks(), headers=headers).status_code == 413
    )
    assert http.get("/health").json() == {"status": "ok"}


def test_answers_are_sent_at_once(http, server):
    """Without this option, the body of an answer waits until the client confirms its headers."""
    http.get("/health")
    connections = [item.transport for item in server.server.server_state.connections]
    sockets = [transport.get_extra_info("socket") for transport in connections]
    assert sockets
    assert all(item.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for item in sockets)


def test_other_hosts_are_refused(http):
    assert http.get("/health", headers={"host": "evil.example"}).status_code == 421


def test_every_path_needs_the_key(locked_server, runs):
    with httpx.Client(base_url=locked_server.url) as http:
        for path in ("/", "/health", "/metrics", "/openapi.json", "/api/runs", "/v1/models", "/no"):
            assert http.get(path).status_code == 401, path
        assert http.post("/translate", json={"q": "x"}).status_code == 403
        values = {"q": "the cat", "source": "en", "target": "de", "api_key": "secret"}
        assert http.post("/translate", json=values).status_code == 200
        assert http.get("/health", headers={"x-api-key": "secret"}).status_code == 200
        page = http.get("/?key=secret")
        assert page.status_code == 200
        assert http.get("/api/runs").status_code == 200  # the cookie of the page


def test_requests_are_counted_without_their_text(http):
    post(http, "translator/predict", inputs=["never logged"])
    text = http.get("/metrics").text
    assert (
        'regard_requests_total{method="POST",route="/api/runs/{name}/predict",status="200"}' in text
    )
    assert "regard_batch_inputs_count" in text
    assert "never logged" not in text


def test_sixteen_threads_get_the_answers_of_one(http, runs):
    texts = ["the cat sat", "the dog ran", "a bird", "the fish swam"]
    names = ("translator", "writer")
    calls = [(name, text) for name in names for text in texts]

    def answers(call: tuple[str, str]) -> tuple[object, object, object]:
        name, text = call
        edited = post(http, f"{name}/counterfactual", input=text, ablate=["L1"])
        return (
            post(http, f"{name}/predict", inputs=[text]).json(),
            post(http, f"{name}/attention", input=text).json(),
            edited.json(),
        )

    alone = [answers(call) for call in calls]
    assert alone[0][0]["predictions"][0]["text"] == runs["translator"](texts[0]).text
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(answers, calls * 2))
    for expected, result in zip(alone * 2, together, strict=True):
        check_equal(result, expected)


def check_equal(result: object, expected: object) -> None:
    """Compare answers: texts exactly, numbers up to what a batch may change."""
    if isinstance(expected, float):
        assert result == pytest.approx(expected, abs=1e-5)
    elif isinstance(expected, dict):
        assert list(result) == list(expected)
        for key, value in expected.items():
            check_equal(result[key], value)
    elif isinstance(expected, list | tuple):
        for value, expected_value in zip(result, expected, strict=True):
            check_equal(value, expected_value)
    else:
        assert result == expected


def test_the_schema_describes_every_route(http):
    schema = http.get("/openapi.json").json()
    assert {"/api/runs/{name}/predict", "/v1/chat/completions", "/translate"} <= set(
        schema["paths"]
    )


def test_an_image_is_measured_before_it_is_decoded():
    buffer = io.BytesIO()
    Image.new("1", (3000, 3000)).save(buffer, "PNG")
    with pytest.raises(ApiError, match="3000 x 3000 pixels"):
        read_pixels(buffer.getvalue(), 1_000_000, "image")
    assert read_pixels(buffer.getvalue(), 10_000_000, "image").shape == (3000, 3000, 3)
    with pytest.raises(ApiError, match="not an image"):
        read_pixels(base64.b64decode("AAAA"), 10, "image")


def test_run_serve_is_public():
    assert callable(regard.Run.serve)


def test_serve_names_the_missing_extra(runs, monkeypatch):
    monkeypatch.setattr("regard.run.find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"fastapi is not installed: pip install 'regard\[serve\]"):
        runs["judge"].serve()
