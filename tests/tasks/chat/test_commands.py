"""`regard chat` through a pipe and in a terminal, and `regard look` at a reply."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.tasks.load import resolve_settings
from regard.training.trainer import Trainer

SECONDS = 600  # a busy machine may take long; a test that hangs must end
ROWS = [{"name": "Copper Pot", "food": "thai"}, {"name": "Blue Door", "food": "greek"}]


@pytest.fixture(scope="module")
def guide(shared) -> str:
    """A run that has learned two exchanges by heart."""
    return str(shared("chat", train_guide) / "run")


def train_guide(folder: Path) -> None:
    (folder / "places.json").write_text(json.dumps(ROWS))
    exchanges = [
        {
            "user": f"{row['food']} please",
            "wishes": {"food": row["food"]},
            "reply": f"{row['name']} !",
        }
        for row in ROWS
    ]
    lines = [json.dumps({"exchanges": [exchange]}) for exchange in exchanges for _ in range(8)]
    (folder / "talk.jsonl").write_text("\n".join(lines) + "\n")
    paths = dict.fromkeys(("train", "dev", "test"), str(folder / "talk.jsonl"))
    settings = {
        "task": "chat",
        "data": {
            "kind": "dialogues",
            **paths,
            "database": str(folder / "places.json"),
            "slot_columns": ["food"],
        },
        "text": {"kind": "words"},
        "model": {
            "kind": "gpt2",
            "dim": 32,
            "heads": 2,
            "layers": 1,
            "max_positions": 32,
            "dropout": 0.0,
        },
        "train": {
            "steps": 60,
            "examples_per_batch": 16,
            "max_tokens": 32,
            "learning_rate": 0.01,
            "validate_every": 60,
        },
        "decode": {"kind": "greedy", "max_length": 8},
    }
    list(Trainer(resolve_settings(settings), folder / "run", lambda _: None))


def test_through_a_pipe(guide, regard):
    lines = "thai please\n\n/undo\n/what\ngreek please\n/new\n/quit\nthai please\n"
    done = regard("chat", guide, "--show-belief", stdin=lines)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["> thai please", "Copper Pot !", "(food=thai: 1 found)"]
    assert lines[3].startswith("/what: unknown")
    assert lines[4:] == ["> greek please", "Blue Door !", "(food=greek: 1 found)"]


def test_in_a_terminal(guide):
    """A prompt, a reply, and an end by Ctrl-D."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "regard", "chat", guide]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        try:
            assert b"/quit or Ctrl-D: end" in until(ours, b"> ")
            os.write(ours, b"greek please\n")
            assert b"Blue Door !" in until(ours, b"!\r\n> ")
            os.write(ours, b"\x04")
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()  # a process that waits for input would never end
    os.close(ours)


def until(end: int, wanted: bytes) -> bytes:
    seen, limit = b"", time.monotonic() + SECONDS
    while wanted not in seen:
        assert time.monotonic() < limit, seen
        if select.select([end], [], [], 1)[0]:
            seen += os.read(end, 4096)
    return seen


def test_look_and_predict(guide, regard):
    done = regard("look", guide, "thai please")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Copper Pot !\n")
    assert "food=th" in done.stdout
    done = regard("predict", guide, "--json", stdin="greek please\n")
    facts = json.loads(done.stdout)
    assert facts["reply"] == "Blue Door !"
    assert facts["row"] == ROWS[1]


def test_a_folder_that_cannot_talk(regard, tmp_path):
    done = regard("chat", str(tmp_path))
    assert done.returncode == 1
    assert "is not a run" in done.stderr
