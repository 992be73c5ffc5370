"""The command line: a literal table of verbs, and what happens when one of them fails."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, NamedTuple, NoReturn

import typer

import regard

FINE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130

# What `pip install regard` leaves out, and the extra that brings it.
EXTRAS = {
    "matplotlib": "plot",
    "pyarrow": "parquet",
    "tensorboard": "tensorboard",
    "fastapi": "serve",
    "uvicorn": "serve",
}


class Verb(NamedTuple):
    """Where a verb lives, and its line in `regard --help`."""

    place: str
    help: str

    def load(self) -> Callable[..., None]:
        module, _, function = self.place.partition(":")
        return getattr(import_module(module), function)


VERBS = {
    "demo": Verb(
        "regard.cli.demo:demo", "Train a small attention layer, then show where it looks."
    ),
    "list": Verb("regard.cli.list:show", "List what is there: models, tasks, scores and more."),
    "init": Verb("regard.cli.init:init", "Write a complete, commented config."),
    "check": Verb("regard.cli.check:check", "Examine the data, and forecast the memory it takes."),
    "train": Verb("regard.cli.train:train", "Train; the same command again resumes, exactly."),
    "score": Verb("regard.cli.score:score", "Standard metrics of a run on a split."),
    "predict": Verb("regard.cli.predict:predict", "Answer lines of text: regard predict RUN < in."),
    "chat": Verb("regard.cli.chat:chat", "Talk to a run, in the terminal."),
    "play": Verb("regard.cli.play:play", "A piece of music from a run: MIDI, ABC, a picture."),
    "compare": Verb("regard.cli.compare:compare", "The same data, several models: one report."),
    "look": Verb("regard.cli.look:look", "Show what a run looked at, in the terminal."),
    "heads": Verb("regard.cli.heads:heads", "What each head looks at, and what is lost without."),
    "align": Verb("regard.cli.align:align", "Word alignments of pairs, and their error rate."),
    "import": Verb("regard.cli.exchange:import_", "A model of Hugging Face's folders into a run."),
    "export": Verb("regard.cli.exchange:export", "A run's model into such a folder."),
    "probe": Verb("regard.cli.probe:probe", "Measure how far gradients reach back in time."),
}


def main(words: list[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 fine, 1 failed, 2 wrong usage, 130 interrupted."""
    words = sys.argv[1:] if words is None else words
    verb = next((word for word in words if not word.startswith("-")), None)
    try:
        code = _run(words, verb)
    except typer.TyperException as error:
        place = f"regard {verb}" if verb in VERBS else "regard"
        _tell(f"{error.format_message().rstrip('.')} (see {place} --help)")
        code = error.exit_code
    except BrokenPipeError:  # the reader, say `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = FAILED
    except KeyboardInterrupt:
        code = INTERRUPTED
    except (ValueError, OSError, ModuleNotFoundError) as error:
        message = _message(error)
        if message is None or "--debug" in words or os.environ.get("REGARD_DEBUG"):
            raise
        _tell(message)
        code = FAILED
    if code == INTERRUPTED:
        _tell("interrupted")
    sys.exit(code)


def build(verb: str | None = None) -> typer.Typer:
    """The command line with every verb listed and only `verb` loaded: the others cost nothing."""
    app = typer.Typer(
        name="regard",
        add_completion=False,
        rich_markup_mode=None,  # plain help: quick, and the same in a pipe
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(epilog="`regard COMMAND --help` tells more about one of them.")(_global_options)
    for name, entry in VERBS.items():
        app.command(name, short_help=entry.help)(entry.load() if name == verb else _not_loaded)
    return app


def _run(words: list[str], verb: str | None) -> int:
    code = build(verb)(args=words or ["--help"], prog_name="regard", standalone_mode=False)
    sys.stdout.flush()  # a closed pipe shows here, and not while the interpreter shuts down
    if not words:
        return WRONG_USAGE
    return code if isinstance(code, int) else FINE


def _show_version(asked: bool) -> bool:
    if asked:
        print(f"regard {regard.__version__}")
        raise typer.Exit
    return asked


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


def _tell(message: str) -> None:
    print(f"regard: {message}", file=sys.stderr)


def _message(error: Exception) -> str | None:
    """What, where and what to do, in one line. None if it is for us to mend, not for the user."""
    match error:
        case OSError(filename=str() as place, strerror=str() as what):
            return f"{place}: {what[:1].lower()}{what[1:]}"
        case ModuleNotFoundError(name=str() as name):
            extra = EXTRAS.get(name.partition(".")[0])
            return extra and f"{name} is not installed: pip install 'regard[{extra}]'"
        case _:
            return " ".join(str(error).split()) or type(error).__name__
