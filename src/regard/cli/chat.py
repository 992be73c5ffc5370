"""`regard chat`: a conversation in the terminal."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from regard.run import Run
from regard.tasks.protocols import Conversation

HELP = "/new begins anew, /undo takes the last exchange back, /quit or Ctrl-D ends."


def chat(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    seed: Annotated[int, typer.Option(help="Another seed, other replies.", min=0)] = 0,
    show_belief: Annotated[
        bool,
        typer.Option("--show-belief", help="Also show what it took for wishes, and what it found."),
    ] = False,
) -> None:
    """Talk to a run, a line for each turn; replies appear as they are written."""
    run = Run.load(folder)
    if getattr(getattr(run.settings, "decode", None), "kind", None) == "sample":
        run = run.override([f"decode.seed={seed}"])
    task = run.task
    if not isinstance(task, Conversation):
        raise ValueError(f"{folder}: holds a run of task {task.name!r}, which does not converse")
    task.check_can_reply(str(folder))
    is_interactive = sys.stdin.isatty()
    console = Console(highlight=False, markup=False)
    if is_interactive:
        console.print(HELP, style="dim", soft_wrap=True)
    talk(task, console, is_interactive=is_interactive, show_belief=show_belief)


def talk(task: Conversation, console: Console, *, is_interactive: bool, show_belief: bool) -> None:
    """Until there is nothing more to read."""
    histories: list[list[Any]] = [[]]  # the conversation after each exchange
    while (line := read_line(is_interactive)) is not None:
        match line.strip():
            case "":
                continue
            case "/quit":
                return
            case "/new":
                histories = [[]]
            case "/undo":
                histories = histories[:-1] or [[]]
            case text if text.startswith("/"):
                console.print(f"{text.split()[0]}: unknown. {HELP}", style="dim", soft_wrap=True)
            case text:
                if not is_interactive:
                    console.print(f"> {text}", soft_wrap=True)
                history = [*histories[-1], task.user_turn(text)]
                reply = print_reply(task, history, console)
                if show_belief and (belief := task.describe_belief(reply)):
                    console.print(belief, style="dim", soft_wrap=True)
                histories.append(task.append_reply(history, reply))


def print_reply(task: Conversation, history: list[Any], console: Console) -> Any:
    """Written while it is found, as far as it will not change."""
    printed_text = ""

    def on_text(text: str) -> None:
        nonlocal printed_text
        if text.startswith(printed_text):
            console.print(text[len(printed_text) :], end="", soft_wrap=True)
            sys.stdout.flush()
            printed_text = text

    [reply] = task.generate_replies([history], on_text)
    on_text(reply.text)
    if printed_text != reply.text:  # what was shown is not how it ends
        console.print()
        console.print(reply.text, end="", soft_wrap=True)
    console.print()
    return reply


def read_line(is_interactive: bool) -> str | None:
    """The next line; None at the end. A person is prompted, and Ctrl-C ends it as Ctrl-D does."""
    try:
        return input("> ") if is_interactive else next(sys.stdin, None)
    except (EOFError, KeyboardInterrupt):
        return None
