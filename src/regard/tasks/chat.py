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

from regard.batching.batches import iterate_by_length
from regard.batching.example import Example, padded
from regard.batching.text_windows import TextWindow
from regard.data.database import ANY_VALUE, Database
from regard.tasks.language import LanguageTask
from regard.tasks.translate import TOKENS_PER_BATCH
from regard.text.special_ids import AnyTokenizer

Role = Literal["user", "wishes", "found", "reply"]
SLOT_PATTERN = re.compile(r"(\w+) *= *([^;=]*[^;= ])")
UNLIMITED_TOKENS = 10**6  # tokens: more than anybody says
MAX_COUNTED_ROWS = 3  # rows that are told by number; of more there are many


class Turn(NamedTuple):
    """Whose it is, and the text."""

    role: Role
    text: str


def dialogue_turns(record: Mapping[str, Any], database: Database) -> list[Turn]:
    """A conversation of a corpus; about a database, with wishes and what was found."""
    turns = record["turns"]
    if not database:
        return [Turn("reply" if n % 2 else "user", text) for n, text in enumerate(turns)]
    dialogue = list[Turn]()
    for user_text, belief, reply in zip(turns[::2], record["wishes"], turns[1::2], strict=True):
        dialogue += [Turn("user", user_text), Turn("wishes", format_belief(belief))]
        dialogue.append(Turn("found", format_row_count(len(database.find_rows(belief)))))
        dialogue.append(Turn("reply", database.delexicalize(reply)))
    return dialogue


def format_belief(belief: Mapping[str, str]) -> str:
    """`food=thai; area=any`, or `none`."""
    return "; ".join(f"{name}={value}" for name, value in belief.items()) or "none"


def parse_belief(text: str, database: Database) -> dict[str, str]:
    """The other way, in the order of the columns; what is no wish is passed over."""
    slots = {name: value.strip() for name, value in SLOT_PATTERN.findall(text)}
    return {name: slots[name] or ANY_VALUE for name in database.slot_columns if name in slots}


def is_in_loss(turn: Turn, replies: bool) -> bool:
    """In the loss: all but what was looked up, or only what the model is to write."""
    return turn.role in ("wishes", "reply") if replies else turn.role != "found"


def format_row_count(rows: int) -> str:
    return str(rows) if rows <= MAX_COUNTED_ROWS else "many"


class ChatTask(LanguageTask):
    """A language model, its vocabulary, and what can be looked up.

    `replies`: only what the model is to write counts in the loss, not what people say to it.
    `backwards`: it reads conversations from their end, to tell what a reply replies to.
    """

    fields = ("turns",)

    def __init__(
        self,
        model: nn.Module,
        text: AnyTokenizer,
        database: Database,
        *,
        replies: bool = False,
        backwards: bool = False,
    ):
        super().__init__(model, text)
        self.database, self.replies, self.backwards = database, replies, backwards

    def examples(
        self,
        records: Iterable[Mapping[str, Any]],
        max_tokens: int = 256,
        *,
        replies: bool | None = None,
    ) -> Iterator[Example]:
        """Rows of ids, and for each token but the first whether it counts.

        A conversation that is longer goes on in a further row, behind the turns before which fit in
        half of it, and which do not count again.
        """
        for index, record in enumerate(records):
            turns = dialogue_turns(record, self.database)
            turns = turns[::-1] if self.backwards else turns
            replies_only = self.replies if replies is None else replies
            for ids, loss_mask in self.rows(turns, max_tokens, replies_only):
                yield Example(index, ids, loss_mask)

    def rows(
        self, turns: Sequence[Turn], max_tokens: int, replies: bool
    ) -> Iterator[tuple[list[int], list[int]]]:
        tokens = [
            [*ids[: max_tokens - 1], self.end]
            for ids in self.text.encode_ids([t.text for t in turns])
        ]
        next_turn = 0
        while next_turn < len(turns):
            first, size = next_turn, len(tokens[next_turn])
            while first and size + len(tokens[first - 1]) <= max_tokens // 2:
                first -= 1
                size += len(tokens[first])
            end = next_turn + 1
            while end < len(turns) and size + len(tokens[end]) <= max_tokens:
                size += len(tokens[end])
                end += 1
            ids, loss_mask = [self.end], list[int]()
            for position in range(first, end):
                ids += tokens[position]
                loss_mask += [
                    int(position >= next_turn and is_in_loss(turns[position], replies))
                ] * len(tokens[position])
            yield ids, loss_mask
            next_turn = end

    def collate(self, examples: Sequence[Example]) -> TextWindow:
        ids, _ = padded([list(example.source) for example in examples])
        loss_mask, _ = padded([list(example.target) for example in examples])
        return TextWindow(ids[:, :-1], ids[:, 1:], loss_mask.bool())

    def windows(self, examples: Sequence[Example]) -> Iterator[TextWindow]:
        return iterate_by_length(examples, tokens_per_batch=TOKENS_PER_BATCH, collate=self.collate)

    def prompt_ids(self, turns: Sequence[Turn], reply_tokens: int) -> list[int]:
        """Ids to go on from: of a history that is too long the first turns are left out."""
        ids = [self.end]
        for turn_ids in reversed(
            [[*ids, self.end] for ids in self.text.encode_ids([t.text for t in turns])]
        ):
            if len(ids) > 1 and len(ids) + len(turn_ids) > self.max_positions - reply_tokens:
                break
            ids = [self.end, *turn_ids, *ids[1:]]
        return ids

    @torch.no_grad()
    def backward_log_prob(
        self, history: Sequence[Turn], replies: Sequence[str]
    ) -> Float[Tensor, " b"]:
        """log p(history | reply) of each reply, by a model that reads backwards."""
        self.model.eval()
        max_tokens = int(min(self.max_positions, UNLIMITED_TOKENS))
        examples = list[Example]()
        for index, reply in enumerate(replies):
            turns = [Turn("reply", reply), *reversed(history)]
            tokens = [
                [*ids, self.end] for ids in self.text.encode_ids([turn.text for turn in turns])
            ]
            loss_mask = [0] * len(tokens[0]) + [1] * sum(map(len, tokens[1:]))
            ids = [self.end, *(token_id for turn_ids in tokens for token_id in turn_ids)]
            examples.append(Example(index, ids[: max_tokens + 1], loss_mask[:max_tokens]))
        window = self.collate(examples)
        states, _ = self.model.read(self.model.begin(len(examples)), window.inputs)
        logits = self.model.logits(states).flatten(0, 1)
        losses = F.cross_entropy(logits, window.targets.flatten(), reduction="none")
        return -(losses.view_as(window.targets) * window.valid).sum(1)
