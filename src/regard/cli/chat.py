"""`regard chat`: a conversation in the terminal."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from regard.tasks.chat import Turn, written
from regard.train.chat import ChatRun, Said

HELP = "/new begins anew, /undo takes the last exchange back, /quit or Ctrl-D ends."


def chat(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    seed: Annotated[int, typer.Option(help="Another seed, other replies.", min=0)] = 0,
    facts: Annotated[
        bool, typer.Option("--facts", help="Also show what it took for wishes, and what it found.")
    ] = False,
) -> None:
    """Talk to a run, a line for each turn; replies appear as they are written."""
    run = ChatRun.load(folder)
    if run.task.backwards:
        raise ValueError(f"{folder}: reads backwards, and ranks replies; talk to another run")
    decode = run.settings.decode
    if decode.kind == "sample":
        settings = run.settings.model_copy(
            update={"decode": decode.model_copy(update={"seed": seed})}
        )
        run.settings = settings
    people = sys.stdin.isatty()
    console = Console(highlight=False, markup=False)
    if people:
        console.print(HELP, style="dim", soft_wrap=True)
    talk(run, console, people=people, facts=facts)


def talk(run: ChatRun, console: Console, *, people: bool, facts: bool) -> None:
    """Until there is nothing more to read."""
    past: list[list[Turn]] = [[]]  # the conversation after each exchange
    while (line := asked(people)) is not None:
        match line.strip():
            case "":
                continue
            case "/quit":
                return
            case "/new":
                past = [[]]
            case "/undo":
                past = past[:-1] or [[]]
            case text if text.startswith("/"):
                console.print(f"{text.split()[0]}: unknown. {HELP}", style="dim", soft_wrap=True)
            case text:
                if not people:
                    console.print(f"> {text}", soft_wrap=True)
                history = [*past[-1], Turn("user", text)]
                said = answered(run, history, console)
                if facts and run.task.database:
                    told = f"({written(said.wishes)}: {len(said.rows)} found)"
                    console.print(told, style="dim", soft_wrap=True)
                past.append(run.after(history, said))


def answered(run: ChatRun, history: list[Turn], console: Console) -> Said:
    """Written while it is found, as far as it will not change."""
    shown = ""

    def more(text: str) -> None:
        nonlocal shown
        if text.startswith(shown):
            console.print(text[len(shown) :], end="", soft_wrap=True)
            sys.stdout.flush()
            shown = text

    [said] = run.say([history], more)
    more(said.text)
    if shown != said.text:  # what was shown is not how it ends
        console.print()
        console.print(said.text, end="", soft_wrap=True)
    console.print()
    return said


def asked(people: bool) -> str | None:
    """The next line; None at the end. A person is prompted, and Ctrl-C ends it as Ctrl-D does."""
    try:
        return input("> ") if people else next(sys.stdin, None)
    except (EOFError, KeyboardInterrupt):
        return None
