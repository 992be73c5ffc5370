"""Replies of a chat model, and their metrics about a database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regard.data.corpus import Record
from regard.data.database import PLACEHOLDER, Row
from regard.files import JsonObject
from regard.metrics.dialogue import entity_match
from regard.tasks.base import Metrics, Prediction

MAX_ROWS = 5  # matching rows in JSON output
OFFER_COLUMN = "name"  # the column whose placeholder makes a reply an offer


class ChatReply(NamedTuple):
    """A reply with the values of a row, and its delexicalized form with placeholders.

    With a database, `belief` holds the slots of the user's request and `rows` the matching rows.
    """

    text: str
    delexicalized: str
    belief: dict[str, str] | None = None
    rows: Sequence[Row] = ()

    @property
    def row(self) -> Row | None:
        """The row whose values the reply takes."""
        return self.rows[0] if self.rows else None


@dataclass(frozen=True)
class ChatPrediction(Prediction):
    """Replies to the turns of one conversation, in order; `text` is the last reply."""

    replies: tuple[ChatReply, ...]

    @classmethod
    def from_replies(cls, replies: Sequence[ChatReply]) -> "ChatPrediction":
        return cls(replies[-1].text, tuple(replies))

    def as_dict(self) -> JsonObject:
        reply = self.replies[-1]
        data: JsonObject = {"reply": reply.text}
        if reply.belief is not None:
            data |= {"wishes": reply.belief, "found": len(reply.rows), "row": reply.row}
            data["rows"] = list(reply.rows[:MAX_ROWS])
        return data


def database_metrics(records: Sequence[Record], replies: Sequence[Sequence[ChatReply]]) -> Metrics:
    """Return joint goal accuracy and entity match in percent.

    A belief counts in `joint_goal` if all its slots are correct.
    """
    beliefs = [
        (reply.belief or {}, reference)
        for record, dialogue_replies in zip(records, replies, strict=True)
        for reply, reference in zip(
            dialogue_replies, record["wishes"][-len(dialogue_replies) :], strict=True
        )
    ]
    is_correct = [casefolded(belief) == casefolded(reference) for belief, reference in beliefs]
    goals = [
        (record["goal"], last_offer(dialogue_replies))
        for record, dialogue_replies in zip(records, replies, strict=True)
        if "goal" in record
    ]
    share = entity_match([offer for _, offer in goals], [goal for goal, _ in goals])
    return {"joint_goal": 100 * sum(is_correct) / len(is_correct), "entity_match": 100 * share}


def casefolded(belief: Mapping[str, str]) -> dict[str, str]:
    return {name: value.casefold() for name, value in belief.items()}


def last_offer(replies: Sequence[ChatReply]) -> Row | None:
    """Return the row of the last reply that names a row."""
    offers = [
        reply.row
        for reply in replies
        if OFFER_COLUMN in PLACEHOLDER.findall(reply.delexicalized) and reply.row
    ]
    return offers[-1] if offers else None
