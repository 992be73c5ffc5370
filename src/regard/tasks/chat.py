"""Conversation: turns one after the other, each behind the mark of an end (Zhang et al. 2020).

    END turn END turn END …

About a database an exchange has four turns in the place of two: what was said, what is wished for
by now, how many rows are so, and the reply, with blanks for what a row tells. The model writes
wishes and reply; the number is looked up.
b: rows   t: positions
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.batch.batches import in_order
from regard.batch.pair import Pair, padded
from regard.batch.windows import Window
from regard.corpora.database import ANY, Database
from regard.tasks.language import Language
from regard.tasks.translate import ROOM
from regard.text.marks import AnyTokeniser

Role = Literal["user", "wishes", "found", "reply"]
WISH = re.compile(r"(\w+) *= *([^;=]*[^;= ])")
FAR = 10**6  # tokens: more than anybody says
COUNTED = 3  # rows that are told by number; of more there are many


class Turn(NamedTuple):
    """Whose it is, and the text."""

    role: Role
    text: str


def turns_of(record: Mapping[str, Any], database: Database) -> list[Turn]:
    """A conversation of a corpus; about a database, with wishes and what was found."""
    turns = record["turns"]
    if not database:
        return [Turn("reply" if n % 2 else "user", text) for n, text in enumerate(turns)]
    found = list[Turn]()
    for said, wishes, reply in zip(turns[::2], record["wishes"], turns[1::2], strict=True):
        found += [Turn("user", said), Turn("wishes", written(wishes))]
        found.append(Turn("found", counted(len(database.find(wishes)))))
        found.append(Turn("reply", database.blanked(reply)))
    return found


def written(wishes: Mapping[str, str]) -> str:
    """`food=thai; area=any`, or `none`."""
    return "; ".join(f"{name}={value}" for name, value in wishes.items()) or "none"


def read(text: str, database: Database) -> dict[str, str]:
    """The other way, in the order of the columns; what is no wish is passed over."""
    given = {name: value.strip() for name, value in WISH.findall(text)}
    return {name: given[name] or ANY for name in database.asked if name in given}


def does_count(turn: Turn, replies: bool) -> bool:
    """In the loss: all but what was looked up, or only what the model is to write."""
    return turn.role in ("wishes", "reply") if replies else turn.role != "found"


def counted(rows: int) -> str:
    return str(rows) if rows <= COUNTED else "many"


class Chat(Language):
    """A language model, its vocabulary, and what can be looked up.

    `replies`: only what the model is to write counts in the loss, not what people say to it.
    `backwards`: it reads conversations from their end, to tell what a reply replies to.
    """

    fields = ("turns",)

    def __init__(
        self,
        model: nn.Module,
        text: AnyTokeniser,
        database: Database,
        *,
        replies: bool = False,
        backwards: bool = False,
    ):
        super().__init__(model, text)
        self.database, self.replies, self.backwards = database, replies, backwards

    def pairs(
        self,
        records: Iterable[Mapping[str, Any]],
        longest: int = 256,
        *,
        replies: bool | None = None,
    ) -> Iterator[Pair]:
        """Rows of ids, and for each token but the first whether it counts.

        A conversation that is longer goes on in a further row, behind the turns before which fit in
        half of it, and which do not count again.
        """
        for number, record in enumerate(records):
            turns = turns_of(record, self.database)
            turns = turns[::-1] if self.backwards else turns
            only = self.replies if replies is None else replies
            for ids, counts in self.rows(turns, longest, only):
                yield Pair(number, ids, counts)

    def rows(
        self, turns: Sequence[Turn], longest: int, replies: bool
    ) -> Iterator[tuple[list[int], list[int]]]:
        tokens = [[*ids[: longest - 1], self.end] for ids in self.text.ids([t.text for t in turns])]
        begun = 0
        while begun < len(turns):
            first, size = begun, len(tokens[begun])
            while first and size + len(tokens[first - 1]) <= longest // 2:
                first -= 1
                size += len(tokens[first])
            end = begun + 1
            while end < len(turns) and size + len(tokens[end]) <= longest:
                size += len(tokens[end])
                end += 1
            ids, counts = [self.end], list[int]()
            for at in range(first, end):
                ids += tokens[at]
                counts += [int(at >= begun and does_count(turns[at], replies))] * len(tokens[at])
            yield ids, counts
            begun = end

    def collate(self, pairs: Sequence[Pair]) -> Window:
        ids, _ = padded([list(pair.source) for pair in pairs])
        counts, _ = padded([list(pair.target) for pair in pairs])
        return Window(ids[:, :-1], ids[:, 1:], counts.bool())

    def windows(self, pairs: Sequence[Pair]) -> Iterator[Window]:
        return in_order(pairs, tokens=ROOM, collate=self.collate)

    def start(self, turns: Sequence[Turn], room: int) -> list[int]:
        """Ids to go on from: of a history that is too long the first turns are left out."""
        ids = [self.end]
        for one in reversed([[*ids, self.end] for ids in self.text.ids([t.text for t in turns])]):
            if len(ids) > 1 and len(ids) + len(one) > self.reach - room:
                break
            ids = [self.end, *one, *ids[1:]]
        return ids

    @torch.no_grad()
    def told_back(self, history: Sequence[Turn], replies: Sequence[str]) -> Float[Tensor, " b"]:
        """log p(history | reply) of each reply, by a model that reads backwards."""
        self.model.eval()
        room = int(min(self.reach, FAR))
        pairs = list[Pair]()
        for number, reply in enumerate(replies):
            turns = [Turn("reply", reply), *reversed(history)]
            tokens = [[*ids, self.end] for ids in self.text.ids([turn.text for turn in turns])]
            counts = [0] * len(tokens[0]) + [1] * sum(map(len, tokens[1:]))
            ids = [self.end, *(one for some in tokens for one in some)]
            pairs.append(Pair(number, ids[: room + 1], counts[:room]))
        window = self.collate(pairs)
        states, _ = self.model.read(self.model.begin(len(pairs)), window.given)
        logits = self.model.logits(states).flatten(0, 1)
        losses = F.cross_entropy(logits, window.wanted.flatten(), reduction="none")
        return -(losses.view_as(window.wanted) * window.valid).sum(1)
