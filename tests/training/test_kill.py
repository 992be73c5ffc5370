"""Trainings that are killed at random times end with the bytes of others: benchmarks/kill.py."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill.py"


def test_killed_trainings_end_with_the_same_bytes(seed: int):
    words = ["--kills", "4", "--steps", "16", "--kinds", "transformer", "--seed", str(seed)]
    result = subprocess.run(
        [sys.executable, SCRIPT, *words], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.endswith("4 kills: all files are equal\n")
