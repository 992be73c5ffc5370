"""A run that converses: about anything, or about a database, in which it looks things up."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from torch import Tensor

from regard.batching.batches import Batches
from regard.batching.example import Example
from regard.batching.text_windows import TextWindow
from regard.config.decode import GreedyConfig
from regard.config.settings import ChatSettings
from regard.data.corpus import Corpus, Record
from regard.data.database import PLACEHOLDER, Database, Row
from regard.metrics.dialogue import distinct_ngrams, entity_match
from regard.metrics.language import perplexity
from regard.metrics.translation import bleu
from regard.models.catalogue import build_model as build_model
from regard.tasks.chat import (
    UNLIMITED_TOKENS,
    ChatTask,
    Turn,
    dialogue_turns,
    format_belief,
    format_row_count,
    parse_belief,
)
from regard.tasks.generation import build_constraints, build_search
from regard.tasks.loss import Loss
from regard.text.special_ids import load_tokenizer
from regard.train.run import (
    MAX_VOCABULARY_RECORDS,
    Prediction,
    ProgressCallback,
    Run,
    take,
    train_tokenizer_on_texts,
)
from regard.training.examples import build_examples

TextCallback = Callable[[str], None]  # is given a reply as far as it is known
OFFER_COLUMN = "name"  # the column whose blank makes a reply an offer


class ChatReply(NamedTuple):
    """A reply with its blanks filled in, and as it was written; what it rests on."""

    text: str
    delexicalized: str
    belief: dict[str, str]
    rows: list[Row]

    @property
    def row(self) -> Row | None:
        """The row that it tells of."""
        return self.rows[0] if self.rows else None


class ChatRun(Run):
    """Turns that answer turns."""

    vocabulary_loaders: ClassVar = {"text": load_tokenizer, "database": Database.load}
    settings: ChatSettings
    task: ChatTask

    def build_task(self) -> ChatTask:
        options = self.settings.model.model_dump(exclude={"kind"})
        tokenizer = self.vocabularies["text"]
        return ChatTask(
            build_model(self.settings.model.kind, {**options, "size": tokenizer.size}),
            tokenizer,
            self.vocabularies["database"],
            replies=self.settings.train.replies_only,
            backwards=self.settings.train.reverse_turns,
        )

    @classmethod
    def build_vocabularies(cls, settings: Any, corpus: Any) -> dict[str, Any]:
        database: Database = corpus.database
        turns = (
            turn.text
            for record in take(corpus.read("train"), MAX_VOCABULARY_RECORDS)
            for turn in dialogue_turns(record, database)
        )
        return {"text": train_tokenizer_on_texts(settings.text, turns), "database": database}

    def batches(self, corpus: Corpus) -> Batches:
        """Conversations of about equal length together."""
        train = self.settings.train

        def to_examples(records: Iterable[Record]) -> Iterator[Example]:
            return self.task.examples(records, self.max_tokens)

        return Batches(
            build_examples(
                lambda: corpus.read("train"), to_examples, ["text"], self.settings, stream=False
            ),
            tokens_per_batch=train.tokens_per_batch,
            examples_per_batch=train.examples_per_batch,
            seed=self.settings.seed,
            collate=self.task.collate,
        )

    @property
    def max_tokens(self) -> int:
        return int(min(self.settings.train.max_tokens, self.task.max_positions))

    def loss(self, batch: TextWindow, steps_done: int) -> Loss:  # noqa: ARG002 - every step is alike
        return self.task.loss(batch, None, self.settings.train.label_smoothing)[0]

    def negative_log_likelihood(self, records: Iterable[Record]) -> Loss:
        examples = list(self.task.examples(records, self.max_tokens))
        return self.task.negative_log_likelihood(self.task.windows(examples))

    def score(
        self, records: Iterable[Record], on_progress: ProgressCallback | None = None
    ) -> dict[str, float | str]:
        """How likely the true replies are, and how the run's own are, after the true history."""
        records = list(records)
        examples = self.task.examples(
            records, self.max_tokens, replies=True
        )  # whatever was trained on
        loss = self.task.negative_log_likelihood(self.task.windows(list(examples)))
        metrics: dict[str, float | str] = {
            "perplexity": perplexity(loss.total.item(), loss.count),
            "tokens": loss.count,
        }
        if self.task.backwards:
            return metrics
        replies = self.replay_dialogues(records, on_progress)
        reply_texts = [
            reply.delexicalized for dialogue_replies in replies for reply in dialogue_replies
        ]
        references = [
            turn.text.lower() if self.settings.text.lower else turn.text
            for record in records
            for turn in dialogue_turns(record, self.task.database)
            if turn.role == "reply"
        ]
        score = bleu(reply_texts, references[: len(reply_texts)], lower=True)
        metrics |= {
            "bleu": score.value,
            "distinct_1": distinct_ngrams(reply_texts, 1),
            "distinct_2": distinct_ngrams(reply_texts, 2),
        }
        if self.task.database:
            metrics |= self.database_metrics(records, replies)
        return {**metrics, "replies": len(reply_texts), "bleu_signature": score.signature}

    def database_metrics(
        self, records: Sequence[Record], replies: Sequence[Sequence[ChatReply]]
    ) -> dict[str, Any]:
        """Wishes that are all understood, and offers that are as the goal says, in percent."""
        belief_pairs = [
            (predicted.belief, reference)
            for record, dialogue_replies in zip(records, replies, strict=True)
            for predicted, reference in zip(dialogue_replies, record["wishes"], strict=True)
        ]
        correct = [
            casefolded(predicted) == casefolded(reference) for predicted, reference in belief_pairs
        ]
        goals = [
            (record["goal"], last_offer(dialogue_replies))
            for record, dialogue_replies in zip(records, replies, strict=True)
            if "goal" in record
        ]
        share = entity_match([offer for _, offer in goals], [goal for goal, _ in goals])
        return {"wishes": 100 * sum(correct) / len(correct), "entity_match": 100 * share}

    def replay_dialogues(
        self, records: Sequence[Record], on_progress: ProgressCallback | None = None
    ) -> list[list[ChatReply]]:
        """What the run says in each exchange, if all before went as in the record."""
        histories, exchanges = list[list[Turn]](), list[int]()
        for record in records:
            turns = dialogue_turns(record, self.task.database)
            last = max(index for index, turn in enumerate(turns) if turn.role == "reply")
            user_turns = [index for index, turn in enumerate(turns[:last]) if turn.role == "user"]
            histories += [turns[: index + 1] for index in user_turns]
            exchanges.append(len(user_turns))
        replies = iter(self.generate_replies(histories))
        if on_progress is not None:
            on_progress(len(records))
        return [[next(replies) for _ in range(count)] for count in exchanges]

    def generate_replies(
        self, histories: Sequence[Sequence[Turn]], on_text: TextCallback | None = None
    ) -> list[ChatReply]:
        """The reply to the last turn of each, which is somebody else's.

        `heard` is given what is known of a reply as it is written, where there is one history.
        """
        database = self.task.database
        if not database:
            return [
                ChatReply(text, text, {}, [])
                for text in self.generate_turns(histories, on_text=on_text)
            ]
        beliefs = [
            parse_belief(text, database) for text in self.generate_turns(histories, greedy=True)
        ]
        rows = [database.find_rows(query) for query in beliefs]
        extended_histories = [
            [
                *history,
                Turn("wishes", format_belief(belief)),
                Turn("found", format_row_count(len(matching_rows))),
            ]
            for history, belief, matching_rows in zip(histories, beliefs, rows, strict=True)
        ]

        def lexicalize(text: str, index: int) -> str:
            return database.lexicalize(
                text, rows[index][0] if rows[index] else None, beliefs[index]
            )

        def emit_partial_text(text: str) -> None:
            if on_text is not None:
                on_text(lexicalize(text, 0))

        delexicalized = self.generate_turns(
            extended_histories, on_text=None if on_text is None else emit_partial_text
        )
        return [
            ChatReply(lexicalize(text, index), text, beliefs[index], rows[index])
            for index, text in enumerate(delexicalized)
        ]

    def extended_history(self, history: Sequence[Turn], chat_reply: ChatReply) -> list[Turn]:
        """The history with what was said."""
        reply_turn = Turn("reply", chat_reply.delexicalized)
        if not self.task.database:
            return [*history, reply_turn]
        count_turn = Turn("found", format_row_count(len(chat_reply.rows)))
        return [*history, Turn("wishes", format_belief(chat_reply.belief)), count_turn, reply_turn]

    def generate_turns(
        self,
        histories: Sequence[Sequence[Turn]],
        *,
        greedy: bool = False,
        on_text: TextCallback | None = None,
    ) -> list[str]:
        """The next turn of each: the likeliest, or as the settings say, the best by their rank."""
        decode, rank = self.settings.decode, self.settings.rerank
        if greedy:
            decode = GreedyConfig(max_length=decode.max_length)
        backward_run = None if greedy else self.backward_run
        search = build_search(decode, 1 if backward_run is None else rank.candidates)
        max_reply_tokens = min(
            decode.max_length, int(min(self.task.max_positions, UNLIMITED_TOKENS)) // 2
        )
        hypotheses_per_history = self.task.predict_from_ids(
            [self.task.prompt_ids(turns, max_reply_tokens) for turns in histories],
            search,
            build_constraints(decode, decode.max_length),
            on_tokens=self.build_token_callback(on_text)
            if on_text and backward_run is None and len(histories) == 1
            else None,
        )
        if backward_run is None:
            return [best[0].text for best in hypotheses_per_history]
        chosen = []
        for turns, hypotheses in zip(histories, hypotheses_per_history, strict=True):
            backward_log_probs = backward_run.task.backward_log_prob(
                turns, [hypothesis.text for hypothesis in hypotheses]
            ).tolist()
            scores = [
                (1 - rank.backward_weight) * hypothesis.log_prob + rank.backward_weight * log_prob
                for hypothesis, log_prob in zip(hypotheses, backward_log_probs, strict=True)
            ]
            chosen.append(hypotheses[scores.index(max(scores))].text)
        return chosen

    def build_token_callback(self, on_text: TextCallback) -> Callable[[Tensor], None]:
        """Of a search for one output: text of the tokens that it goes on from, as they come."""
        ids = list[int]()

        def on_tokens(tokens: Tensor) -> None:
            if len(tokens) == 1:  # a beam has not made up its mind
                ids.extend(self.task.vocabulary_ids(tokens.tolist()))
                on_text(without_open_placeholder(self.task.text.decode(ids)))

        return on_tokens

    @cached_property
    def backward_run(self) -> "ChatRun | None":
        """The run that tells what a reply replies to, if there is one."""
        if self.settings.rerank.backward_run is None:
            return None
        run = ChatRun.load(self.settings.rerank.backward_run)
        if not run.task.backwards:
            raise ValueError(
                f"{self.settings.rerank.backward_run}: train it with train.reverse_turns = true"
            )
        return run

    def predict_lines(
        self,
        lines: Sequence[str],
        location_format: str = "text {}",  # noqa: ARG002
    ) -> list[Prediction]:
        """To each conversation, whose turns have tabs between."""
        return [self.predict_conversation(text.split("\t")) for text in lines]

    def predict_conversation(self, turns: Sequence[str]) -> Prediction:
        history = list[Turn]()
        for index, text in enumerate(turns):  # the last is to be answered
            is_own_turn = (len(turns) - index) % 2 == 0
            if is_own_turn and self.task.database:
                belief = parse_belief(
                    self.generate_turns([history], greedy=True)[0], self.task.database
                )
                row_count = format_row_count(len(self.task.database.find_rows(belief)))
                history += [Turn("wishes", format_belief(belief)), Turn("found", row_count)]
                text = self.task.database.delexicalize(text)
            history.append(Turn("reply" if is_own_turn else "user", text))
        [reply] = self.generate_replies([history])
        data: dict[str, Any] = {"turns": list(turns), "reply": reply.text}
        if self.task.database:
            data |= {"wishes": reply.belief, "found": len(reply.rows), "row": reply.row}
        return Prediction(reply.text, data)

    def __call__(self, *turns: str) -> str:
        """The reply to the last of these turns."""
        return self.predict_conversation(turns).text


def casefolded(belief: dict[str, str]) -> dict[str, str]:
    return {name: value.casefold() for name, value in belief.items()}


def last_offer(replies: Sequence[ChatReply]) -> Row | None:
    """The row of the last reply with a name in it."""
    offers = [
        reply.row
        for reply in replies
        if OFFER_COLUMN in PLACEHOLDER.findall(reply.delexicalized) and reply.row
    ]
    return offers[-1] if offers else None


def without_open_placeholder(text: str) -> str:
    """Without a blank that is not closed yet, and without half a character."""
    head, mark, tail = text.rpartition("[")
    return (head if mark and "]" not in tail else text).rstrip("\ufffd")
