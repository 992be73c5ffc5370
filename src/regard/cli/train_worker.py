"""One process of `regard train --processes`: python -m regard.cli.train_worker FOLDER WORDS

It runs the command of the words, and writes its exit code into the folder.
"""

import ctypes
import signal
import sys
from pathlib import Path

from regard.cli.app import EXIT_FAILURE, EXIT_INTERRUPTED, main

PR_SET_PDEATHSIG = 1  # of Linux


def run_worker(folder: Path, words: list[str]) -> int:
    """Run a command, and return the exit code for the launcher: 0, unless a process was lost."""
    if sys.platform == "linux":  # stop if the launcher dies
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    try:
        main(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else EXIT_FAILURE
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    from regard.training.distributed.group import LOST_PROCESS_CODE
    from regard.training.distributed.launch import write_exit_code

    if code == LOST_PROCESS_CODE:
        return code
    write_exit_code(folder, code)
    return 0


if __name__ == "__main__":
    sys.exit(run_worker(Path(sys.argv[1]), sys.argv[2:]))
