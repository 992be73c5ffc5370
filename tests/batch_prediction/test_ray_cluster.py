"""Predictions of files with Ray: the same bytes as without it, also if a worker process dies."""

import json
import os
import signal
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from regard.batch_prediction import input_parts
from regard.batch_prediction.file_prediction import FileWork
from regard.batch_prediction.input_parts import find_files
from regard.batch_prediction.part_worker import PartWorker, WorkerSetup
from regard.cli.app import main
from regard.errors import InputError


def child_processes(parent: int) -> dict[int, bytes]:
    """Return the command lines of the children and grandchildren of a process."""
    commands, parents = dict[int, bytes](), dict[int, int]()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text().rpartition(")")[2].split()
            commands[int(folder.name)] = (folder / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(folder.name)] = int(status[1])
    return {
        process: command
        for process, command in commands.items()
        if parent in (parents[process], parents.get(parents[process]))
    }


def kill_ray_worker() -> bool:
    """Kill a process of Ray that answers parts, and return whether there was one."""
    for process, command in child_processes(os.getpid()).items():
        if b"RayWorker" in command:
            os.kill(process, signal.SIGKILL)
            return True
    return False


@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")  # Ray copies its own old settings
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux to find processes")
def test_a_cluster_of_this_machine_replaces_a_killed_worker(predict, monkeypatch, tmp_path):
    folder, rows = tmp_path / "in", [{"id": n, "prompt": f"cat {n}"} for n in range(40)]
    folder.mkdir()
    (folder / "a.txt").write_text("".join(f"mat {n}\n" for n in range(2 * input_parts.PART_ROWS)))
    (folder / "b.jsonl").write_text("{\n" + "".join(f"{json.dumps(row)}\n" for row in rows))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "c.parquet")
    summary = predict(output="alone")
    add_part, kills = FileWork.add_part, list[bool]()

    def kill_and_add(work: FileWork, name: str, start: int, rows: int, faults: int) -> None:
        if not any(kills):
            kills.append(kill_ray_worker())
        add_part(work, name, start, rows, faults)

    monkeypatch.setattr(FileWork, "add_part", kill_and_add)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    try:
        assert predict(ray=True) == summary
    except InputError as error:
        if "does not start on this machine" not in str(error):
            raise
        pytest.skip(f"Ray waits 30 seconds for its start: {error}")
    assert any(kills)
    for path in folder.iterdir():
        expected = (tmp_path / "alone" / path.name).read_bytes()
        assert (tmp_path / "out" / path.name).read_bytes() == expected
    commands = child_processes(os.getpid()).values()
    assert not [command for command in commands if b"raylet" in command or b"ray::" in command]


@pytest.fixture
def cluster():
    from regard.batch_prediction import ray_cluster  # takes a second to import

    return ray_cluster


@pytest.fixture
def work(cluster, inputs, run_folder, small_parts, tmp_path):
    """The folders of a command, a setup, and a file with the rows that are finished."""
    (tmp_path / "out").mkdir()
    lock = tmp_path / "out/.lock"
    lock.write_text("process 1")
    setup = WorkerSetup(str(run_folder), str(tmp_path / "out/parts"))
    return cluster.SharedFolders.of_command(lock), setup, find_files(inputs / "a.txt")[0]


def read_rows(cluster, work, finished_rows: dict[int, int]) -> list[dict[str, bytes]]:
    folders, _, file = work
    row = {"file": json.dumps(file), "finished_rows": json.dumps(finished_rows)}
    return list(cluster.read_file_parts(row, folders=folders))


def test_an_actor_answers_the_parts_that_are_left(cluster, work, run, tmp_path):
    folders, setup, file = work
    rows = read_rows(cluster, work, {4: 4})
    actor = cluster.RayWorker(setup, folders)
    replies = [json.loads(actor(row)["reply"]) for row in rows]
    parts = [part for part in file.read_parts() if part.start != 4]
    alone = PartWorker(setup._replace(parts_folder=str(tmp_path / "alone")), run)
    assert replies == [
        {"result": json.loads(json.dumps(alone.finish(part))), "attempts": 1} for part in parts
    ]
    for path in (tmp_path / "alone/a.txt").iterdir():
        assert (tmp_path / "out/parts/a.txt" / path.name).read_bytes() == path.read_bytes()
    assert len(list((tmp_path / "out/parts/a.txt").iterdir())) == len(parts) == 2


def test_a_part_that_kills_its_workers_is_an_error(cluster, work, monkeypatch):
    folders, setup, file = work
    row, *_ = read_rows(cluster, work, {})

    def die(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(PartWorker, "finish", die)
        for _ in range(cluster.MAX_ATTEMPTS):
            with pytest.raises(SystemExit):
                cluster.RayWorker(setup, folders)(row)
    reply = json.loads(cluster.RayWorker(setup, folders)(row)["reply"])
    assert reply["error"].startswith(f"{file.path}: rows 1 to 4: 3 worker processes died;")
    cluster.forget_attempts(setup)
    assert json.loads(cluster.RayWorker(setup, folders)(row)["reply"])["attempts"] == 1


def test_a_folder_that_another_host_does_not_see_is_one_line(cluster, work, monkeypatch):
    folders, setup, _ = work
    row, *_ = read_rows(cluster, work, {})
    monkeypatch.setattr("socket.gethostname", lambda: "node2")
    Path(folders.lock).write_text("process 2")  # a folder of that name, but another one
    line = f"{Path(folders.lock).parent}: is not shared with host node2 of the Ray cluster; give"
    assert line in json.loads(cluster.RayWorker(setup, folders)(row)["reply"])["error"]
    [row] = read_rows(cluster, work, {})
    assert line in row["error"].decode()
    assert json.loads(cluster.RayWorker(setup, folders)(row)["reply"]) == {
        "error": row["error"].decode()
    }
    folders = folders._replace(current="/nothing")
    assert cluster.RayWorker(setup, folders)({"part": b"", "error": b""})["reply"].startswith(
        '{"error": "/nothing: is not shared with host node2'
    )


def test_a_file_that_another_host_cannot_read_names_it(cluster, work, monkeypatch):
    _, _, file = work
    monkeypatch.setattr("socket.gethostname", lambda: "node2")
    Path(file.path).unlink()
    [row] = read_rows(cluster, work, {})
    assert row["error"].decode().endswith("a.txt: there is no such file (on host node2)")


def test_an_address_without_a_cluster_is_one_line(inputs, predict, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(InputError, match=r"RAY_ADDRESS: no Ray cluster at 127.0.0.1:9 .*refused"):
        predict(ray=True)


def test_missing_ray_is_one_line(inputs, run_folder, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "regard.batch_prediction.ray_cluster", raising=False)
    words = ["--input", str(inputs), "--output", str(tmp_path / "out"), "--ray"]
    with pytest.raises(SystemExit) as end:
        main(["predict", str(run_folder), *words])
    assert end.value.code == 1
    assert capsys.readouterr().err == "regard: ray is not installed: pip install 'regard[ray]'\n"
    assert not (tmp_path / "out").exists()
