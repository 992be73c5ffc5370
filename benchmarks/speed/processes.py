"""The processes of the engines: workers that stay loaded, and commands that start cold."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Protocol, cast

from benchmarks.speed.runs import converted_run, input_file, prepared_run

WORKERS = Path(__file__).parent / "workers"
SCRIPTS = {
    "regard": "ours.py",
    "regard auto": "ours_by_engine.py",
    "no checks": "ours.py",
    "ctranslate2": "of_ctranslate2.py",
    "transformers": "of_transformers.py",
    "torch": "of_torch.py",
    "joeynmt": "of_joeynmt.py",
}
OWN_ENVIRONMENTS = ("joeynmt",)  # in peers-joeynmt
OWN_INTERPRETER = ("regard", "no", "import")  # first words of engines in our environment


class Process(Protocol):
    """An engine that does its work when asked."""

    def work(self, unit: str) -> float:
        """Return the result of doing the work once, in this unit."""
        ...

    def close(self) -> None: ...


def build_process(
    engine: str, options: Mapping[str, object], peers: Path, files: Path
) -> "Worker | Command":
    if options["work"] == "command":
        return Command(engine, options, peers, files)
    return Worker(engine, options, peers, files)


class Worker:
    """A process that does the work of one engine, once for each line that it reads."""

    def __init__(self, engine: str, options: Mapping[str, object], peers: Path, files: Path):
        script = SCRIPTS.get(engine) or SCRIPTS[engine.split()[0]]
        command = [python_of(engine, peers), str(WORKERS / script), json.dumps(options), str(files)]
        self.engine = engine
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.input, self.output = cast("IO[str]", self.process.stdin), self.process.stdout
        self.read()  # a line says that the model is loaded

    def read(self) -> dict[str, float]:
        line = cast("IO[str]", self.output).readline()
        if not line:
            sys.exit(f"{self.engine}: its process has ended; see the messages above")
        return json.loads(line)

    def work(self, unit: str) -> float:
        """Return the units of work in a second, or the greatest memory of the process so far."""
        self.input.write("work\n")
        self.input.flush()
        result = self.read()
        return result["memory"] if unit == "MB" else result["amount"] / result["seconds"]

    def close(self) -> None:
        self.input.close()
        self.process.wait()


class Command:
    """A command that starts anew each time: regard, a script of another engine, or a line of code.

    Its input is the file "test", and the time ends with the process. Or it is one "line", and the
    time ends with the first line of its output.
    """

    def __init__(self, engine: str, options: Mapping[str, object], peers: Path, files: Path):
        self.engine, self.command = engine, [python_of(engine, peers)]
        arguments = cast("list[str]", options.get("arguments", []))
        if isinstance(code := options.get("code"), str):
            self.command += ["-c", code]
        elif isinstance(script := options.get("script"), str):
            folders = [str(prepared_run("multi30k", files)), str(converted_run("multi30k", files))]
            self.command += [str(WORKERS / script), *folders, *arguments]
        elif isinstance(run := options.get("run"), str):
            self.command += ["-m", "regard", "predict", str(prepared_run(run, files)), *arguments]
        else:
            self.command += ["-m", "regard", *arguments]
        self.input = input_file(str(options["input"]), files)
        self.reads_all = options["input"] == "test"
        # As for every installed program, the bytecode of modules is kept.
        self.environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def work(self, unit: str) -> float:
        """Return the seconds until its output is complete."""
        if unit != "s":
            raise ValueError(f"a command is measured in seconds, not {unit}")
        start = time.perf_counter()
        with (
            self.input.open() as stdin,
            subprocess.Popen(
                self.command, stdin=stdin, stdout=subprocess.PIPE, env=self.environment
            ) as process,
        ):
            output = cast("IO[bytes]", process.stdout)
            lines = output.readlines() if self.reads_all else [output.readline()]
            seconds = time.perf_counter() - start
            output.read()
            if self.reads_all:
                process.wait()
                seconds = time.perf_counter() - start
        if process.returncode or len(lines) != (len(stdin_lines(self.input)) or 1):
            sys.exit(f"{self.engine}: {' '.join(self.command)} failed")
        return seconds

    def close(self) -> None:
        """Do nothing: the process of every call has ended."""


def stdin_lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def python_of(engine: str, peers: Path) -> str:
    """Return the interpreter of an engine's environment."""
    name = engine.split()[0]
    if name in OWN_INTERPRETER:
        return sys.executable
    folder = peers.with_name(f"{peers.name}-{name}") if name in OWN_ENVIRONMENTS else peers
    python = folder / "bin" / "python"
    if not python.exists():
        sys.exit(f"{engine}: there is no {python}; `make bench` installs it")
    return str(python)
