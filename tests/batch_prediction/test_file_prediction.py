"""Predictions of files: every row once and in order, in parts that are not done twice."""

import gzip
import json
import os
import re
import signal

import pyarrow
import pyarrow.parquet
import pytest
from support.batch_inputs import LINES, TEXTS

from regard.batch_prediction import part_worker, worker_pool
from regard.batch_prediction.file_prediction import RunSource
from regard.batch_prediction.input_parts import InputPart, find_files
from regard.batch_prediction.part_answers import AnswerOptions
from regard.batch_prediction.part_worker import PartWorker, WorkerSetup
from regard.batch_prediction.worker_pool import WorkerPool
from regard.cli.app import main
from regard.errors import InputError
from regard.run import Run


@pytest.fixture(autouse=True)
def _small(small_parts):
    """Cut all inputs into parts of a few rows."""


def expected_lines(run: Run) -> list[str]:
    predictions = iter(run.predict([line for line in LINES if line]))
    return [next(predictions).text if line else "" for line in LINES]


def test_every_format_has_every_row_in_order(predict, inputs, run, tmp_path):
    assert predict() == (2 * len(LINES) + 2 * len(TEXTS), 0)
    output = tmp_path / "out"
    names = sorted(str(p.relative_to(output)) for p in output.rglob("*") if p.is_file())
    assert names == [".regard/manifest.json", "a.txt", "b.txt.gz", "d.parquet", "deep/c.jsonl"]
    assert (output / "a.txt").read_text().split("\n") == [*expected_lines(run), ""]
    assert gzip.decompress((output / "b.txt.gz").read_bytes()) == (output / "a.txt").read_bytes()
    objects = [json.loads(line) for line in (output / "deep/c.jsonl").read_text().splitlines()]
    task = run.task
    expected = [
        {"id": n, "prompt": text, **run(text).as_dict(), **task.details(task.parse(text, ""))}
        for n, text in enumerate(TEXTS)
    ]
    assert [row["text"] for row in objects] == [row["text"] for row in expected]
    assert [row["id"] for row in objects] == list(range(len(TEXTS)))
    assert [set(row) for row in objects] == [set(row) for row in expected]
    table = pyarrow.parquet.read_table(output / "d.parquet").to_pylist()
    assert [(row["id"], row["prompt"], row["text"], row["error"]) for row in table] == [
        (row["id"], row["prompt"], row["text"], None) for row in expected
    ]
    outputs = [json.loads(row["outputs"]) for row in table]
    assert [output[0]["text"] for output in outputs] == [r["outputs"][0]["text"] for r in expected]


def test_json_of_text_is_that_of_standard_input(predict, inputs, run_folder, regard, tmp_path):
    predict("in/a.txt", options=AnswerOptions(as_json=True))
    done = regard("predict", str(run_folder), "--json", stdin="".join(f"{n}\n" for n in LINES))
    rows = [json.loads(line) for line in (tmp_path / "out/a.txt.jsonl").read_text().splitlines()]
    assert [(row.get("prompt"), row["text"]) for row in rows] == [
        (row.get("prompt"), row["text"]) for row in map(json.loads, done.stdout.splitlines())
    ]


def test_faulty_rows_are_counted_and_keep_their_place(predict, run, tmp_path, capsys):
    folder = tmp_path / "in"
    folder.mkdir()
    rows = ['{"prompt": "cat"}', "{", '{"prompt": 1}', '{"text": "cat"}', "", "[]"]
    (folder / "a.jsonl").write_text("\n".join([*rows, '{"prompt": "mat"}']))
    (folder / "b.txt").write_bytes(b"cat\n\xff\nmat")
    table = pyarrow.table({"prompt": ["cat", "mat", None], "n": [1, 2, 3]})
    pyarrow.parquet.write_table(table, folder / "c.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"n": [1, 2]}), folder / "d.parquet")
    pyarrow.parquet.write_table(table.slice(0, 0), folder / "e.parquet")
    (folder / "empty.txt").touch()
    assert predict() == (15, 8)
    cat, mat = run("cat").text, run("mat").text
    a = [json.loads(line or "{}") for line in (tmp_path / "out/a.jsonl").read_text().splitlines()]
    assert [row.get("text") for row in a[:3]] == [cat, None, None]
    assert a[1]["input"] == "{"
    assert a[2] == {"prompt": 1, "error": f"{folder}/a.jsonl:3: prompt is int; give a text"}
    assert a[3]["error"] == f"{folder}/a.jsonl:4: no field prompt; the fields are: text"
    assert a[4] == {}
    assert a[5]["input"] == "[]"
    assert a[6]["text"] == mat
    assert (tmp_path / "out/b.txt").read_text() == f"{cat}\n\n{mat}\n"
    assert (tmp_path / "out/empty.txt").read_bytes() == b""
    c = pyarrow.parquet.read_table(tmp_path / "out/c.parquet").to_pylist()
    assert [row["text"] for row in c[:2]] == [cat, mat]
    errors = capsys.readouterr().err.splitlines()
    assert errors[0].startswith(f"regard: {folder}/a.jsonl:2: not JSON (")
    assert errors[4].startswith(f"regard: {folder}/b.txt:2: byte 1 is 0xff")
    assert errors[-1] == f"regard: {folder}/d.parquet: row 2: no field prompt; the fields are: n"


def test_a_line_of_any_length_is_one_fault(predict, monkeypatch, tmp_path, run):
    monkeypatch.setattr("regard.batch_prediction.line_stream.MAX_LINE_BYTES", 100)
    monkeypatch.setattr("regard.batch_prediction.line_stream.READ_BYTES", 32)
    (tmp_path / "in").write_bytes(
        b"cat\n" + b"x" * 1000 + b"\n" + b"y" * 101 + b"\nmat\n" + b"z" * 300
    )
    assert predict() == (5, 3)
    texts = [run("cat").text, "", "", run("mat").text, "", ""]
    assert (tmp_path / "out/in").read_text().split("\n") == texts


def test_an_interrupted_call_is_continued(predict, inputs, monkeypatch, tmp_path, capsys):
    finish, starts = PartWorker.finish, list[tuple[str, int]]()

    def finish_some(worker: PartWorker, part: InputPart):
        if len(starts) == 5:
            raise KeyboardInterrupt
        starts.append((part.file.name, part.start))
        return finish(worker, part)

    monkeypatch.setattr(PartWorker, "finish", finish_some)
    with pytest.raises(KeyboardInterrupt):
        predict()
    assert "rows are done; the same command does the others" in capsys.readouterr().err
    assert not (tmp_path / "out/.lock").exists()
    monkeypatch.setattr(
        PartWorker, "finish", lambda w, p: starts.append((p.file.name, p.start)) or finish(w, p)
    )
    (tmp_path / "out/.regard/parts/b.txt.gz/.000000000000-4-0.ab.draft").touch()
    summary = predict()
    assert len(starts) == len(set(starts)) == 12  # no part twice
    predict(output="other")
    assert len(starts) == 24
    for name in ("a.txt", "b.txt.gz", "deep/c.jsonl", "d.parquet"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    assert predict() == summary  # all is done
    assert len(starts) == 24


def test_another_run_input_or_setting_is_refused(predict, inputs, build_run, tmp_path):
    predict("in/a.txt")
    line = "holds predictions of {}; give another folder, or remove this one"
    other = build_run(tmp_path / "run", seed=1)
    with pytest.raises(InputError, match=line.format("another run")):
        predict("in/a.txt", source=RunSource(other, tmp_path / "run"))
    with pytest.raises(InputError, match=line.format("other settings")):
        predict("in/a.txt", options=AnswerOptions(prefix="c"))
    (inputs / "a.txt").write_text("cat\n")
    with pytest.raises(InputError, match=line.format("other inputs")):
        predict("in/a.txt")


def test_a_changed_output_is_not_overwritten(predict, inputs, tmp_path):
    predict("in/a.txt")
    (tmp_path / "out/a.txt").write_text("mine")
    with pytest.raises(InputError, match="was changed after it was written"):
        predict("in/a.txt")
    (tmp_path / "out/a.txt").unlink()
    predict("in/a.txt")
    assert len((tmp_path / "out/a.txt").read_text().splitlines()) == len(LINES)


@pytest.mark.parametrize(
    ("source", "output", "message"),
    [
        ("nothing", "out", "nothing: there is no such file or folder"),
        ("empty", "out", "empty: no files"),
        ("in", "in/out", "lies in the folder of the inputs"),
        ("in", "full", r"full: holds other files \(bad.parquet\)"),
        ("in", "full/file", "this is a file; give a folder"),
        ("full/bad.parquet", "out", "damaged, or not Parquet"),
        ("full/bad.parquet.gz", "out", "compressed already"),
        ("full/bad.txt.gz", "out", "damaged gzip file"),
    ],
)
def test_wrong_folders_are_one_line(predict, inputs, tmp_path, source, output, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    for name in ("file", "bad.parquet", "bad.parquet.gz", "bad.txt.gz"):
        (tmp_path / "full" / name).write_text("x")
    with pytest.raises(InputError, match=message):
        predict(source, output)
    assert not (tmp_path / "out").exists()


def test_outputs_of_one_name_are_refused(predict, tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a.txt", "a.txt.jsonl"):
        (tmp_path / "in" / name).touch()
    with pytest.raises(InputError, match="its output would have the name of"):
        predict(options=AnswerOptions(as_json=True))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--input", "in"], "--input needs --output"),
        (["--output", "out"], "need --input"),
        (["--workers", "2"], "need --input"),
        (["cat", "--input", "in", "--output", "out"], "TEXT does not go with --input"),
        (["--strict", "--input", "in", "--output", "out"], "--strict does not go with --input"),
    ],
)
def test_options_that_do_not_go_together(error_line, run_folder, words, message):
    assert message in error_line("predict", str(run_folder), *words)


def test_the_command_counts_faults(run_folder, inputs, tmp_path, capsys):
    (inputs / "a.txt").write_bytes(b"cat\n\xff\n")
    words = ["--input", str(inputs / "a.txt"), "--output", str(tmp_path / "out"), "--workers", "1"]
    with pytest.raises(SystemExit) as end:
        main(["predict", str(run_folder), *words])
    assert end.value.code == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"{tmp_path / 'out'}: 2 rows; 1 of them have no prediction"
    )


def test_a_killed_worker_is_replaced(run, run_folder, inputs, tmp_path, predict):
    """The folder of parts is as without a kill, and every part has one result."""
    [file] = find_files(inputs / "a.txt")
    setup, lines = WorkerSetup(str(run_folder), str(tmp_path / "parts")), list[str]()
    with WorkerPool(2, setup, lines.append) as pool:
        results = pool.results(file.read_parts())
        first = next(results)
        os.kill(pool.workers[0].process.pid, signal.SIGKILL)
        starts = sorted([first.start, *(result.start for result in results)])
    assert starts == [0, 4, 8]
    [line] = lines
    assert re.search(r"a.txt: rows \d+ to \d+: a worker process died \(SIGKILL\); another", line)
    predict("in/a.txt")
    parts = sorted((tmp_path / "parts/a.txt").iterdir())
    assert b"".join(p.read_bytes() for p in parts) == (tmp_path / "out/a.txt").read_bytes()


def test_a_part_that_kills_its_workers_is_an_error(monkeypatch, inputs, tmp_path, predict):
    monkeypatch.setattr(worker_pool, "WORKER_MODULE", "regard.errors")  # ends at once
    with pytest.raises(InputError, match=r"rows . to .: 3 worker processes died \(exit code 0\)"):
        predict("in/a.txt", workers=2)


def test_errors_of_a_worker_are_those_of_the_command(monkeypatch, inputs, tmp_path, predict, run):
    monkeypatch.setattr(
        part_worker, "write_part", lambda *_: (_ for _ in ()).throw(OSError("full"))
    )
    with pytest.raises(OSError, match="full"):
        predict("in/a.txt")
