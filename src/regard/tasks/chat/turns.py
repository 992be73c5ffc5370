"""The turns of a conversation, and beliefs about what a user wishes, as text.

About a database an exchange has four turns in the place of two: the user's, the wishes so far, how
many rows match them, and the reply, with placeholders for the values of a row.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from regard.data.database import ANY_VALUE, Database

Role = Literal["user", "wishes", "found", "reply"]
SLOT_PATTERN = re.compile(r"(\w+) *= *([^;=]*[^;= ])")
MAX_COUNTED_ROWS = 3  # more rows than these are "many"


class Turn(NamedTuple):
    """A text with the role of its author."""

    role: Role
    text: str


def dialogue_turns(record: Mapping[str, Any], database: Database) -> list[Turn]:
    """Return the turns of a record; about a database, with wishes and numbers of rows."""
    turns = record["turns"]
    if not database:
        return [Turn("reply" if n % 2 else "user", text) for n, text in enumerate(turns)]
    dialogue = list[Turn]()
    for user_text, belief, reply in zip(turns[::2], record["wishes"], turns[1::2], strict=True):
        dialogue += [Turn("user", user_text), *belief_turns(belief, database)]
        dialogue.append(Turn("reply", database.delexicalize(reply)))
    return dialogue


def belief_turns(belief: Mapping[str, str], database: Database) -> list[Turn]:
    """Return the turns between a user's and a reply: wishes, and the number of matching rows."""
    row_count = format_row_count(len(database.find_rows(belief)))
    return [Turn("wishes", format_belief(belief)), Turn("found", row_count)]


def format_belief(belief: Mapping[str, str]) -> str:
    """Return wishes as text: `food=thai; area=any`, or `none`."""
    return "; ".join(f"{name}={value}" for name, value in belief.items()) or "none"


def parse_belief(text: str, database: Database) -> dict[str, str]:
    """Return the wishes in a text, in the order of the columns; anything else is ignored."""
    slots = {name: value.strip() for name, value in SLOT_PATTERN.findall(text)}
    return {name: slots[name] or ANY_VALUE for name in database.slot_columns if name in slots}


def format_row_count(rows: int) -> str:
    return str(rows) if rows <= MAX_COUNTED_ROWS else "many"


def is_in_loss(turn: Turn, replies_only: bool) -> bool:
    """Return whether a turn counts: all but numbers of rows, or only what the model writes."""
    return turn.role in ("wishes", "reply") if replies_only else turn.role != "found"
