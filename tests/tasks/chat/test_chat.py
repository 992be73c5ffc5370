"""Conversations as rows of ids: what counts, what is left out, and what was looked up."""

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

NONE = Database([], [])
BASE = Database([{"name": "Pot", "food": "thai"}, {"name": "Pan", "food": "greek"}], ["food"])
RECORD = {
    "turns": ["thai please", "Pot is a thai place.", "thanks", "bye"],
    "wishes": [{"food": "thai"}, {"food": "thai"}],
}
ROLES = ["user", "belief", "row_count", "reply"]


@pytest.fixture
def chat():
    text = train_tokenizer("characters", ["abcdefghij klmnopqrstuvwxyz.[]=;0123"], 60)
    torch.manual_seed(0)
    model = Gpt2(text.size, dim=8, heads=2, layers=1, max_positions=64, dropout=0.0)
    greedy = build_reply_decoding(GreedyConfig(max_length=5))
    return ChatTask(model, text, NONE, decoding=greedy, belief_decoding=greedy)


def test_turns():
    assert [turn.role for turn in dialogue_turns(RECORD, NONE)] == ["user", "reply"] * 2
    turns = dialogue_turns(RECORD, BASE)
    assert [turn.role for turn in turns] == ROLES * 2
    assert [turn.text for turn in turns[:4]] == [
        "thai please",
        "food=thai",
        "1",
        "[name] is a [food] place.",
    ]


def test_wishes_as_text():
    base = Database([{"food": "a", "area": "b"}], ["food", "area"])
    for wishes in ({}, {"food": "thai"}, {"food": "north indian", "area": "any"}):
        assert parse_belief(format_belief(wishes), base) == wishes
    assert parse_belief("area = x ;food=y; size=3", base) == {"food": "y", "area": "x"}
    assert parse_belief("nothing; = ;food=", base) == {}
    assert [format_row_count(n) for n in (0, 3, 4)] == ["0", "3", "many"]


@pytest.mark.parametrize("longest", [8, 13, 30, 100])
def test_every_token_counts_once(chat, longest):
    turns = [Turn("user" if n % 2 == 0 else "reply", "abcde"[: n % 5 + 1]) for n in range(12)]
    rows = list(chat.rows(turns, longest, replies_only=False))
    wanted = [n for ids, counts in rows for n, c in zip(ids[1:], counts, strict=True) if c]
    whole = [n for ids in chat.text.encode_ids([t.text for t in turns]) for n in [*ids, chat.end]]
    assert wanted == whole
    for ids, counts in rows:
        assert len(ids) == len(counts) + 1 <= longest + 1
        assert ids[0] == ids[-1] == chat.end
    if longest == 13:  # a row that goes on has what was before it
        assert any(not counts[0] for _, counts in rows[1:])


def test_what_counts(chat):
    turns = [Turn(role, "ab") for role in ROLES]
    [(_, counts)] = chat.rows(turns, 64, replies_only=False)
    assert counts == [1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1]  # a number was looked up
    [(_, counts)] = chat.rows(turns, 64, replies_only=True)
    assert counts == [0, 0, 0, 1, 1, 1] * 2


def test_loss_is_that_of_each_token(chat):
    records = [{"turns": ["ab", "cde"]}, {"turns": ["f", "g", "hi"]}]
    loss = chat.negative_log_likelihood(records)
    total, count = 0.0, 0
    for record in records:
        ids = [chat.end]
        for one in chat.text.encode_ids(record["turns"]):
            ids += [*one, chat.end]
        states, _ = chat.model.read(chat.model.begin(1), torch.tensor([ids[:-1]]))
        shares = chat.model.logits(states)[0].log_softmax(-1)
        total -= sum(shares[at, n].item() for at, n in enumerate(ids[1:]))
        count += len(ids) - 1
    assert loss.count == count
    assert loss.total.item() == pytest.approx(total, rel=1e-5)


def test_a_long_history_loses_its_beginning(chat):
    turns = [Turn("user", letter * 10) for letter in "abcdefgh"]
    start = chat.prompt_ids(turns, 20)
    assert len(start) <= 64 - 20
    said = chat.text.decode([n for n in start if n != chat.end])
    assert said == "".join(letter * 10 for letter in "fgh")
    assert start[0] == start[-1] == chat.end
    assert len(chat.prompt_ids([Turn("user", "a" * 100)], 20)) == 102  # cut by the search


def test_what_a_reply_replies_to(chat):
    """log p of the history from its end, after the reply; by one row at a time."""
    history = [Turn("user", "ab"), Turn("reply", "c"), Turn("user", "de")]
    found = chat.backward_log_prob(history, ["f", "ghi"])
    for reply, value in zip(["f", "ghi"], found.tolist(), strict=True):
        ids = [chat.end]
        for one in chat.text.encode_ids([reply, "de", "c", "ab"]):
            ids += [*one, chat.end]
        states, _ = chat.model.read(chat.model.begin(1), torch.tensor([ids[:-1]]))
        shares = chat.model.logits(states)[0].log_softmax(-1)
        each = [shares[at, n].item() for at, n in enumerate(ids[1:])]
        assert value == pytest.approx(sum(each[len(reply) + 1 :]), rel=1e-5)


def test_a_conversation_goes_on(chat):
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


def test_about_a_database(chat):
    chat.database = BASE
    assert [turn.role for turn in chat.history(["ab", "Pot is a", "c"])] == [*ROLES, "user"]
    replies = [
        ChatReply("Pot", "[name]", {"food": "Thai"}, BASE.rows[:1]),
        ChatReply("x", "x", {"food": "greek"}, BASE.rows[1:]),
    ]
    prediction = ChatPrediction.from_replies(replies)
    row = {"name": "Pan", "food": "greek"}
    assert prediction.as_dict() == {
        "reply": "x",
        "wishes": {"food": "greek"},
        "found": 1,
        "row": row,
    }
    found = chat.metrics([{**RECORD, "goal": {"food": "thai"}}], [prediction])
    assert (found["joint_goal"], found["entity_match"], found["replies"]) == (50, 100, 2)
    [replayed] = chat.replay([RECORD])
    assert len(replayed.replies) == 2
    assert list(chat.score([RECORD])) == [
        *("perplexity", "tokens", "bleu", "distinct_1", "distinct_2", "joint_goal", "entity_match"),
        *("replies", "bleu_signature"),
    ]
    chat.reverse_turns = True
    assert list(chat.score([RECORD])) == ["perplexity", "tokens"]
