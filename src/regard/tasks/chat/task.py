"""Conversation: turns in one row, with an END between them (Zhang et al. 2020).

    END turn END turn END …

With a database the model also writes belief states, and replies with placeholders; see `turns.py`.
b: rows   t: positions
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.batching.batches import iterate_by_length
from regard.batching.example import padded
from regard.batching.source import BatchSource
from regard.batching.text_windows import TextWindow
from regard.data.corpus import Corpus, Record
from regard.data.database import Database
from regard.decoding.prompts import TokenCallback
from regard.errors import InputError
from regard.metrics.dialogue import distinct_ngrams
from regard.metrics.language import perplexity
from regard.metrics.translation import bleu
from regard.models.protocols import AnyLanguageModel
from regard.tasks.base import (
    BatchOptions,
    FieldValue,
    InputField,
    Metrics,
    Prediction,
    ProgressCallback,
    TextCallback,
    batches_by_length,
)
from regard.tasks.chat import view
from regard.tasks.chat.prediction import ChatPrediction, ChatReply, database_metrics
from regard.tasks.chat.rerank import ReplyReranker
from regard.tasks.chat.turns import (
    Turn,
    belief_turns,
    dialogue_turns,
    format_belief,
    is_in_loss,
    parse_belief,
)
from regard.tasks.generation import TOKENS_PER_BATCH, Decoding, TextOutput
from regard.tasks.language_model import LanguageModelTask
from regard.tasks.loss import Loss
from regard.tasks.prefix import PREFIX_FIELD, OutputPrefix
from regard.text.special_ids import AnyTokenizer
from regard.view.attention_map import AttentionMap
from regard.view.terminal import Surface

UNLIMITED_TOKENS = 10**6  # maximum length for a model without one


@dataclass(frozen=True, slots=True)
class ChatExample:
    """The ids of a row, and for each id but the first whether it is in the loss (1 or 0)."""

    index: int
    ids: Sequence[int]
    loss_mask: Sequence[int]

    @property
    def lengths(self) -> tuple[int, int]:
        return len(self.ids), len(self.loss_mask)


class ChatTask(LanguageModelTask[ChatExample]):
    """A language model, its vocabulary, and a database, which may be empty.

    An example holds the ids of a row, and for each token but the first whether it is in the loss.
    With `replies_only`, only beliefs and replies are. With `reverse_turns`, the model reads turns
    in reverse, for `backward_log_prob`. `belief_decoding` is the search for beliefs.
    """

    name: ClassVar = "chat"
    input_fields = (InputField("turns", "Conversation", "list"),)
    streamed = False

    def __init__(
        self,
        model: AnyLanguageModel,
        text: AnyTokenizer,
        database: Database,
        *,
        decoding: Decoding,
        belief_decoding: Decoding,
        reranker: ReplyReranker | None = None,
        max_tokens: int = 256,
        replies_only: bool = False,
        reverse_turns: bool = False,
        label_smoothing: float = 0.0,
    ):
        super().__init__(model, text, decoding=decoding, label_smoothing=label_smoothing)
        self.database, self.belief_decoding, self.reranker = database, belief_decoding, reranker
        self.replies_only, self.reverse_turns = replies_only, reverse_turns
        self.max_tokens = int(min(max_tokens, self.max_positions))

    # --- training

    def examples(self, records: Iterable[Record]) -> Iterator[ChatExample]:
        """Yield rows of at most `max_tokens` tokens; see `rows`."""
        return self.examples_for(records, self.replies_only)

    def examples_for(self, records: Iterable[Record], replies_only: bool) -> Iterator[ChatExample]:
        for index, record in enumerate(records):
            turns = dialogue_turns(record, self.database)
            turns = turns[::-1] if self.reverse_turns else turns
            for ids, loss_mask in self.rows(turns, self.max_tokens, replies_only):
                yield ChatExample(index, ids, loss_mask)

    def rows(
        self, turns: Sequence[Turn], max_tokens: int, replies_only: bool
    ) -> Iterator[tuple[list[int], list[int]]]:
        """Yield rows of ids with their loss masks.

        A longer conversation continues in another row. That row repeats the last turns before it,
        as far as they fit in half of the row; repeated turns are not in the loss.
        """
        tokens = [
            [*ids[: max_tokens - 1], self.end]
            for ids in self.text.encode_ids([turn.text for turn in turns])
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
                counts = position >= next_turn and is_in_loss(turns[position], replies_only)
                ids += tokens[position]
                loss_mask += [int(counts)] * len(tokens[position])
            yield ids, loss_mask
            next_turn = end

    def collate(self, examples: Sequence[ChatExample]) -> TextWindow:
        ids, _ = padded([list(example.ids) for example in examples])
        loss_mask, _ = padded([list(example.loss_mask) for example in examples])
        return TextWindow(ids[:, :-1], ids[:, 1:], loss_mask.bool())

    def batches(self, corpus: Corpus, options: BatchOptions) -> BatchSource[TextWindow]:
        return batches_by_length(self, corpus, options)

    def loss(self, batch: TextWindow, step: int) -> Loss:  # noqa: ARG002 - no schedule
        return self.window_loss(batch, None, self.label_smoothing)[0]

    def evaluation_windows(self, records: Iterable[Record]) -> Iterator[TextWindow]:
        return self.windows(list(self.examples(records)))

    def windows(self, examples: Sequence[ChatExample]) -> Iterator[TextWindow]:
        return iterate_by_length(examples, tokens_per_batch=TOKENS_PER_BATCH, collate=self.collate)

    # --- inference

    def parse(self, line: str, location: str) -> Record:  # noqa: ARG002 - every line is a turn
        """Return the turns of a conversation, separated by tabs; the model replies to the last."""
        return {"turns": line.split("\t")}

    def form_values(self, record: Record) -> dict[str, FieldValue]:
        """Return the first turn of a conversation."""
        return {"turns": list(record["turns"][:1])}

    def predict(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[ChatPrediction]:
        """Return the reply to the last turn of each record."""
        predictions = list[ChatPrediction]()
        for record in records:
            replies = self.generate_replies(
                [self.history(record["turns"])], prefixes=[self.prefix(record)]
            )
            predictions.append(ChatPrediction.from_replies(replies))
            if on_progress is not None:
                on_progress(1)
        return predictions

    def stream(self, record: Record, on_text: TextCallback) -> ChatPrediction:
        replies = self.generate_replies(
            [self.history(record["turns"])], on_text, [self.prefix(record)]
        )
        return ChatPrediction.from_replies(replies)

    def prefix(self, record: Record) -> OutputPrefix:
        """Return the beginning of the reply that a record prescribes, with placeholders."""
        prefix = record.get(PREFIX_FIELD)
        if isinstance(prefix, str) and self.database:
            record = {**record, PREFIX_FIELD: self.database.delexicalize(prefix)}
        return super().prefix(record)

    def history(self, turns: Sequence[str]) -> list[Turn]:
        """Return turns with roles, the last a user's; predict the beliefs before replies."""
        history = list[Turn]()
        for index, text in enumerate(turns):
            if (len(turns) - index) % 2:
                history.append(Turn("user", text))
            else:
                history = self.with_reply(history, text)
        return history

    def with_reply(self, history: Sequence[Turn], reply: str) -> list[Turn]:
        """Return the history with a reply of a user's choice, after the belief of the model."""
        if not self.database:
            return [*history, Turn("reply", reply)]
        [belief] = self.find_beliefs([history])
        reply_turn = Turn("reply", self.database.delexicalize(reply))
        return [*history, *belief_turns(belief, self.database), reply_turn]

    def find_beliefs(self, histories: Sequence[Sequence[Turn]]) -> list[dict[str, str]]:
        """Return the predicted belief of each conversation: the slots that the user requests."""
        outputs = self.generate_turns(histories, self.belief_decoding)
        return [parse_belief(output.text, self.database) for output in outputs]

    def check_can_reply(self, location: str) -> None:
        """Raise an error if the model reads turns in reverse."""
        if self.reverse_turns:
            raise InputError(
                f"{location}: reads turns in reverse, to rerank replies; use another run"
            )

    def user_turn(self, text: str) -> Turn:
        return Turn("user", text)

    def describe_belief(self, reply: ChatReply) -> str | None:
        """Return the slots of a reply and the number of matching rows, if there is a database."""
        if not self.database or reply.belief is None:
            return None
        return f"({format_belief(reply.belief)}: {len(reply.rows)} found)"

    def generate_replies(
        self,
        histories: Sequence[Sequence[Turn]],
        on_text: TextCallback | None = None,
        prefixes: Sequence[OutputPrefix] = (),
    ) -> list[ChatReply]:
        """Return the reply to the last turn of each history, which is a user's.

        If there is one history, `on_text` is called with the reply as far as it is written.
        """
        database = self.database
        if not database:
            texts = self.generate_texts(histories, on_text, prefixes)
            return [ChatReply(text, text) for text in texts]
        beliefs = self.find_beliefs(histories)
        rows = [database.find_rows(belief) for belief in beliefs]
        extended_histories = [
            [*history, *belief_turns(belief, database)]
            for history, belief in zip(histories, beliefs, strict=True)
        ]

        def lexicalize(text: str, index: int) -> str:
            row = rows[index][0] if rows[index] else None
            return database.lexicalize(text, row, beliefs[index])

        def emit_partial_text(text: str) -> None:
            if on_text is not None:
                on_text(lexicalize(text, 0))

        texts = self.generate_texts(
            extended_histories, None if on_text is None else emit_partial_text, prefixes
        )
        return [
            ChatReply(lexicalize(text, index), text, beliefs[index], rows[index])
            for index, text in enumerate(texts)
        ]

    def append_reply(self, history: Sequence[Turn], reply: ChatReply) -> list[Turn]:
        """Return the history with a reply to its last turn."""
        reply_turn = Turn("reply", reply.delexicalized)
        if reply.belief is None:
            return [*history, reply_turn]
        return [*history, *belief_turns(reply.belief, self.database), reply_turn]

    def generate_texts(
        self,
        histories: Sequence[Sequence[Turn]],
        on_text: TextCallback | None = None,
        prefixes: Sequence[OutputPrefix] = (),
    ) -> list[str]:
        """Return the text of the best reply to each history."""
        outputs = self.generate_turns(histories, self.decoding, self.reranker, on_text, prefixes)
        return [output.text for output in outputs]

    def generate_turns(
        self,
        histories: Sequence[Sequence[Turn]],
        decoding: Decoding,
        reranker: ReplyReranker | None = None,
        on_text: TextCallback | None = None,
        prefixes: Sequence[OutputPrefix] = (),
    ) -> list[TextOutput]:
        """Return the next turn of each history."""
        can_stream = on_text is not None and reranker is None and len(histories) == 1
        half_context = int(min(self.max_positions, UNLIMITED_TOKENS)) // 2
        max_length = min(decoding.max_length, half_context)
        outputs = self.complete_ids(
            [self.prompt_ids(turns, max_length) for turns in histories],
            prefixes=prefixes,
            decoding=decoding,
            on_tokens=self.build_token_callback(on_text) if can_stream and on_text else None,
        )
        if reranker is None:
            return [best[0] for best in outputs]
        return [
            reranker.best(turns, candidates)
            for turns, candidates in zip(histories, outputs, strict=True)
        ]

    def build_token_callback(self, on_text: TextCallback) -> TokenCallback:
        """Return a callback for the tokens of one output that passes their text to `on_text`."""
        ids = list[int]()

        def on_tokens(tokens: Tensor) -> None:
            if len(tokens) == 1:  # a beam search returns the tokens of several hypotheses
                ids.extend(self.vocabulary_ids(tokens.tolist()))
                on_text(without_open_placeholder(self.text.decode(ids)))

        return on_tokens

    def prompt_ids(self, turns: Sequence[Turn], new_tokens: int) -> list[int]:
        """Return the ids of a prompt; drop the first turns of a history that is too long."""
        ids = [self.end]
        turn_ids = self.text.encode_ids([turn.text for turn in turns])
        for earlier_ids in reversed([[*one_turn, self.end] for one_turn in turn_ids]):
            if len(ids) > 1 and len(ids) + len(earlier_ids) > self.max_positions - new_tokens:
                break
            ids = [self.end, *earlier_ids, *ids[1:]]
        return ids

    @torch.no_grad()
    def backward_log_prob(
        self, history: Sequence[Turn], replies: Sequence[str]
    ) -> Float[Tensor, " b"]:
        """Return log p(history | reply) of each reply, by a model that reads turns in reverse."""
        self.model.eval()
        max_tokens = int(min(self.max_positions, UNLIMITED_TOKENS))
        examples = list[ChatExample]()
        for index, reply in enumerate(replies):
            turns = [Turn("reply", reply), *reversed(history)]
            tokens = [
                [*ids, self.end] for ids in self.text.encode_ids([turn.text for turn in turns])
            ]
            loss_mask = [0] * len(tokens[0]) + [1] * sum(map(len, tokens[1:]))
            ids = [self.end, *(token_id for turn_ids in tokens for token_id in turn_ids)]
            examples.append(ChatExample(index, ids[: max_tokens + 1], loss_mask[:max_tokens]))
        window = self.to_device(self.collate(examples))
        states, _ = self.model.read(self.model.begin(len(examples)), window.inputs)
        logits = self.model.logits(states).flatten(0, 1)
        losses = F.cross_entropy(logits, window.targets.flatten(), reduction="none")
        return -(losses.view_as(window.targets) * window.valid).sum(1)

    # --- scores

    def replay(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> list[ChatPrediction]:
        """Return the model's reply in each exchange, given the true turns before it."""
        histories, exchanges = list[list[Turn]](), list[int]()
        for record in records:
            turns = dialogue_turns(record, self.database)
            last = max(index for index, turn in enumerate(turns) if turn.role == "reply")
            user_turns = [index for index, turn in enumerate(turns[:last]) if turn.role == "user"]
            histories += [turns[: index + 1] for index in user_turns]
            exchanges.append(len(user_turns))
        replies = iter(self.generate_replies(histories))
        if on_progress is not None:
            on_progress(len(records))
        return [
            ChatPrediction.from_replies([next(replies) for _ in range(count)])
            for count in exchanges
        ]

    def metrics(self, records: Sequence[Record], predictions: Sequence[Prediction]) -> Metrics:
        """Compare the replies with as many of the last replies of the records."""
        replies = [p.replies for p in predictions if isinstance(p, ChatPrediction)]
        outputs, references = list[str](), list[str]()
        for record, dialogue_replies in zip(records, replies, strict=True):
            turns = dialogue_turns(record, self.database)
            texts = [turn.text for turn in turns if turn.role == "reply"]
            outputs += [reply.delexicalized for reply in dialogue_replies]
            references += texts[-len(dialogue_replies) :]
        score = bleu(outputs, references, lower=True)
        metrics: Metrics = {
            "bleu": score.value,
            "distinct_1": distinct_ngrams(outputs, 1),
            "distinct_2": distinct_ngrams(outputs, 2),
        }
        if self.database:
            metrics |= database_metrics(records, replies)
        return {**metrics, "replies": len(outputs), "bleu_signature": score.signature}

    def likelihood_metrics(self, records: Sequence[Record]) -> Metrics:
        """Return the perplexity of beliefs and replies, whatever turns the training counted."""
        examples = list(self.examples_for(records, replies_only=True))
        loss = self.negative_log_likelihood_of(self.windows(examples))
        return {"perplexity": perplexity(loss.total.item(), loss.count), "tokens": loss.count}

    def score(
        self, records: Sequence[Record], *, on_progress: ProgressCallback | None = None
    ) -> Metrics:
        """Return the likelihood of the true replies, and metrics of the model's own."""
        if not records:
            raise InputError("records are missing: there is nothing to score")
        metrics = self.likelihood_metrics(records)
        if self.reverse_turns:
            return metrics
        return {**metrics, **self.metrics(records, self.replay(records, on_progress=on_progress))}

    def validation_metric(self, name: str, records: Sequence[Record]) -> float:
        metrics = self.score(records)
        if name not in metrics:
            raise InputError(f"train.metric = {name!r} is not known for this data and model")
        return float(metrics[name])

    # --- inspection

    def attention_map(self, record: Record, target: str | None = None) -> AttentionMap:
        """Return the attention of a conversation, or of it and the reply `target`."""
        return view.chat_map(self, record, target)

    def output_map(self, record: Record) -> AttentionMap:
        return view.reply_map(self, record)

    def render(
        self,
        record: Record,
        surface: Surface,
        *,
        target: str | None = None,
        layer: int | None = None,  # noqa: ARG002
    ) -> str:
        return view.render_chat(self, record, surface, target)


def without_open_placeholder(text: str) -> str:
    """Return a text without an unclosed placeholder or an incomplete character at its end."""
    head, mark, tail = text.rpartition("[")
    return (head if mark and "]" not in tail else text).rstrip("\ufffd")
