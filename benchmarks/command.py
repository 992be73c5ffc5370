"""The command line, for benchmarks that are made of its words."""

import subprocess
import sys
from pathlib import Path


def regard(folder: Path, *words: str) -> None:
    """`regard …` in a folder; where it fails, all ends with its code."""
    done = subprocess.run([sys.executable, "-m", "regard", *words], cwd=folder)
    if done.returncode:
        sys.exit(done.returncode)
