"""Start the processes of a training on this machine, and start them again if one of them dies."""

import logging
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from regard.errors import InputError
from regard.training.signals import exit_code

MAX_RESTARTS = 100
SECONDS_TO_STOP = 600  # for a step and a checkpoint, after a stop signal


def launch_workers(module: str, arguments: list[str], processes: int) -> int:
    """Run `python -m module FOLDER arguments` in several processes, and return the exit code.

    Each process writes its exit code into FOLDER with `write_exit_code`, and then ends with 0. Any
    other end means that a process has died: all of them start again, and continue from the last
    checkpoint. A stop signal is passed on to all of them.
    """
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    with TemporaryDirectory() as folder:
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=processes,
            run_id=uuid4().hex,
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            max_restarts=MAX_RESTARTS,
            monitor_interval=0.1,
            logs_specs=DefaultLogsSpecs(folder),
            shutdown_timeout=SECONDS_TO_STOP,
        )
        try:
            elastic_launch(config, sys.executable)("-m", module, folder, *arguments)
        except SignalException as stop:
            return exit_code(stop.sigval)
        except ChildFailedError as failure:
            [(rank, child), *_] = failure.failures.items()
            raise InputError(
                f"process {rank + 1} of {processes} ended with code {child.exitcode} after "
                f"{MAX_RESTARTS} restarts; give the same command to resume"
            ) from None
        return max(int(path.read_text()) for path in Path(folder).glob("*.code"))


def write_exit_code(folder: Path, code: int) -> None:
    """Tell the launcher the exit code of this process."""
    (folder / f"{os.environ['RANK']}.code").write_text(str(code))
