"""Conversations as rows of ids: the loss mask, truncation, beliefs and database rows."""

import pytest
import torch

from regard.config.decode import GreedyConfig
from regard.data.database import Database
from regard.models.gpt2 import Gpt2
from regard.tasks.chat.build import build_reply_decoding
from regard.tasks.chat.prediction import ChatPrediction, ChatReply
from regard.tasks.chat.task import ChatTask
from regard.tasks.chat.turns import (
    Turn,
    dialogue_turns,
    format_belief,
    format_row_count,
    parse_belief,
)
from regard.text.train import train_tokenizer

EMPTY_DATABASE = Database([], [])
DATABASE = Database([{"name": "Pot", "food": "thai"}, {"name": "Pan", "food": "greek"}], ["food"])
RECORD = {
    "turns": ["thai please", "Pot is a thai place.", "thanks", "bye"],
    "wishes": [{"food": "thai"}, {"food": "thai"}],
}
ROLES = ["user", "belief", "row_count", "reply"]


def build_chat(database: Database) -> ChatTask:
    text = train_tokenizer("characters", ["abcdefghij klmnopqrstuvwxyz.[]=;0123"], 60)
    torch.manual_seed(0)
    model = Gpt2(text.size, dim=8, heads=2, layers=1, max_positions=64, dropout=0.0)
    greedy = build_reply_decoding(GreedyConfig(max_length=5))
    return ChatTask(model, text, database, decoding=greedy, belief_decoding=greedy)


@pytest.fixture(scope="module")
def chat() -> ChatTask:
    return build_chat(EMPTY_DATABASE)


def test_turns():
    assert [turn.role for turn in dialogue_turns(RECORD, EMPTY_DATABASE)] == ["user", "reply"] * 2
    turns = dialogue_turns(RECORD, DATABASE)
    assert [turn.role for turn in turns] == ROLES * 2
    assert [turn.text for turn in turns[:4]] == [
        "thai please",
        "food=thai",
        "1",
        "[name] is a [food] place.",
    ]


def test_beliefs_as_text():
    database = Database([{"food": "a", "area": "b"}], ["food", "area"])
    for belief in ({}, {"food": "thai"}, {"food": "north indian", "area": "any"}):
        assert parse_belief(format_belief(belief), database) == belief
    assert parse_belief("area = x ;food=y; size=3", database) == {"food": "y", "area": "x"}
    assert parse_belief("nothing; = ;food=", database) == {}
    assert [format_row_count(n) for n in (0, 3, 4)] == ["0", "3", "many"]


@pytest.mark.parametrize("max_tokens", [8, 13, 30, 100])
def test_every_token_is_in_the_loss_once(chat, max_tokens):
    turns = [Turn("user" if n % 2 == 0 else "reply", "abcde"[: n % 5 + 1]) for n in range(12)]
    rows = list(chat.rows(turns, max_tokens, replies_only=False))
    counted = [n for ids, mask in rows for n, m in zip(ids[1:], mask, strict=True) if m]
    tokens = [n for ids in chat.text.encode_ids([t.text for t in turns]) for n in [*ids, chat.end]]
    assert counted == tokens
    for ids, mask in rows:
        assert len(ids) == len(mask) + 1 <= max_tokens + 1
        assert ids[0] == ids[-1] == chat.end
    if max_tokens == 13:  # a row that continues a conversation repeats turns
        assert any(not mask[0] for _, mask in rows[1:])


def test_loss_mask(chat):
    turns = [Turn(role, "ab") for role in ROLES]
    [(_, mask)] = chat.rows(turns, 64, replies_only=False)
    assert mask == [1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1]  # all but the row count
    [(_, mask)] = chat.rows(turns, 64, replies_only=True)
    assert mask == [0, 0, 0, 1, 1, 1] * 2


def token_log_probs(chat: ChatTask, turns: list[str]) -> list[float]:
    """Return the log-probability of each token of a conversation, read in one row."""
    ids = [chat.end]
    for turn_ids in chat.text.encode_ids(turns):
        ids += [*turn_ids, chat.end]
    states, _ = chat.model.read(chat.model.begin(1), torch.tensor([ids[:-1]]))
    log_probs = chat.model.logits(states)[0].log_softmax(-1)
    return [log_probs[position, n].item() for position, n in enumerate(ids[1:])]


def test_loss_is_the_sum_over_tokens(chat):
    records = [{"turns": ["ab", "cde"]}, {"turns": ["f", "g", "hi"]}]
    loss = chat.negative_log_likelihood(records)
    log_probs = [value for record in records for value in token_log_probs(chat, record["turns"])]
    assert loss.count == len(log_probs)
    assert loss.total.item() == pytest.approx(-sum(log_probs), rel=1e-5)


def test_a_long_history_loses_its_first_turns(chat):
    turns = [Turn("user", letter * 10) for letter in "abcdefgh"]
    ids = chat.prompt_ids(turns, 20)
    assert len(ids) <= 64 - 20
    text = chat.text.decode([n for n in ids if n != chat.end])
    assert text == "".join(letter * 10 for letter in "fgh")
    assert ids[0] == ids[-1] == chat.end
    assert len(chat.prompt_ids([Turn("user", "a" * 100)], 20)) == 102  # the search truncates it


def test_backward_log_prob(chat):
    """Compare log p(reversed history | reply) with one row at a time."""
    history = [Turn("user", "ab"), Turn("reply", "c"), Turn("user", "de")]
    values = chat.backward_log_prob(history, ["f", "ghi"]).tolist()
    for reply, value in zip(["f", "ghi"], values, strict=True):
        log_probs = token_log_probs(chat, [reply, "de", "c", "ab"])
        assert value == pytest.approx(sum(log_probs[len(reply) + 1 :]), rel=1e-5)


def test_replies_continue_a_conversation(chat):
    history = [Turn("user", "ab")]
    parts = list[str]()
    [reply] = chat.generate_replies([history], parts.append)
    assert reply.belief is None
    assert all(reply.text.startswith(part) for part in parts)
    assert chat.append_reply(history, reply) == [*history, Turn("reply", reply.text)]
    record = chat.parse("ab\tc\tde", "input 1")
    assert record == {"turns": ["ab", "c", "de"]}
    assert [turn.role for turn in chat.history(record["turns"])] == ["user", "reply", "user"]
    [prediction] = chat.predict([record])
    assert prediction.as_dict() == {"reply": prediction.text}


def test_conversations_about_a_database():
    chat = build_chat(DATABASE)
    assert [turn.role for turn in chat.history(["ab", "Pot is a", "c"])] == [*ROLES, "user"]
    replies = [
        ChatReply("Pot", "[name]", {"food": "Thai"}, DATABASE.rows[:1]),
        ChatReply("x", "x", {"food": "greek"}, DATABASE.rows[1:]),
    ]
    prediction = ChatPrediction.from_replies(replies)
    row = {"name": "Pan", "food": "greek"}
    assert prediction.as_dict() == {
        "reply": "x",
        "wishes": {"food": "greek"},
        "found": 1,
        "row": row,
        "rows": [row],
    }
    metrics = chat.metrics([{**RECORD, "goal": {"food": "thai"}}], [prediction])
    assert (metrics["joint_goal"], metrics["entity_match"], metrics["replies"]) == (50, 100, 2)
    [replayed] = chat.replay([RECORD])
    assert len(replayed.replies) == 2
    assert list(chat.score([RECORD])) == [
        *("perplexity", "tokens", "bleu", "distinct_1", "distinct_2", "joint_goal", "entity_match"),
        *("replies", "bleu_signature"),
    ]
    chat.reverse_turns = True
    assert list(chat.score([RECORD])) == ["perplexity", "tokens"]
