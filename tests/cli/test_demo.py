"""`regard demo`: dates in twenty languages, in a folder that stays."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli.app import main
from regard.cli.demo import demo_settings

# Ctrl-C at a known moment: a signal to itself when the third step begins.
INTERRUPTED = f"""
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where we run in the background
from regard.training.loop import Training
step = Training.step
def interrupted(training):
    if training.steps_done == 2:
        os.kill(os.getpid(), {int(signal.SIGINT)})
    return step(training)
Training.step = interrupted
from regard.cli.app import main
main(["demo"])
"""


def test_it_prints_accuracy_examples_a_map_and_what_to_try_next(regard, tmp_path: Path):
    folder = str(tmp_path / "run")
    done = regard("demo", "--steps", "3", "--seed", "7", "--run", folder, NO_COLOR="1")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d+\.\d% of 1000 unseen dates are correct", done.stdout)
    assert "Tuesday, May 3rd, 1994 -> " in done.stdout
    assert f"regard look {folder}" in done.stdout
    assert "\x1b" not in done.stdout
    assert "\x1b" not in done.stderr  # the bar is for terminals
    again = regard("demo", "--steps", "3", "--seed", "7", "--run", folder, NO_COLOR="1")
    assert again.stdout == done.stdout  # the same settings: nothing is trained again


def test_ctrl_c_shows_what_was_learned_so_far(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        cwd=tmp_path,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert done.returncode == 130, done.stderr
    assert "Stopped after 3 of 520 steps." in done.stdout  # the step is finished
    assert (tmp_path / "runs/demo/weights.safetensors").is_file()


def test_every_number_of_steps_has_settings():
    for steps in (1, 2, 50, 520):
        assert demo_settings(steps, 1).train.steps == steps


@pytest.mark.parametrize(
    ("option", "value"), [("--steps", "0"), ("--steps", "x"), ("--seed", "-1")]
)
def test_wrong_values_are_wrong_usage(option, value, capsys):
    with pytest.raises(SystemExit) as end:
        main(["demo", option, value])
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"regard: Invalid value for '{option}'")
    assert said.count("\n") == 1
