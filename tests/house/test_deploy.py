"""Files and commands for clusters: their syntax, and the options of torchrun and regard in them.

Programs of the cluster are replaced by scripts, which note what they are called with.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
import yaml
from torch.distributed.run import get_args_parser

from regard.cli.app import build_app

ROOT = Path(__file__).parents[2]
SCALING = ROOT / "docs" / "scaling.md"
JOB = {"SLURM_JOB_ID": "70123", "SLURM_JOB_NUM_NODES": "4", "SLURM_JOB_NODELIST": "n[1-4]"}
PROGRAMS = {
    "srun": 'exec "$@"',
    "scontrol": 'echo "$@" >> calls.txt; [ "$1" != show ] || printf "n%s\\n" 1 2 3 4',
    "torchrun": 'printf "%s\\n" "$@" > torchrun.txt; exit 3',
}


class Launch(NamedTuple):
    """A call of torchrun: its own options, and the values of those of `regard train`."""

    options: Any
    train: dict[str, Any]


def parse_regard(words: list[str]) -> dict[str, Any]:
    """Return the options and arguments of a regard command; fail if one does not exist."""
    verb, *rest = words
    command: Any = typer.main.get_command(build_app(verb))
    return command.commands[verb].make_context(verb, rest).params


def parse_torchrun(words: list[str]) -> Launch:
    """Return a call of torchrun that starts `regard train`; fail if an option does not exist."""
    try:
        options = get_args_parser().parse_args(words)
    except SystemExit:
        pytest.fail(f"torchrun does not accept {words}")
    assert options.module
    program = [options.training_script, *options.training_script_args]
    program = program[1:] if program[0] == "--" else program
    assert program[:2] == ["regard", "train"]
    return Launch(options, parse_regard(program[1:]))


@pytest.fixture
def cluster(tmp_path: Path) -> dict[str, str]:
    """Return an environment with scripts in place of the programs of a cluster."""
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    return {**os.environ, **JOB, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}


def start_job(folder: Path, environment: dict[str, str], *words: str) -> "subprocess.Popen[str]":
    script = ROOT / "deploy" / "slurm.sh"
    return subprocess.Popen(
        ["/bin/bash", script, *words],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_slurm_script_starts_torchrun(tmp_path: Path, cluster: dict[str, str]):
    environment = {**cluster, "SLURM_GPUS_ON_NODE": "2", "RUN": "runs/a b"}
    job = start_job(tmp_path, environment, "x y.toml", "train.steps=5")
    assert (job.communicate()[1], job.returncode) == ("", 3)  # the code is that of torchrun
    options, train = parse_torchrun((tmp_path / "torchrun.txt").read_text().splitlines())
    assert (options.nnodes, options.nproc_per_node) == ("4", "2")
    assert (options.rdzv_endpoint, options.rdzv_id) == ("n1:20123", "70123")
    assert train["config"] == Path("x y.toml")
    assert train["changes"] == ["train.steps=5"]
    assert train["folder"] == Path("runs/a b")
    assert (tmp_path / "calls.txt").read_text() == "show hostnames n[1-4]\n"


def test_the_slurm_script_needs_a_config(tmp_path: Path, cluster: dict[str, str]):
    job = start_job(tmp_path, cluster)
    assert "usage: sbatch deploy/slurm.sh CONFIG [KEY=VALUE ...]" in job.communicate()[1]
    assert job.returncode


def test_a_job_without_time_saves_and_returns_to_the_queue(tmp_path: Path, cluster: dict[str, str]):
    waits = "import signal, sys; signal.signal(15, lambda *_: (open('saved', 'w'), sys.exit(1)))"
    (tmp_path / "torchrun").write_text(
        f"#!{sys.executable}\n{waits}\nopen('started', 'w')\nwhile True: signal.pause()\n"
    )
    job = start_job(tmp_path, cluster, "config.toml")
    while not (tmp_path / "started").exists():
        assert job.poll() is None
    job.send_signal(signal.SIGUSR1)
    assert (job.communicate()[1], job.returncode) == ("", 0)
    assert (tmp_path / "saved").exists()
    assert (tmp_path / "calls.txt").read_text().splitlines()[1:] == ["requeue 70123"]


def test_the_objects_of_kubernetes_fit_together():
    text = (ROOT / "deploy" / "kubernetes.yaml").read_text()
    service, claim, job = yaml.safe_load_all(text)
    assert [part["kind"] for part in (service, claim, job)] == [
        "Service",
        "PersistentVolumeClaim",
        "Job",
    ]
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["command"] == ["torchrun"]
    options, train = parse_torchrun(container["args"])
    name, service_name = job["metadata"]["name"], service["metadata"]["name"]
    assert int(options.nnodes) == spec["completions"] == spec["parallelism"]
    threads = {entry["name"]: entry["value"] for entry in container["env"]}["OMP_NUM_THREADS"]
    cores = int(container["resources"]["requests"]["cpu"])
    assert int(options.nproc_per_node) * int(threads) == cores
    assert options.shutdown_timeout < pod["terminationGracePeriodSeconds"]
    port = service["spec"]["ports"][0]["port"]
    assert options.rdzv_endpoint == f"{name}-0.{service_name}:{port}"
    assert service["spec"]["selector"] == {"job-name": name}
    assert pod["subdomain"] == service_name
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert set(volumes) == {mount["name"] for mount in container["volumeMounts"]}
    assert volumes["shared"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert container["workingDir"] in {mount["mountPath"] for mount in container["volumeMounts"]}
    assert train["folder"] == Path("runs/model")


def document_commands(program: str) -> list[list[str]]:
    """Return the words of each command of a program in docs/scaling.md."""
    text = SCALING.read_text().replace("\\\n", " ")
    lines = re.findall(rf"^{program} .*$", text, re.MULTILINE)
    return [shlex.split(line, comments=True)[1:] for line in lines]


def test_commands_of_the_document_exist():
    launches = [parse_torchrun(words) for words in document_commands("torchrun")]
    assert {launch.options.nnodes for launch in launches} >= {"1:1", "4"}
    trainings = [parse_regard(words) for words in document_commands("regard")]
    assert 4 in {training.get("processes") for training in trainings}


def test_wrong_options_are_found():
    with pytest.raises(pytest.fail.Exception):  # --run might be --run-path of torchrun
        parse_torchrun(["-m", "regard", "train", "config.toml", "--run", "runs/house"])
    launch = parse_torchrun(["-m", "--", "regard", "train", "config.toml", "--run", "runs/house"])
    assert launch.train["folder"] == Path("runs/house")
    with pytest.raises(typer.TyperException):
        parse_torchrun(["-m", "--", "regard", "train", "config.toml", "--no-such-option"])
