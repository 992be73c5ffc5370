"""A run that converses: about anything, or about a database, in which it looks things up."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from torch import Tensor

from regard.batch.batches import Batches
from regard.batch.pair import Pair
from regard.batch.windows import Window
from regard.config.decode import Greedy
from regard.config.settings import ChatSettings
from regard.corpora.corpus import Corpus, Record
from regard.corpora.database import BLANK, Database, Row
from regard.metric.dialogue import distinct, matched
from regard.metric.language import perplexity
from regard.metric.translation import bleu
from regard.models.catalogue import build as build_model
from regard.tasks.chat import FAR, Chat, Turn, counted, read, turns_of, written
from regard.tasks.loss import Loss
from regard.text.marks import load_tokeniser
from regard.train.examples import examples
from regard.train.run import LEARNT, Reply, Run, Told, first, learnt
from regard.train.search import rules_of, search_of

Heard = Callable[[str], None]  # is given a reply as far as it is known
NAME = "name"  # the column whose blank makes a reply an offer


class Said(NamedTuple):
    """A reply with its blanks filled in, and as it was written; what it rests on."""

    text: str
    blanked: str
    wishes: dict[str, str]
    rows: list[Row]

    @property
    def row(self) -> Row | None:
        """The row that it tells of."""
        return self.rows[0] if self.rows else None


class ChatRun(Run):
    """Turns that answer turns."""

    kept: ClassVar = {"text": load_tokeniser, "database": Database.load}
    settings: ChatSettings
    task: Chat

    def asked(self) -> Chat:
        wanted = self.settings.model.model_dump(exclude={"kind"})
        text = self.vocabularies["text"]
        return Chat(
            build_model(self.settings.model.kind, {**wanted, "size": text.size}),
            text,
            self.vocabularies["database"],
            replies=self.settings.train.replies,
            backwards=self.settings.train.backwards,
        )

    @classmethod
    def learn(cls, settings: Any, corpus: Any) -> dict[str, Any]:
        database: Database = corpus.database
        turns = (
            turn.text
            for record in first(corpus.read("train"), LEARNT)
            for turn in turns_of(record, database)
        )
        return {"text": learnt(settings.text, turns), "database": database}

    def batches(self, corpus: Corpus) -> Batches:
        """Conversations of about equal length together."""
        train = self.settings.train

        def pairs(records: Iterable[Record]) -> Iterator[Pair]:
            return self.task.pairs(records, self.longest)

        return Batches(
            examples(lambda: corpus.read("train"), pairs, ["text"], self.settings, stream=False),
            tokens=train.tokens_per_batch,
            sentences=train.sentences_per_batch,
            seed=self.settings.seed,
            collate=self.task.collate,
        )

    @property
    def longest(self) -> int:
        return int(min(self.settings.train.longest, self.task.reach))

    def loss(self, batch: Window, done: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.task.loss(batch, None, self.settings.train.label_smoothing)[0]

    def likelihood(self, records: Iterable[Record]) -> Loss:
        pairs = list(self.task.pairs(records, self.longest))
        return self.task.likelihood(self.task.windows(pairs))

    def score(self, records: Iterable[Record], told: Told | None = None) -> dict[str, float | str]:
        """How likely the true replies are, and how the run's own are, after the true history."""
        records = list(records)
        pairs = self.task.pairs(records, self.longest, replies=True)  # whatever was trained on
        loss = self.task.likelihood(self.task.windows(list(pairs)))
        found: dict[str, float | str] = {
            "perplexity": perplexity(loss.total.item(), loss.tokens),
            "tokens": loss.tokens,
        }
        if self.task.backwards:
            return found
        said = self.replayed(records, told)
        own = [one.blanked for some in said for one in some]
        true = [
            turn.text.lower() if self.settings.text.lower else turn.text
            for record in records
            for turn in turns_of(record, self.task.database)
            if turn.role == "reply"
        ]
        score = bleu(own, true[: len(own)], lower=True)
        found |= {
            "bleu": score.value,
            "distinct_1": distinct(own, 1),
            "distinct_2": distinct(own, 2),
        }
        if self.task.database:
            found |= self.looked_up(records, said)
        return {**found, "replies": len(own), "bleu_signature": score.signature}

    def looked_up(
        self, records: Sequence[Record], said: Sequence[Sequence[Said]]
    ) -> dict[str, Any]:
        """Wishes that are all understood, and offers that are as the goal says, in percent."""
        pairs = [
            (mine.wishes, true)
            for record, some in zip(records, said, strict=True)
            for mine, true in zip(some, record["wishes"], strict=True)
        ]
        right = [folded(mine) == folded(true) for mine, true in pairs]
        goals = [
            (record["goal"], last_offer(some))
            for record, some in zip(records, said, strict=True)
            if "goal" in record
        ]
        share = matched([offer for _, offer in goals], [goal for goal, _ in goals])
        return {"wishes": 100 * sum(right) / len(right), "entity_match": 100 * share}

    def replayed(self, records: Sequence[Record], told: Told | None = None) -> list[list[Said]]:
        """What the run says in each exchange, if all before went as in the record."""
        histories, exchanges = list[list[Turn]](), list[int]()
        for record in records:
            turns = turns_of(record, self.task.database)
            last = max(at for at, turn in enumerate(turns) if turn.role == "reply")
            asked = [at for at, turn in enumerate(turns[:last]) if turn.role == "user"]
            histories += [turns[: at + 1] for at in asked]
            exchanges.append(len(asked))
        said = iter(self.say(histories))
        if told is not None:
            told(len(records))
        return [[next(said) for _ in range(count)] for count in exchanges]

    def say(self, histories: Sequence[Sequence[Turn]], heard: Heard | None = None) -> list[Said]:
        """The reply to the last turn of each, which is somebody else's.

        `heard` is given what is known of a reply as it is written, where there is one history.
        """
        base = self.task.database
        if not base:
            return [Said(text, text, {}, []) for text in self.written(histories, heard=heard)]
        wishes = [read(text, base) for text in self.written(histories, greedy=True)]
        rows = [base.find(one) for one in wishes]
        known = [
            [*history, Turn("wishes", written(wish)), Turn("found", counted(len(found)))]
            for history, wish, found in zip(histories, wishes, rows, strict=True)
        ]

        def filled(text: str, at: int) -> str:
            return base.filled(text, rows[at][0] if rows[at] else None, wishes[at])

        def partly(text: str) -> None:
            if heard is not None:
                heard(filled(text, 0))

        blanked = self.written(known, heard=None if heard is None else partly)
        return [
            Said(filled(text, at), text, wishes[at], rows[at]) for at, text in enumerate(blanked)
        ]

    def after(self, history: Sequence[Turn], said: Said) -> list[Turn]:
        """The history with what was said."""
        reply = Turn("reply", said.blanked)
        if not self.task.database:
            return [*history, reply]
        found = Turn("found", counted(len(said.rows)))
        return [*history, Turn("wishes", written(said.wishes)), found, reply]

    def written(
        self,
        histories: Sequence[Sequence[Turn]],
        *,
        greedy: bool = False,
        heard: Heard | None = None,
    ) -> list[str]:
        """The next turn of each: the likeliest, or as the settings say, the best by their rank."""
        decode, rank = self.settings.decode, self.settings.rank
        if greedy:
            decode = Greedy(max_length=decode.max_length)
        back = None if greedy else self.backward
        search = search_of(decode, 1 if back is None else rank.candidates)
        room = min(decode.max_length, int(min(self.task.reach, FAR)) // 2)
        found = self.task.go_on(
            [self.task.start(turns, room) for turns in histories],
            search,
            rules_of(decode, decode.max_length),
            heard=self.hearing(heard) if heard and back is None and len(histories) == 1 else None,
        )
        if back is None:
            return [best[0].text for best in found]
        chosen = []
        for turns, some in zip(histories, found, strict=True):
            told = back.task.told_back(turns, [one.text for one in some]).tolist()
            scores = [
                (1 - rank.weight) * one.log_prob + rank.weight * log_prob
                for one, log_prob in zip(some, told, strict=True)
            ]
            chosen.append(some[scores.index(max(scores))].text)
        return chosen

    def hearing(self, heard: Heard) -> Callable[[Tensor], None]:
        """Of a search for one output: text of the tokens that it goes on from, as they come."""
        ids = list[int]()

        def hear(tokens: Tensor) -> None:
            if len(tokens) == 1:  # a beam has not made up its mind
                ids.extend(self.task.ids_of(tokens.tolist()))
                heard(whole_part(self.task.text.decode(ids)))

        return hear

    @cached_property
    def backward(self) -> "ChatRun | None":
        """The run that tells what a reply replies to, if there is one."""
        if self.settings.rank.backward is None:
            return None
        run = ChatRun.load(self.settings.rank.backward)
        if not run.task.backwards:
            raise ValueError(f"{self.settings.rank.backward}: train it with train.backwards = true")
        return run

    def reply(self, texts: Sequence[str], place: str = "text {}") -> list[Reply]:  # noqa: ARG002
        """To each conversation, whose turns have tabs between."""
        return [self.reply_to(text.split("\t")) for text in texts]

    def reply_to(self, turns: Sequence[str]) -> Reply:
        history = list[Turn]()
        for at, text in enumerate(turns):  # the last is to be answered
            mine = (len(turns) - at) % 2 == 0
            if mine and self.task.database:
                wishes = read(self.written([history], greedy=True)[0], self.task.database)
                found = counted(len(self.task.database.find(wishes)))
                history += [Turn("wishes", written(wishes)), Turn("found", found)]
                text = self.task.database.blanked(text)
            history.append(Turn("reply" if mine else "user", text))
        [said] = self.say([history])
        facts: dict[str, Any] = {"turns": list(turns), "reply": said.text}
        if self.task.database:
            facts |= {"wishes": said.wishes, "found": len(said.rows), "row": said.row}
        return Reply(said.text, facts)

    def __call__(self, *turns: str) -> str:
        """The reply to the last of these turns."""
        return self.reply_to(turns).text


def folded(wishes: dict[str, str]) -> dict[str, str]:
    return {name: value.casefold() for name, value in wishes.items()}


def last_offer(said: Sequence[Said]) -> Row | None:
    """The row of the last reply with a name in it."""
    offers = [one.row for one in said if NAME in BLANK.findall(one.blanked) and one.row]
    return offers[-1] if offers else None


def whole_part(text: str) -> str:
    """Without a blank that is not closed yet, and without half a character."""
    head, mark, tail = text.rpartition("[")
    return (head if mark and "]" not in tail else text).rstrip("\ufffd")
