"""Killed at random moments, a training ends as if it had not been: a short benchmarks/kill.py."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill.py"


def test_killed_and_taken_up_again(seed: int):
    words = ["--kills", "2", "--steps", "30", "--seed", str(seed)]
    done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed 2 times" in done.stdout
    assert "told in 1 line" in done.stdout
    assert done.stdout.endswith("all the same\n")
