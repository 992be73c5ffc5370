"""`regard chat`: a conversation in the terminal."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from regard.tasks.chat import Turn, format_belief
from regard.train.chat import ChatReply, ChatRun

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
    run = ChatRun.load(folder)
    if run.task.backwards:
        raise ValueError(f"{folder}: reads backwards, and ranks replies; talk to another run")
    decode = run.settings.decode
    if decode.kind == "sample":
        settings = run.settings.model_copy(
            update={"decode": decode.model_copy(update={"seed": seed})}
        )
        run.settings = settings
    is_interactive = sys.stdin.isatty()
    console = Console(highlight=False, markup=False)
    if is_interactive:
        console.print(HELP, style="dim", soft_wrap=True)
    talk(run, console, is_interactive=is_interactive, show_belief=show_belief)


def talk(run: ChatRun, console: Console, *, is_interactive: bool, show_belief: bool) -> None:
    """Until there is nothing more to read."""
    histories: list[list[Turn]] = [[]]  # the conversation after each exchange
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
                history = [*histories[-1], Turn("user", text)]
                reply = print_reply(run, history, console)
                if show_belief and run.task.database:
                    belief_line = f"({format_belief(reply.belief)}: {len(reply.rows)} found)"
                    console.print(belief_line, style="dim", soft_wrap=True)
                histories.append(run.extended_history(history, reply))


def print_reply(run: ChatRun, history: list[Turn], console: Console) -> ChatReply:
    """Written while it is found, as far as it will not change."""
    printed_text = ""

    def on_text(text: str) -> None:
        nonlocal printed_text
        if text.startswith(printed_text):
            console.print(text[len(printed_text) :], end="", soft_wrap=True)
            sys.stdout.flush()
            printed_text = text

    [reply] = run.generate_replies([history], on_text)
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
