"""Turns of a conversation, and belief states as text.

With a database an exchange has four turns instead of two: the user's turn, the belief (all slots
requested so far), the number of matching rows, and the reply, with placeholders for values.
"""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from regard.data.corpus import Record
from regard.data.database import ANY_VALUE, Database

Role = Literal["user", "belief", "row_count", "reply"]
SLOT_PATTERN = re.compile(r"(\w+) *= *([^;=]*[^;= ])")
MAX_COUNTED_ROWS = 3  # a larger number of rows is written as "many"


class Turn(NamedTuple):
    """A text with the role of its author."""

    role: Role
    text: str


def dialogue_turns(record: Record, database: Database) -> list[Turn]:
    """Return the turns of a record; with a database, also beliefs and row counts."""
    turns = record["turns"]
    if not database:
        return [Turn("reply" if n % 2 else "user", text) for n, text in enumerate(turns)]
    dialogue = list[Turn]()
    for user_text, belief, reply in zip(turns[::2], record["wishes"], turns[1::2], strict=True):
        dialogue += [Turn("user", user_text), *belief_turns(belief, database)]
        dialogue.append(Turn("reply", database.delexicalize(reply)))
    return dialogue


def belief_turns(belief: Mapping[str, str], database: Database) -> list[Turn]:
    """Return the turns between the user's and the reply: belief and number of matching rows."""
    row_count = format_row_count(len(database.find_rows(belief)))
    return [Turn("belief", format_belief(belief)), Turn("row_count", row_count)]


def format_belief(belief: Mapping[str, str]) -> str:
    """Return a belief as text: `food=thai; area=any`, or `none`."""
    return "; ".join(f"{name}={value}" for name, value in belief.items()) or "none"


def parse_belief(text: str, database: Database) -> dict[str, str]:
    """Return the slots in a text, in the order of the columns; ignore everything else."""
    slots = {name: value.strip() for name, value in SLOT_PATTERN.findall(text)}
    return {name: slots[name] or ANY_VALUE for name in database.slot_columns if name in slots}


def format_row_count(rows: int) -> str:
    return str(rows) if rows <= MAX_COUNTED_ROWS else "many"


def is_in_loss(turn: Turn, replies_only: bool) -> bool:
    """Return whether a turn is in the loss: all but row counts, or only what the model writes."""
    return turn.role in ("belief", "reply") if replies_only else turn.role != "row_count"
