"""`regard chat`: chat with a run in the terminal."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from regard.cli.options import DeviceOption, RunArgument
from regard.errors import InputError
from regard.run import Run
from regard.tasks.base import Prediction
from regard.tasks.protocols import Conversation

HELP = "/new: new conversation; /undo: remove the last exchange; /quit or Ctrl-D: end."


def chat(
    folder: RunArgument,
    seed: Annotated[
        int, typer.Option(help="Random seed of sampled replies (decode.kind=sample).", min=0)
    ] = 0,
    show_belief: Annotated[
        bool,
        typer.Option(
            "--show-belief",
            help="Also print the slot values of each reply, and the number of matching rows.",
        ),
    ] = False,
    device: DeviceOption = None,
) -> None:
    """Chat with a run: one line of input per turn. Replies are printed while they are generated."""
    run = Run.load(folder, device=device or "auto")
    if getattr(getattr(run.settings, "decode", None), "kind", None) == "sample":
        run = run.override([f"decode.seed={seed}"])
    task = run.task
    if not isinstance(task, Conversation):
        raise InputError(f"{folder}: the task {task.name} does not chat; give a run that does")
    task.check_can_reply(str(folder))
    is_interactive = sys.stdin.isatty()
    console = Console(highlight=False, markup=False)
    if is_interactive:
        console.print(HELP, style="dim", soft_wrap=True)
    talk(task, console, is_interactive=is_interactive, show_belief=show_belief)


def talk(task: Conversation, console: Console, *, is_interactive: bool, show_belief: bool) -> None:
    """Reply to each line of input, until the input ends."""
    histories: list[list[object]] = [[]]  # the conversation after each exchange
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
                message = f"{text.split()[0]}: unknown command. {HELP}"
                console.print(message, style="dim", soft_wrap=True)
            case text:
                if not is_interactive:
                    console.print(f"> {text}", soft_wrap=True)
                history = [*histories[-1], task.user_turn(text)]
                reply = print_reply(task, history, console)
                if show_belief and (belief := task.describe_belief(reply)):
                    console.print(belief, style="dim", soft_wrap=True)
                histories.append(task.append_reply(history, reply))


def print_reply(task: Conversation, history: list[object], console: Console) -> Prediction:
    """Print a reply while it is generated, and return it."""
    printed_text = ""

    def on_text(text: str) -> None:
        nonlocal printed_text
        if text.startswith(printed_text):
            console.print(text[len(printed_text) :], end="", soft_wrap=True)
            sys.stdout.flush()
            printed_text = text

    [reply] = task.generate_replies([history], on_text)
    on_text(reply.text)
    if printed_text != reply.text:  # the final reply does not begin with the printed text
        console.print()
        console.print(reply.text, end="", soft_wrap=True)
    console.print()
    return reply


def read_line(is_interactive: bool) -> str | None:
    """Return the next line, or None at the end of the input, at Ctrl-C or Ctrl-D."""
    try:
        if is_interactive:
            return input("> ")
        line = next(sys.stdin, None)
        return line and line.removeprefix("\ufeff")  # some programs write a BOM first
    except (EOFError, KeyboardInterrupt):
        return None
