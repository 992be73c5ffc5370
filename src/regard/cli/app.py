"""The command line: a table of commands, and how their errors are reported."""

import atexit
import gc
import os
import re
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, NamedTuple, NoReturn

import typer
from typer._click import Context, HelpFormatter
from typer.core import TyperCommand

import regard
from regard.errors import InputError
from regard.view.sanitize import sanitize_terminals, sanitize_text

EXIT_SUCCESS, EXIT_FAILURE, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130

# Optional packages, and the extra of `pip install 'regard[EXTRA]'` that installs each.
EXTRAS = {
    "matplotlib": "plot",
    "pyarrow": "parquet",
    "tensorboard": "tensorboard",
    "huggingface_hub": "hub",
    "ctranslate2": "ct2",
    "onnx": "onnx",
    "onnxscript": "onnx",
    "onnxruntime": "onnx",
    "fastapi": "serve",
    "uvicorn": "serve",
    "prometheus_client": "serve",
    "py3langid": "serve",
    "ray": "ray",
}
BUG_MESSAGE = (
    "the error above is a bug in regard, not a fault of yours; please report it to its developers, "
    "with these lines, your command and the output of `regard --version`"
)
# Python types in the help of an option, and what the help calls their values.
VALUE_NAMES = {"int range>": "N", "int>": "N", "float>": "X", "path>": "PATH", "str>": "NAME"}
OUT_OF_MEMORY = re.compile("can't allocate memory|out of memory", re.IGNORECASE)


class PlainCommand(TyperCommand):
    """A command whose help describes values in words, without the names of Python types."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                name, _, value = record[0].partition(" <")
                text = record[1].replace("x>=", "N>=").replace("<=x<=", "<=N<=")
                if parameter.param_type_name == "argument":
                    sections["Arguments"].append((name, text))
                else:
                    value = f" {VALUE_NAMES.get(value, f'<{value}')}" if value else ""
                    sections["Options"].append((name + value, text))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class Command(NamedTuple):
    """A command: where its function is defined, and its line in `regard --help`."""

    entry_point: str
    help: str

    def load(self) -> Callable[..., None]:
        module, _, function = self.entry_point.partition(":")
        return getattr(import_module(module), function)


COMMANDS = {
    "demo": Command("regard.cli.demo:demo", "Train a small translator of dates; show a result."),
    "list": Command("regard.cli.list:show", "List models, tasks, presets, corpora and scores."),
    "init": Command("regard.cli.init:init", "Print a complete, commented config for a task."),
    "check": Command("regard.cli.check:check", "Check the data of a config, and estimate memory."),
    "plan": Command("regard.cli.plan:plan", "Plan memory, time and cost of a training."),
    "train": Command("regard.cli.train:train", "Train a model, or resume its training."),
    "verify": Command("regard.cli.verify:verify", "Compare the files of a run with checksums."),
    "score": Command("regard.cli.score:score", "Compute the metrics of a run on a split."),
    "predict": Command("regard.cli.predict:predict", "Predict for inputs, or lines of stdin."),
    "embed": Command("regard.cli.embed:embed", "Write a vector for each text or line of stdin."),
    "chat": Command("regard.cli.chat:chat", "Chat with a run in the terminal."),
    "play": Command("regard.cli.play:play", "Compose music; save MIDI, ABC or a piano roll."),
    "compare": Command("regard.cli.compare:compare", "Compare several models in one report."),
    "look": Command("regard.cli.look:look", "Show or save the attention of a run."),
    "heads": Command("regard.cli.heads:heads", "Measure, rank and prune attention heads."),
    "align": Command("regard.cli.align:align", "Link the words of sentence pairs."),
    "serve": Command("regard.cli.serve:serve", "Serve runs: a web page and an HTTP API."),
    "import": Command("regard.cli.convert:import_", "Convert a Hugging Face model into a run."),
    "export": Command("regard.cli.convert:export", "Convert a run for other programs."),
    "probe": Command("regard.cli.probe:probe", "Measure gradients of recurrent cells over time."),
}


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 success, 1 failure, 2 wrong usage, 130 interrupted.

    A training that SIGTERM or SIGHUP has stopped exits with 143 or 129.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    words = completed_words() or arguments
    command = next((word for word in words if not word.startswith("-")), None)
    sanitize_terminals()
    try:
        app = build_app(command)
        code = app(args=arguments or ["--help"], prog_name="regard", standalone_mode=False)
        if not arguments:
            code = EXIT_USAGE
        elif not isinstance(code, int):
            code = EXIT_SUCCESS
        sys.stdout.flush()  # raises BrokenPipeError here rather than at interpreter shutdown
    except typer.TyperException as error:
        program = f"regard {command}" if command in COMMANDS else "regard"
        _print_error(f"{error.format_message().rstrip('.')} (see {program} --help)")
        code = error.exit_code
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_FAILURE
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except Exception as error:
        message = _error_message(error)
        if "--debug" in arguments or os.environ.get("REGARD_DEBUG"):
            raise
        if message is None:
            sys.stderr.write(sanitize_text("".join(traceback.format_exception(error))))
            message = BUG_MESSAGE
        _print_error(message)
        code = EXIT_FAILURE
    if code == EXIT_INTERRUPTED:
        _print_error("interrupted")
    sys.exit(code)


def completed_words() -> list[str]:
    """Return the words that a shell asks to complete, without `regard` and the last word.

    Only options need the module of a command, which may be slow to import.
    """
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or ""
    words = line.split()
    is_option = "_REGARD_COMPLETE" in os.environ and words[-1:] and words[-1].startswith("-")
    return words[1:-1] if is_option else []


@contextmanager
def paused_collection() -> Generator[None]:
    """Collect no garbage while modules are imported, and do not examine them later.

    Modules live as long as the process. To examine those of torch takes a third of the time of
    importing them, and as long again at exit.
    """
    atexit.register(gc.freeze)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def build_app(command: str | None = None) -> typer.Typer:
    """Build the command line: list every command, but import only `command`."""
    app = typer.Typer(
        name="regard",
        rich_markup_mode=None,  # plain help: starts faster, and looks the same in a pipe
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(epilog="`regard COMMAND --help` describes a command.")(_global_options)
    with paused_collection():
        functions = {command: COMMANDS[command].load()} if command in COMMANDS else {}
    for name, entry in COMMANDS.items():
        function = functions.get(name, _not_loaded)
        app.command(name, cls=PlainCommand, short_help=entry.help)(function)
    return app


def _show_version(value: bool) -> bool:
    if value:
        print(f"regard {regard.__version__}")
        raise typer.Exit
    return value


def _global_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks of errors (also: REGARD_DEBUG=1).")
    ] = False,
) -> None:
    """Train, run, explain and serve attention models."""
    del version, debug  # `_show_version` and `main` read them


def _not_loaded() -> None:
    raise AssertionError("only the command that is called is imported")


def _print_error(message: str) -> None:
    print(f"regard: {sanitize_text(message)}", file=sys.stderr)


def _error_message(error: Exception) -> str | None:
    """Return the error as one line, or None for a bug, which needs its traceback."""
    match error:
        case OSError(filename=str() as path, strerror=str() as reason):
            return f"{path}: {reason[:1].lower()}{reason[1:]}"
        case ModuleNotFoundError(name=str() as name):
            extra = EXTRAS.get(name.partition(".")[0])
            return extra and f"{name} is not installed: pip install 'regard[{extra}]'"
        case InputError() | OSError():
            return " ".join(str(error).split()) or type(error).__name__
        case MemoryError() | RuntimeError() if is_out_of_memory(error):
            return "not enough memory; use a smaller model, smaller batches or shorter inputs"
        case _:
            return None


def is_out_of_memory(error: Exception) -> bool:
    """Return whether Python or torch could not allocate memory."""
    return isinstance(error, MemoryError) or bool(OUT_OF_MEMORY.search(str(error)))
