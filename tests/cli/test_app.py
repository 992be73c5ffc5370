"""The frame of the command line: verbs, exit codes, errors in one line, pipes."""

import os
import subprocess
import sys

import pytest
import typer

import regard as package
from regard.cli import app
from regard.cli.app import COMMANDS, Command, build_app, main
from regard.errors import InputError

# The whole surface. A change here is a change for every user and every script: make it on purpose.
SURFACE = {
    "": {"--version", "--debug", "--install-completion", "--show-completion"},
    "demo": {"--steps", "--seed", "--run"},
    "list": {"--json"},
    "init": {"name", "changes"},
    "check": {"config", "changes", "--json", "--skip-bad"},
    "plan": {"config", "changes", "--gpus", "--memory", "--throughput", "--measure", "--price"}
    | {"--bandwidth", "--json"},
    "train": {"config", "changes", "--run", "--threads", "--accept-changed-data", "--skip-bad"}
    | {"--device", "--processes"},
    "verify": {"folder", "--update"},
    "score": {"folder", "--device", "--engine", "--int8", "--split", "--json", "--set"}
    | {"--skip-bad"},
    "predict": {"folder", "inputs", "--int8", "--json", "--prefix", "--set", "--strict"}
    | {"--input", "--output", "--workers", "--ray", "--device", "--engine"},
    "embed": {"folder", "inputs", "--json", "--output", "--set", "--device"},
    "chat": {"folder", "--seed", "--show-belief", "--device"},
    "play": {"folder", "beginning", "--save", "--piano-roll", "--max-length", "--voices"}
    | {"--seed", "--temperature", "--tempo", "--device"},
    "look": {"folder", "text", "--target", "--save", "--html", "--png", "--svg", "--layer"}
    | {"--head", "--merge-subwords", "--faithfulness", "--split", "--limit", "--ablate"}
    | {"--force-attention", "--gradient-attention", "--style", "--gold", "--step-table"}
    | {"--compare-run", "--compare-text", "--set", "--device"},
    "heads": {
        "folder",
        "--split",
        "--limit",
        "--metrics",
        "--curve-points",
        "--keep-heads",
        "--save-run",
        "--save",
        "--json",
        "--device",
    },
    "align": {
        *(
            "folder",
            "pairs",
            "--split",
            "--reverse",
            "--symmetrize",
            "--layer",
            "--head",
            "--shift",
        ),
        *("--threshold", "--dev", "--dev-gold", "--gold", "--gold-base", "--save", "--json"),
        "--device",
    },
    "compare": {"arguments", "--sweep", "--runs", "--report-folder", "--split", "--join", "--gold"}
    | {"--pairs", "--gold-base", "--show-attention", "--threads"},
    "serve": {"folders", "--host", "--port", "--key", "--workers", "--allow-host", "--languages"}
    | {"--open", "--device", "--engine"},
    "import": {"model", "run", "--revision"},
    "export": {"run", "folder", "--to", "--int8"},
    "probe": {"--length", "--hidden", "--batch", "--bias", "--seed", "--save", "--json"},
}


def options(command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


@pytest.mark.parametrize("verb", SURFACE)
def test_the_command_line_is_frozen(verb):
    group = typer.main.get_command(build_app(verb or None))
    assert options(group.commands[verb] if verb else group) == SURFACE[verb]


def test_every_verb_is_in_the_frozen_surface():
    assert set(COMMANDS) == set(SURFACE) - {""}


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_verb_exists_and_tells_what_it_does(verb):
    assert COMMANDS[verb].load().__doc__
    assert len(f"  {verb:8}{COMMANDS[verb].help}") <= 80


def test_help_lists_the_verbs(regard):
    for flag in ("--help", "-h"):
        done = regard(flag)
        assert done.returncode == 0
        assert not done.stderr
        assert all(f"\n  {verb} " in done.stdout for verb in COMMANDS)
        assert max(map(len, done.stdout.splitlines())) <= 80


def test_no_words_shows_the_help_as_wrong_usage(regard):
    done = regard()
    assert done.returncode == 2
    assert done.stdout == regard("--help").stdout


@pytest.mark.parametrize(
    ("line", "expected"), [("regard ver", "verify\n"), ("regard init --he", "--help\n")]
)
def test_a_shell_completes_commands_and_options(line, expected, monkeypatch, capsys):
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    monkeypatch.setenv("_REGARD_COMPLETE", "complete_bash")
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out == expected


def test_version(regard):
    done = regard("--version")
    assert (done.returncode, done.stdout) == (0, f"regard {package.__version__}\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("lst", "No such command 'lst'. Did you mean 'list'? (see regard --help)"),
        ("xyzzy", "No such command 'xyzzy' (see regard --help)"),
        ("--verson", "No such option: --verson (Possible options: --version) (see regard --help)"),
        ("list --jsn", "No such option: --jsn (Possible options: --json) (see regard list --help)"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(words, said, regard):
    done = regard(*words.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"regard: {said}\n")


def run(function, monkeypatch, capsys, *words) -> tuple[int, str]:
    """Run a verb `fail` that is this function, in this process."""
    monkeypatch.setitem(app.COMMANDS, "fail", Command("nowhere:nothing", "fails"))
    monkeypatch.setattr(Command, "load", lambda _: function)
    monkeypatch.delenv("REGARD_DEBUG", raising=False)
    with pytest.raises(SystemExit) as end:
        main([*words, "fail"])
    assert isinstance(end.value.code, int)
    return end.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InputError("steps must be positive,\n not 0"), "steps must be positive, not 0"),
        (InputError("no file \x1b]0;x\x07\u202e"), r"no file \x1b]0;x\x07\u202e"),
        (
            MemoryError(),
            "not enough memory; use a smaller model, smaller batches or shorter inputs",
        ),
        (FileNotFoundError(2, "No such file", "x.tsv"), "x.tsv: no such file"),
        (OSError("disk is full"), "disk is full"),
        (InputError(), "InputError"),
        (
            ModuleNotFoundError("No module", name="matplotlib.pyplot"),
            "matplotlib.pyplot is not installed: pip install 'regard[plot]'",
        ),
    ],
)
def test_our_errors_are_one_line_and_exit_code_1(error, said, monkeypatch, capsys):
    def fail():
        raise error

    assert run(fail, monkeypatch, capsys) == (1, f"regard: {said}\n")
    with pytest.raises(type(error)):
        run(fail, monkeypatch, capsys, "--debug")


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'regard.nowhere'", name="regard.nowhere"),
        ValueError("of a library \x1b[2J"),
        KeyError("rows"),
        RecursionError(),
    ],
)
def test_a_bug_keeps_its_traceback_and_says_how_to_report_it(error, monkeypatch, capsys):
    def fail():
        raise error

    code, message = run(fail, monkeypatch, capsys)
    assert code == 1
    assert message.startswith("Traceback (most recent call last)")
    assert message.splitlines()[-1].startswith("regard: the error above is a bug in regard")
    assert "\x1b" not in message
    with pytest.raises(type(error)):
        run(fail, monkeypatch, capsys, "--debug")


def test_debug_by_the_environment(monkeypatch, capsys):
    def fail():
        monkeypatch.setenv("REGARD_DEBUG", "1")
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        run(fail, monkeypatch, capsys)


def test_a_verb_may_choose_its_exit_code(monkeypatch, capsys):
    def fail():
        raise typer.Exit(1)

    assert run(fail, monkeypatch, capsys) == (1, "")


def test_ctrl_c_is_one_line_and_exit_code_130(monkeypatch, capsys):
    def fail():
        raise KeyboardInterrupt

    assert run(fail, monkeypatch, capsys) == (130, "regard: interrupted\n")


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("words", [["--help"], ["list"], ["list", "--json"]])
def test_a_closed_pipe_is_quiet(words, buffered):
    """The pipe breaks while the verb writes or, when output is buffered, at the end."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "regard", *words],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
        env=environment if buffered else {**environment, "PYTHONUNBUFFERED": "1"},
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")
