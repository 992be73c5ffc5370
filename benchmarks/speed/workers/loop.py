"""The loop of a worker: do the work once for each line of standard input."""

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SOURCE_LENGTH = TARGET_LENGTH = 25
SIZE = 32_000  # of the vocabulary for translation
BASE = {"dim": 512, "heads": 8, "layers": 6, "hidden_dim": 2048}
TINY = {"dim": 256, "heads": 4, "layers": 3, "hidden_dim": 1024}
TINY_SIZE = 10_000
RECURRENT = {"dim": 256, "hidden_dim": 256}
GPT2_SIZE, BERT_SIZE = 50_257, 30_522


def options() -> tuple[dict[str, Any], Path]:
    """Return the options of the case, and the folder for converted models."""
    return json.loads(sys.argv[1]), Path(sys.argv[2])


def serve(work: Callable[[], float]) -> None:
    """Answer each line with the amount of work, its seconds, and the peak of memory in MB."""
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        amount = work()
        seconds = time.perf_counter() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux counts in KB
        print(json.dumps({"amount": amount, "seconds": seconds, "memory": memory}), flush=True)


def source_ids(sentences: int, size: int = SIZE, length: int = SOURCE_LENGTH) -> list[list[int]]:
    """Return the same sentences in every process."""
    state, rows = 12345, list[list[int]]()
    for _ in range(sentences):
        row = list[int]()
        for _ in range(length):
            state = (1103515245 * state + 12345) % 2**31
            row.append(4 + state % (size - 4))
        rows.append(row)
    return rows
