"""The command line: a literal table of verbs, and what happens when one of them fails."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, NamedTuple, NoReturn

import typer

import regard

EXIT_SUCCESS, EXIT_FAILURE, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130

# What `pip install regard` leaves out, and the extra that brings it.
EXTRAS = {
    "matplotlib": "plot",
    "pyarrow": "parquet",
    "tensorboard": "tensorboard",
    "fastapi": "serve",
    "uvicorn": "serve",
}


class Command(NamedTuple):
    """Where a verb lives, and its line in `regard --help`."""

    entry_point: str
    help: str

    def load(self) -> Callable[..., None]:
        module, _, function = self.entry_point.partition(":")
        return getattr(import_module(module), function)


COMMANDS = {
    "demo": Command(
        "regard.cli.demo:demo", "Train a small attention layer, then show where it looks."
    ),
    "list": Command("regard.cli.list:show", "List what is there: models, tasks, scores and more."),
    "init": Command("regard.cli.init:init", "Write a complete, commented config."),
    "check": Command(
        "regard.cli.check:check", "Examine the data, and forecast the memory it takes."
    ),
    "train": Command("regard.cli.train:train", "Train; the same command again resumes, exactly."),
    "score": Command("regard.cli.score:score", "Standard metrics of a run on a split."),
    "predict": Command(
        "regard.cli.predict:predict", "Answer lines of text: regard predict RUN < in."
    ),
    "chat": Command("regard.cli.chat:chat", "Talk to a run, in the terminal."),
    "play": Command("regard.cli.play:play", "A piece of music from a run: MIDI, ABC, a picture."),
    "compare": Command("regard.cli.compare:compare", "The same data, several models: one report."),
    "look": Command("regard.cli.look:look", "Show what a run looked at, in the terminal."),
    "heads": Command(
        "regard.cli.heads:heads", "What each head looks at, and what is lost without."
    ),
    "align": Command("regard.cli.align:align", "Word alignments of pairs, and their error rate."),
    "import": Command(
        "regard.cli.convert:import_", "A model of Hugging Face's folders into a run."
    ),
    "export": Command("regard.cli.convert:export", "A run's model into such a folder."),
    "probe": Command("regard.cli.probe:probe", "Measure how far gradients reach back in time."),
}


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 fine, 1 failed, 2 wrong usage, 130 interrupted."""
    arguments = sys.argv[1:] if arguments is None else arguments
    command = next((argument for argument in arguments if not argument.startswith("-")), None)
    try:
        code = _run(arguments, command)
    except typer.TyperException as error:
        program = f"regard {command}" if command in COMMANDS else "regard"
        _print_error(f"{error.format_message().rstrip('.')} (see {program} --help)")
        code = error.exit_code
    except BrokenPipeError:  # the reader, say `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_FAILURE
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except (ValueError, OSError, ModuleNotFoundError) as error:
        message = _error_message(error)
        if message is None or "--debug" in arguments or os.environ.get("REGARD_DEBUG"):
            raise
        _print_error(message)
        code = EXIT_FAILURE
    if code == EXIT_INTERRUPTED:
        _print_error("interrupted")
    sys.exit(code)


def build_app(command: str | None = None) -> typer.Typer:
    """The command line with every verb listed and only `verb` loaded: the others cost nothing."""
    app = typer.Typer(
        name="regard",
        add_completion=False,
        rich_markup_mode=None,  # plain help: quick, and the same in a pipe
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(epilog="`regard COMMAND --help` tells more about one of them.")(_global_options)
    for name, entry in COMMANDS.items():
        app.command(name, short_help=entry.help)(entry.load() if name == command else _not_loaded)
    return app


def _run(arguments: list[str], command: str | None) -> int:
    code = build_app(command)(
        args=arguments or ["--help"], prog_name="regard", standalone_mode=False
    )
    sys.stdout.flush()  # a closed pipe shows here, and not while the interpreter shuts down
    if not arguments:
        return EXIT_USAGE
    return code if isinstance(code, int) else EXIT_SUCCESS


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
        bool, typer.Option("--debug", help="Show the traceback of an error (or REGARD_DEBUG=1).")
    ] = False,
) -> None:
    """Train, run and look inside attention models."""
    del version, debug  # acted upon in `_show_version` and `main`


def _not_loaded() -> None:
    raise AssertionError("only the verb that is called is loaded")


def _print_error(message: str) -> None:
    print(f"regard: {message}", file=sys.stderr)


def _error_message(error: Exception) -> str | None:
    """What, where and what to do, in one line. None if it is for us to mend, not for the user."""
    match error:
        case OSError(filename=str() as path, strerror=str() as reason):
            return f"{path}: {reason[:1].lower()}{reason[1:]}"
        case ModuleNotFoundError(name=str() as name):
            extra = EXTRAS.get(name.partition(".")[0])
            return extra and f"{name} is not installed: pip install 'regard[{extra}]'"
        case _:
            return " ".join(str(error).split()) or type(error).__name__
