"""Laws of every task in the catalogue, on a tiny run that `regard.fit` trains."""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len
from rich.text import Text
from support.examples import example_runs, records_of

import regard
from regard.decoding.listen import listen
from regard.run import Run
from regard.tasks.catalogue import TASKS
from regard.tasks.protocols import TextEmbedder
from regard.text.special import END
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

NAMES = [*TASKS, "music-tunes", "fold-distances"]


@pytest.fixture(scope="session")
def task_folder(shared) -> Callable[[str], Path]:
    """`task_folder("tag")`: a folder with a run that is fitted once for all workers."""
    return example_runs(shared)


@pytest.fixture(params=NAMES, scope="session")
def run(request: pytest.FixtureRequest, task_folder) -> Run:
    return regard.load(task_folder(request.param) / "run")


def as_json(predictions) -> list[Any]:
    """Return predictions as plain data, with floats rounded to what batching may change."""
    return json.loads(
        json.dumps([p.as_dict() for p in predictions]), parse_float=lambda x: round(float(x), 4)
    )


def test_the_examples_cover_the_catalogue(task_examples):
    assert set(NAMES) == set(task_examples) >= set(TASKS)


def test_predictions_are_json_and_deterministic(run):
    records = records_of(run)
    predictions = run.predict(records)
    assert len(predictions) == len(records)
    for prediction in predictions:
        assert isinstance(prediction.text, str)
        json.dumps(prediction.as_dict(), allow_nan=False)
    assert [p.as_dict() for p in run.predict(records)] == [p.as_dict() for p in predictions]


def test_predictions_do_not_depend_on_batch_or_order(run):
    records = records_of(run)
    together = as_json(run.predict(records))
    assert as_json(run.predict(records[::-1])) == together[::-1]
    assert [as_json([run(record)])[0] for record in records] == together


def test_vectors_of_texts_do_not_depend_on_batch_or_order(run):
    texts = ["ann saw a cat", "", "the dog", "bob gave eve the small ball. it was red."]
    if not isinstance(run.task, TextEmbedder):
        with pytest.raises(ValueError, match=f"task {run.task.name}: has no vectors of texts"):
            run.embed(texts)
        return
    if run.settings.model.kind == "bidaf":
        with pytest.raises(ValueError, match="BiDAF reads a question with its context"):
            run.embed(texts)
        return
    vectors = run.embed(texts)
    assert (vectors.dtype, vectors.shape[0], run.embed([]).shape) == (
        np.float32,
        len(texts),
        (0, vectors.shape[1]),
    )
    np.testing.assert_allclose(run.embed(texts[::-1])[::-1], vectors, atol=1e-6)
    np.testing.assert_allclose(np.concatenate([run.embed([t]) for t in texts]), vectors, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_render_fits_eighty_columns(run):
    for record in records_of(run)[:2]:
        if not run.task.has_attention():
            continue
        for ink in ("ascii", "truecolor"):
            text = run.task.render(record, Surface(80, ink))
            widest = max(cell_len(Text.from_ansi(line).plain) for line in text.splitlines())
            assert widest <= 80


def test_rows_of_attention_sum_to_at_most_one(run):
    record = records_of(run)[0]
    layers = run.attention(record).layers
    assert layers
    for layer in layers:
        weights = np.asarray(layer.weights)
        assert (weights >= 0).all()
        assert (weights.sum(-1) <= 1 + 1e-4).all()


def check_labels(attention: AttentionMap) -> None:
    """Every weight has a label, no mass is missing without a word, and merged words keep it."""
    shape = len(attention.queries.tokens), len(attention.keys.tokens)
    merged = attention.merge_subwords()
    labels = [layer.label for layer in attention.layers]
    assert len(set(labels)) == len(labels)
    for layer, merged_layer, label in zip(attention.layers, merged.layers, labels, strict=True):
        assert layer.weights.shape[1:] == shape
        sums = layer.weights.sum(-1)
        if not attention.reader and "sentence" not in layer.name:  # which say what the rest is
            rows = layer.weights.sum((-1, -2)) if layer.kind == "grid" else sums
            assert ((abs(rows - 1) < 1e-3) | (rows == 0)).all()
        words = np.asarray(attention.queries.word_ids)
        means = np.stack([sums[:, words == word].mean(-1) for word in sorted(set(words))], -1)
        np.testing.assert_allclose(merged_layer.weights.sum(-1), means, atol=1e-5)
        assert "_" not in label
        assert ".layers" not in label


def test_every_weight_has_its_label(run):
    for record in records_of(run):
        check_labels(run.attention(record))


@pytest.fixture(scope="session")
def pretrained_run(tmp_path_factory, encoder_examples) -> Path:
    data, model, settings = encoder_examples["pretrain"]
    path = tmp_path_factory.mktemp("pretrained") / "run"
    settings = {**settings, "train": {**settings["train"], "examples_per_batch": 4}}
    regard.fit("pretrain", data, model, steps=1, folder=path, settings=settings, progress=False)
    return path


@pytest.mark.parametrize("start", ["new", "pretrained"])
@pytest.mark.parametrize("name", ["tag", "understand", "classify", "answer"])
def test_every_piece_of_a_word_has_its_label(
    name, start, tmp_path, encoder_examples, pretrained_run
):
    """Encoders that read pieces show them between their special tokens."""
    data, model, settings = encoder_examples[name]
    settings = {**settings, "train": {"examples_per_batch": 4}}
    if start == "pretrained":
        model, settings["start"] = None, {"run": str(pretrained_run)}
        del settings["text"]
    path = tmp_path / "run"
    run = regard.fit(name, data, model, steps=1, folder=path, settings=settings, progress=False)
    text = "annbob gin catdog in foxjar"
    record = {"question": "who is annbob ?", "text": text} if name == "answer" else {"text": text}
    attention = run.attention(record)
    check_labels(attention)
    words = text.split()
    if name == "answer":
        assert attention.keys.tokens[0] == "<s>"
        assert attention.keys.tokens[-2:] == ("</s>", "(the context)")
        return
    assert len(attention.keys.tokens) > len(words) + 2  # pieces
    assert attention.keys.tokens == attention.queries.tokens
    assert attention.keys.tokens[0] == "<s>"
    assert attention.keys.tokens[-1] == "</s>"
    assert attention.merge_subwords().keys.tokens == ("<s>", *words, "</s>")


def test_scores_are_numbers(run):
    is_pretraining = run.settings.task == "pretrain"  # which is scored on whole documents
    scores = run.score("train" if is_pretraining else records_of(run))
    assert all(isinstance(value, float | int | str) for value in scores.values())
    json.dumps(scores)


def test_threads_do_not_disturb_each_other(run):
    records = records_of(run)
    expected = [run(record).as_dict() for record in records]
    maps = [[layer.weights for layer in run.attention(record).layers] for record in records]

    def both(index: int) -> None:
        record = records[index % len(records)]
        assert run(record).as_dict() == expected[index % len(records)]
        shown = [layer.weights for layer in run.attention(record).layers]
        for weights, other in zip(shown, maps[index % len(records)], strict=True):
            np.testing.assert_array_equal(weights, other)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(both, range(8)))


def test_check_survives_a_broken_file(run, tmp_path):
    """A file of noise is one line of error, or a finding."""
    data = run.settings.data
    if "train" not in type(data).model_fields or Path(data.train).is_dir():
        return
    broken = tmp_path / Path(data.train).name
    broken.write_bytes(b"\x00\xff{\n\n" + bytes(range(256)))
    settings = run.settings.model_copy(
        update={"data": data.model_copy(update={"train": str(broken)})}
    )
    builder = TASKS[settings.task].builder()
    with pytest.raises(ValueError, match=broken.name) as error:
        builder.check_data(settings, lambda _name, _total, records: records, lambda *_: None)
    assert "\n" not in str(error.value)


LOAD_AND_PREDICT = """
import json, sys
from pathlib import Path
import regard
for folder in map(Path, sys.argv[1:]):
    run = regard.load(folder / "run")
    split = "train" if "train" in run.corpus().splits else "test"
    records = json.loads((folder / "records.json").read_text()) or run.read_split(split)[:3]
    print(json.dumps([prediction.as_dict() for prediction in run.predict(records)]))
"""


def test_loaded_runs_predict_the_same_in_a_new_process(task_folder):
    """Weights, vocabularies and settings survive a save and a load elsewhere, for every task."""
    folders = [task_folder(name) for name in NAMES]
    command = [sys.executable, "-c", LOAD_AND_PREDICT, *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for folder, line in zip(folders, done.stdout.splitlines(), strict=True):
        saved = json.loads((folder / "predictions.json").read_text())
        assert json.loads(line) == saved, folder.name


def test_a_stream_ends_with_the_prediction(run):
    """Texts of a stream grow, and the last prediction is that of `predict`."""
    record = records_of(run)[0]
    texts: list[str] = []
    assert run.task.stream(record, texts.append).as_dict() == run(record).as_dict()
    assert all(isinstance(text, str) for text in texts)


def test_input_fields_make_records(run):
    """The values of a form become the record that `parse` makes of a line."""
    fields = run.task.input_fields
    if not fields or any(field.kind == "image" for field in fields):
        return
    record = records_of(run)[0]
    values = {field.name: record.get(field.name, field.example) for field in fields}
    if all(isinstance(value, str | list) and value for value in values.values()):
        assert run.predict([run.task.to_record(values, "form")])


def output_tokens(run: Run, record: dict[str, Any]) -> list[str]:
    """Return the tokens that a search has written for one record, without the end."""
    steps: list[list[int]] = []
    with listen(steps.append):
        run(record)
    vocabulary = getattr(run.task, "target", None) or run.task.text
    ids = [token_id for token_id in steps[-1] if token_id != END]
    return [vocabulary.token(token_id) for token_id in ids if token_id < vocabulary.size]


def test_a_prefix_begins_the_output(run):
    """A prefix that the model would write changes nothing; another one begins the output."""
    record = records_of(run)[0]
    if not run.task.accepts_prefix:
        return
    if run.settings.decode.kind == "beam":
        run = run.override(["decode.kind=greedy"])
    expected, tokens = run(record).as_dict(), output_tokens(run, record)
    for length in (1, len(tokens)):
        again = run({**record, "prefix": tokens[:length]}).as_dict()
        assert as_json_data(again) == as_json_data(expected), length
    if run.settings.decode.kind != "greedy":
        return
    choices = run.attention(record, target="").annotations.choices
    start = run.attention(record, target="").annotations.output_start
    other = next(c.token for c in choices[start] if c.token not in (*tokens[:1], "</s>", "<s>"))
    assert output_tokens(run, {**record, "prefix": [other]})[0] == other
    ended = {**record, "prefix": [*tokens[:1], "</s>"]}
    assert output_tokens(run, ended) == tokens[:1]
    with pytest.raises(ValueError, match=r"prefix: token 1 .'no such token'. is not in the voc"):
        run({**record, "prefix": ["no such token"]})
    with pytest.raises(ValueError, match="prefix: 2000 tokens, but this output has at most"):
        run({**record, "prefix": tokens[:1] * 2000})


def as_json_data(data: dict[str, Any]) -> Any:
    return json.loads(json.dumps(data), parse_float=lambda x: round(float(x), 4))
